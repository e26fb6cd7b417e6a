//===- CountersJson.cpp - counters as text --------------------------------===//
//
// Keys are in a fixed order and tensors are sorted by name, so that equal counters are equal bytes.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Ptx.h"
#include "runtime/emulator/observe/Counters.h"

#include <cstdio>

using namespace planemu;

namespace {

/// Writes the members of an object one after the other.
class Object {
public:
  explicit Object(std::string &out) : out(out) { out += '{'; }
  ~Object() { out += '}'; }
  std::string &key(std::string_view name);
  void number(std::string_view name, std::uint64_t value) { key(name) += std::to_string(value); }

private:
  std::string &out;
  bool first = true;
};

} // namespace

std::string planemu::jsonString(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string &Object::key(std::string_view name) {
  if (!first)
    out += ',';
  first = false;
  out += jsonString(name) + ':';
  return out;
}

/// m * n * k of a modifier .mAnBkC in a statement; 0 if there is none.
static std::uint64_t macsOf(std::string_view statement) {
  for (std::size_t at = statement.find(".m"); at != std::string_view::npos;
       at = statement.find(".m", at + 1)) {
    unsigned m, n, k;
    if (std::sscanf(std::string(statement.substr(at)).c_str(), ".m%un%uk%u", &m, &n, &k) == 3)
      return std::uint64_t(m) * n * k;
  }
  return 0;
}

std::string Counters::json() const {
  std::vector<Executed> classes = endings;
  std::uint64_t macs = 0;
  for (std::size_t n = 0; n < insts.size(); ++n) {
    InstClass cls = launch.kernel->classes[n];
    if (cls == InstClass::Part)
      continue;
    classes[static_cast<unsigned>(cls)].warps += insts[n].warps;
    classes[static_cast<unsigned>(cls)].threads += insts[n].threads;
    if (cls == InstClass::Mma && insts[n].warps)
      macs += insts[n].warps * macsOf(lineText(*launch.ptx, launch.kernel->insts[n].line));
  }
  std::uint64_t warps = 0, threads = 0;
  for (const Executed &count : classes) {
    warps += count.warps;
    threads += count.threads;
  }
  std::string out;
  {
    Object all(out);
    all.number("warp_instructions", warps);
    all.number("thread_instructions", threads);
    {
      Object byClass(all.key("classes"));
      for (unsigned cls = 0; cls < InstClassCount; ++cls) {
        if (!classes[cls].warps)
          continue;
        Object one(byClass.key(nameOf(static_cast<InstClass>(cls))));
        one.number("warp", classes[cls].warps);
        one.number("thread", classes[cls].threads);
      }
    }
    all.number("branches", branches);
    all.number("divergent_branches", divergent);
    static constexpr const char *SpaceNames[] = {"global", "shared", "local"};
    static constexpr const char *DirectionNames[] = {"load", "store", "atomic"};
    for (unsigned space = 0; space < Spaces; ++space) {
      Object ofSpace(all.key(SpaceNames[space]));
      for (unsigned direction = 0; direction < Directions; ++direction) {
        const Traffic &count = traffic[space][direction];
        Object one(ofSpace.key(DirectionNames[direction]));
        one.number("requests", count.requests);
        one.number("bytes", count.bytes);
        one.number(space == Shared ? "wavefronts" : "sectors", count.transfers);
        if (space == Shared)
          one.number("ideal", count.ideal);
      }
    }
    all.number("mma", classes[static_cast<unsigned>(InstClass::Mma)].warps);
    all.number("macs", macs);
    all.number("barriers", classes[static_cast<unsigned>(InstClass::Barrier)].warps);
    // Ranges of one name count as one tensor.
    struct Moved {
      std::uint64_t loaded = 0, stored = 0, loadedSectors = 0, storedSectors = 0;
    };
    std::map<std::string, Moved> byName;
    for (const Tensor &tensor : tensors) {
      Moved &moved = byName[tensor.name];
      moved.loaded += tensor.loaded;
      moved.stored += tensor.stored;
      moved.loadedSectors += tensor.loadedSectors.count();
      moved.storedSectors += tensor.storedSectors.count();
    }
    Object ofTensors(all.key("tensors"));
    for (const auto &[name, moved] : byName) {
      Object one(ofTensors.key(name));
      one.number("load_bytes", moved.loaded);
      one.number("store_bytes", moved.stored);
      one.number("unique_load_sectors", moved.loadedSectors);
      one.number("unique_store_sectors", moved.storedSectors);
    }
  }
  return out;
}
