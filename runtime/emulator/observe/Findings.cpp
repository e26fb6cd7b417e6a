//===- Findings.cpp - what the checks found -------------------------------===//

#include "runtime/emulator/observe/Findings.h"
#include "runtime/emulator/Memory.h"
#include "runtime/emulator/Ptx.h"
#include "runtime/emulator/SourceLine.h"

#include <cstdio>

using namespace planemu;

Site planemu::siteOf(const Warp &warp, const Inst &inst, unsigned lane) {
  return {inst.line, warp.cta->linear, warp.index, lane};
}

static std::string triple(std::uint64_t linear, const std::uint32_t *extent) {
  return "(" + std::to_string(linear % extent[0]) + ", " +
         std::to_string(linear / extent[0] % extent[1]) + ", " +
         std::to_string(linear / extent[0] / extent[1]) + ")";
}

static std::string describe(const Launch &launch, const Site &site) {
  std::string text = "PTX line " + std::to_string(site.line);
  if (launch.ptx)
    text += sourceOf(*launch.ptx, site.line) + ": " + std::string(lineText(*launch.ptx, site.line));
  return text + "\n    CTA " + triple(site.cta, launch.grid) + ", warp " +
         std::to_string(site.warp) + ", lane " + std::to_string(site.lane) + ", thread " +
         triple(site.warp * 32 + site.lane, launch.block);
}

void Findings::add(const Launch &launch, const char *check, const std::string &message,
                   const Site &site, const std::string &where, const Site *other,
                   const char *otherDoes) {
  std::string key = std::string(check) + '\n' + message + '\n' + launch.kernel->name + '\n' +
                    launch.label + '\n' + std::to_string(site.line) + ' ' +
                    std::to_string(other ? other->line : 0);
  std::lock_guard lock(mutex);
  auto [found, isNew] = known.try_emplace(key, findings.size());
  if (!isNew) {
    ++findings[found->second].count;
    return;
  }
  if (findings.size() == Most) {
    known.erase(found);
    return;
  }
  std::string text = std::string(check) + ": " + message + "\n  kernel '" + launch.kernel->name +
                     "'" + (launch.label.empty() ? "" : " (" + launch.label + ")") + "\n  " +
                     describe(launch, site);
  if (!where.empty())
    text += "\n  " + where;
  if (other)
    text += std::string("\n  ") + otherDoes + " " + describe(launch, *other);
  if (prints)
    std::fprintf(stderr, "%s\n", text.c_str());
  findings.push_back({std::move(text), 1});
}

std::size_t Findings::size() const {
  std::lock_guard lock(mutex);
  return findings.size();
}

std::string Findings::text(std::size_t index) const {
  std::lock_guard lock(mutex);
  if (index >= findings.size())
    return {};
  const Finding &finding = findings[index];
  return finding.count == 1
             ? finding.text
             : finding.text + "\n  " + std::to_string(finding.count) + " times in all";
}

void Findings::clear() {
  std::lock_guard lock(mutex);
  findings.clear();
  known.clear();
}

std::string planemu::describeBytes(const Warp &warp, std::uint64_t host, std::uint32_t bytes) {
  std::string text = std::to_string(bytes) + (bytes == 1 ? " byte at " : " bytes at ");
  std::uint64_t shared = host - reinterpret_cast<std::uint64_t>(warp.shared);
  if (shared < warp.sharedBytes) {
    text += "shared memory + " + std::to_string(shared);
    for (const Kernel::SharedName &name : warp.launch->kernel->sharedNames)
      if (std::uint64_t inside = shared - name.offset; inside < name.bytes)
        return text + " (" + name.name + " + " + std::to_string(inside) + ")";
    return text;
  }
  std::uint64_t local = host - reinterpret_cast<std::uint64_t>(warp.local);
  if (local < 32ull * warp.localBytes)
    return text + "local memory + " + std::to_string(local % warp.localBytes);
  return text + warp.launch->memory->nameOf(host);
}
