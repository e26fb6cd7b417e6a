//===- VerdictCache.cpp - verdicts that hold as long as nothing has changed -===//

#include "lib/Verify/VerdictCache.h"

#include "lib/Support/Hash.h"
#include "lib/Target/Target.h"
#include "lib/Verify/Device.h"

#include <cstdlib>
#include <filesystem>

namespace planc::verify {

static std::string userCache() {
  const char *xdg = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (xdg && *xdg)
    return std::string(xdg) + "/planc";
  return home && *home ? std::string(home) + "/.cache/planc" : "";
}

VerdictCache::VerdictCache(const Options &options) {
  if (!options.useCache)
    return;
  std::string parts;
  for (const std::string &path : {std::string("/proc/self/exe"), emulatorPath()}) {
    Result<Bytes> bytes = readFile(path);
    if (!bytes.ok())
      return;
    parts += xxh3Hex(*bytes);
  }
  program = parts;
  folder = options.cacheDir.empty() ? userCache() : options.cacheDir;
}

std::string VerdictCache::keyOf(plan::KernelOp kernel, const Options &options) const {
  std::string text = fmt::format("{} {} {} {} {}", program, options.kvBlock, options.seed,
                                 options.mutate, options.allowDiffers);
  for (const Target *target : options.targets)
    text += " " + std::string(target->name);
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, mlir::OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  return xxh3Hex(asBytes(text));
}

static std::string textOf(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A file whose damage makes other numbers of it is still JSON.
static std::string digestOf(const std::string &key, const Json &verdict, const Json &mutations) {
  return xxh3Hex(asBytes(key + textOf(verdict) + textOf(mutations)));
}

std::optional<Verdict> VerdictCache::find(const std::string &key) const {
  if (folder.empty())
    return std::nullopt;
  Result<Bytes> bytes = readFile(folder + "/verdict-" + key + ".json", 1 << 20);
  if (!bytes.ok())
    return std::nullopt;
  Result<Json> json = parseJson(asText(*bytes));
  if (!json.ok())
    return std::nullopt;
  try {
    const Json &mutations = json->at("mutations");
    if (json->at("digest") != digestOf(key, json->at("verdict"), mutations))
      return std::nullopt;
    Verdict verdict = verdictFromJson(json->at("verdict"));
    for (const Json &planted : mutations)
      verdict.mutations.push_back({planted.at(0).get<std::string>(),
                                   planted.at(1).get<std::string>(),
                                   planted.at(2).get<std::string>()});
    return verdict;
  } catch (const Json::exception &) { // damaged
    return std::nullopt;
  }
}

void VerdictCache::store(const std::string &key, const Verdict &verdict) const {
  if (folder.empty() || !verdict.failures.empty())
    return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  Json mutations = Json::array();
  for (const Planted &planted : verdict.mutations)
    mutations.push_back(Json::array({planted.name, planted.where, planted.how}));
  Json text = toJson(verdict);
  std::string file = textOf(
      {{"digest", digestOf(key, text, mutations)}, {"verdict", text}, {"mutations", mutations}});
  (void)writeFile(folder + "/verdict-" + key + ".json", asBytes(file));
}

} // namespace planc::verify
