//===- Counters.cpp - what launches cost, as a table and against another run ==//
//
// See Counters.h.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/plan-run/Counters.h"

#include "lib/Support/File.h"

#include <algorithm>
#include <set>

using namespace planc;
using namespace planrun;

uint64_t LaunchCounters::get(const std::string &key) const {
  auto at = values.find(key);
  return at == values.end() ? 0 : at->second;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Puts the leaves of the tree under their paths; gives the path of a leaf that is no whole number.
static std::string flatten(const Json &tree, const std::string &path, LaunchCounters &launch) {
  if (tree.is_number_unsigned()) {
    launch.keys.push_back(path);
    launch.values[path] = tree.get<uint64_t>();
    return "";
  }
  if (!tree.is_object())
    return path;
  for (const auto &[key, value] : tree.items())
    if (std::string fault = flatten(value, path.empty() ? key : path + "." + key, launch);
        !fault.empty())
      return fault;
  return "";
}

static Status readLaunch(const Json &entry, LaunchCounters &launch) {
  auto text = [&](const char *key) {
    return entry.is_object() && entry.contains(key) && entry[key].is_string();
  };
  if (!text("kernel") || !text("label") || !entry.contains("counters") ||
      !entry["counters"].is_object())
    return inputError("expected an object with a kernel, a label and counters");
  launch.kernel = entry["kernel"];
  launch.label = entry["label"];
  // What was launched is compared too.
  for (const char *extents : {"grid", "block"})
    if (entry.contains(extents) && entry[extents].is_array())
      for (size_t i = 0; i < entry[extents].size(); ++i)
        if (std::string fault =
                flatten(entry[extents][i], fmt::format("{}.{}", extents, "xyz"[i % 3]), launch);
            !fault.empty())
          return inputError("{} is not a whole number", fault);
  if (std::string fault = flatten(entry["counters"], "", launch); !fault.empty())
    return inputError("counter {:.200} is not a whole number", fault);
  return {};
}

Result<std::vector<LaunchCounters>> planrun::parseCounters(std::string_view text,
                                                           const std::string &where) {
  Result<Json> json = parseJson(text);
  if (!json.ok())
    return fileError(where, "{}", json.error().message);
  if (!json->is_object() || !json->contains("version") || !json->contains("launches") ||
      !(*json)["launches"].is_array())
    return fileError(where, "is not a file of counters: it lacks a version or launches");
  if ((*json)["version"] != 1)
    return fileError(where, "counters of version {}, expected 1", (*json)["version"].dump());
  std::vector<LaunchCounters> launches;
  for (const Json &entry : (*json)["launches"]) {
    LaunchCounters &launch = launches.emplace_back();
    if (Status status = readLaunch(entry, launch); !status.ok())
      return fileError(where, "launch {}: {}", launches.size() - 1, status.error().message);
  }
  return launches;
}

Result<std::vector<LaunchCounters>> planrun::readCounters(const std::string &path) {
  Result<Bytes> content = readFile(path);
  if (!content.ok())
    return content.takeError();
  return parseCounters(asText(*content), path);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Columns as wide as their widest cell; the first `left` are aligned to the left.
static std::string layOut(const std::vector<std::vector<std::string>> &rows, size_t left) {
  std::vector<size_t> widths(rows[0].size());
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += i < left ? fmt::format("  {:<{}}", row[i], widths[i])
                       : fmt::format("  {:>{}}", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

namespace {
/// A row of the table of costs: the launches of one kernel.
struct Cost {
  std::string kernel, group;
  uint64_t launches = 0, warp = 0, asked = 0, unique = 0, wavefronts = 0, ideal = 0, mma = 0,
           barriers = 0;

  void add(const LaunchCounters &launch) {
    ++launches;
    warp += launch.get("warp_instructions");
    for (const char *what : {"load", "store", "atomic"}) {
      asked += launch.get(fmt::format("global.{}.bytes", what));
      wavefronts += launch.get(fmt::format("shared.{}.wavefronts", what));
      ideal += launch.get(fmt::format("shared.{}.ideal", what));
    }
    for (const auto &[key, value] : launch.values)
      if (key.starts_with("tensors.") && key.ends_with("_sectors"))
        unique += value * 32; // bytes of a sector
    mma += launch.get("mma");
    barriers += launch.get("barriers");
  }
};
} // namespace

/// The number in `group 7 "rule" ...`, or the label.
static std::string groupOf(const std::string &label) {
  if (!label.starts_with("group "))
    return label.empty() ? "-" : label;
  return label.substr(6, label.find(' ', 6) - 6);
}

std::string planrun::costTable(const std::vector<LaunchCounters> &launches) {
  std::vector<Cost> costs;
  std::map<std::string, size_t> rows;
  std::map<std::string, std::set<std::string>> groups; // of a kernel
  Cost total{"total", "", 0, 0, 0, 0, 0, 0, 0, 0};
  for (const LaunchCounters &launch : launches) {
    auto [at, isNew] = rows.try_emplace(launch.kernel, costs.size());
    if (isNew)
      costs.push_back({launch.kernel, groupOf(launch.label), 0, 0, 0, 0, 0, 0, 0, 0});
    costs[at->second].add(launch);
    groups[launch.kernel].insert(groupOf(launch.label));
    total.add(launch);
  }
  for (Cost &cost : costs)
    if (size_t count = groups[cost.kernel].size(); count > 1)
      cost.group += fmt::format(" and {} more", count - 1);
  std::sort(costs.begin(), costs.end(), [](const Cost &a, const Cost &b) {
    return a.warp != b.warp ? a.warp > b.warp : a.kernel < b.kernel;
  });
  costs.push_back(total);
  std::vector<std::vector<std::string>> cells = {
      {"kernel", "group", "launches", "warp instructions", "global bytes", "unique bytes",
       "shared wavefronts", "ideal", "mma", "barriers"}};
  for (const Cost &cost : costs) {
    std::vector<std::string> &row = cells.emplace_back();
    row = {cost.kernel, cost.group};
    for (uint64_t value : {cost.launches, cost.warp, cost.asked, cost.unique, cost.wavefronts,
                           cost.ideal, cost.mma, cost.barriers})
      row.push_back(fmt::format("{}", value));
  }
  return layOut(cells, 2);
}

//===----------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------===//

namespace {
/// Launches by kernel and label, in the order in which these first come.
class Launches {
public:
  using Key = std::pair<std::string, std::string>;

  explicit Launches(const std::vector<LaunchCounters> &all) {
    for (const LaunchCounters &launch : all) {
      Key key(launch.kernel, launch.label);
      auto [at, isNew] = byKey.try_emplace(key);
      if (isNew)
        order.push_back(key);
      at->second.push_back(&launch);
    }
  }
  std::vector<const LaunchCounters *> find(const Key &key) const {
    auto at = byKey.find(key);
    return at == byKey.end() ? std::vector<const LaunchCounters *>() : at->second;
  }

  std::vector<Key> order;

private:
  std::map<Key, std::vector<const LaunchCounters *>> byKey;
};
} // namespace

std::vector<CounterDifference> planrun::compareCounters(const std::vector<LaunchCounters> &a,
                                                        const std::vector<LaunchCounters> &b) {
  Launches left(a), right(b);
  std::vector<Launches::Key> keys = left.order;
  for (const Launches::Key &key : right.order)
    if (left.find(key).empty())
      keys.push_back(key);
  std::vector<CounterDifference> differences;
  std::map<std::tuple<std::string, std::string, uint64_t, uint64_t>, size_t> seen;
  auto add = [&](const Launches::Key &key, const std::string &counter, uint64_t va, uint64_t vb) {
    if (va == vb)
      return;
    auto [at, isNew] = seen.try_emplace({key.first, counter, va, vb}, differences.size());
    if (isNew)
      differences.push_back({key.first, key.second, counter, va, vb, 1});
    else
      ++differences[at->second].launches;
  };
  for (const Launches::Key &key : keys) {
    std::vector<const LaunchCounters *> la = left.find(key), lb = right.find(key);
    add(key, "launches", la.size(), lb.size());
    for (size_t i = 0; i < std::min(la.size(), lb.size()); ++i) {
      for (const std::string &counter : la[i]->keys)
        add(key, counter, la[i]->get(counter), lb[i]->get(counter));
      for (const std::string &counter : lb[i]->keys)
        if (!la[i]->values.count(counter))
          add(key, counter, 0, lb[i]->get(counter));
    }
  }
  return differences;
}

std::string planrun::differenceTable(const std::vector<CounterDifference> &differences) {
  if (differences.empty())
    return "the counters are equal\n";
  std::vector<std::vector<std::string>> cells = {
      {"kernel", "launch", "counter", "a", "b", "b - a", "change"}};
  for (const CounterDifference &d : differences) {
    std::string launch = d.label.empty() ? "-" : d.label;
    if (d.launches > 1)
      launch += fmt::format(" and {} more", d.launches - 1);
    std::string delta = d.b > d.a ? fmt::format("+{}", d.b - d.a) : fmt::format("-{}", d.a - d.b);
    cells.push_back(
        {d.kernel, launch, d.key, fmt::format("{}", d.a), fmt::format("{}", d.b), delta,
         d.a ? fmt::format("{:+.1f} %", (double(d.b) / double(d.a) - 1) * 100) : "new"});
  }
  return layOut(cells, 3);
}

Json planrun::differenceJson(const std::vector<CounterDifference> &differences) {
  Json list = Json::array();
  for (const CounterDifference &d : differences)
    list.push_back({{"kernel", d.kernel},
                    {"label", d.label},
                    {"launches", d.launches},
                    {"counter", d.key},
                    {"a", d.a},
                    {"b", d.b}});
  return {{"equal", differences.empty()}, {"differences", list}};
}
