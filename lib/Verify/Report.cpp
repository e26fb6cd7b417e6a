//===- Report.cpp - verdicts for people and programs ------------------------===//

#include "lib/Verify/VerdictCache.h"

#include <algorithm>
#include <limits>

namespace planc::verify {

size_t Verdict::mutationsCaught() const {
  return size_t(std::count_if(mutations.begin(), mutations.end(),
                              [](const Planted &planted) { return !planted.how.empty(); }));
}

Json toJson(const Verdict &verdict) {
  Json failures = Json::array();
  for (const Failure &failure : verdict.failures)
    failures.push_back({{"where", failure.where}, {"message", failure.message}});
  return {{"name", verdict.name},
          {"groups", verdict.groups},
          {"contract", verdict.contract},
          {"schedule", verdict.schedule},
          {"worst", verdict.worst},
          {"class", verdict.worstClass},
          {"edge", verdict.worstEdge},
          {"mutations_applied", verdict.mutations.size()},
          {"mutations_caught", verdict.mutationsCaught()},
          {"failures", failures}};
}

Verdict verdictFromJson(const Json &json) {
  Verdict verdict;
  verdict.name = json.at("name").get<std::string>();
  verdict.groups = json.at("groups").get<std::vector<int64_t>>();
  verdict.contract = json.at("contract").get<std::string>();
  verdict.schedule = json.at("schedule").get<std::string>();
  const Json &worst = json.at("worst"); // null: infinite, for which JSON has no number
  verdict.worst = worst.is_null() ? std::numeric_limits<double>::infinity() : worst.get<double>();
  verdict.worstClass = json.at("class").get<std::string>();
  verdict.worstEdge = json.at("edge").get<std::string>();
  for (const Json &failure : json.at("failures"))
    verdict.failures.push_back(
        {failure.at("where").get<std::string>(), failure.at("message").get<std::string>()});
  return verdict;
}

Json toJson(const Report &report) {
  Json kernels = Json::array();
  for (const Verdict &verdict : report.kernels)
    kernels.push_back(toJson(verdict));
  return {{"kernels", kernels}, {"ok", report.ok()}};
}

/// "group 8", "groups 8, 17 and 28 more".
static std::string groupsText(const std::vector<int64_t> &groups) {
  if (groups.empty())
    return "no group";
  std::string text = groups.size() == 1 ? "group " : "groups ";
  for (size_t i = 0; i < groups.size() && i < 2; ++i)
    text += (i ? ", " : "") + std::to_string(groups[i]);
  return groups.size() > 2 ? text + fmt::format(" and {} more", groups.size() - 2) : text;
}

/// A line a kind of mutation, by name.
static std::string mutationsText(const Report &report) {
  struct Count {
    std::string name;
    size_t applied = 0, caught = 0;
  };
  std::vector<Count> counts;
  for (const Verdict &verdict : report.kernels)
    for (const Planted &planted : verdict.mutations) {
      auto count = std::find_if(counts.begin(), counts.end(),
                                [&](const Count &c) { return c.name == planted.name; });
      if (count == counts.end())
        count = counts.insert(counts.end(), {planted.name});
      ++count->applied;
      count->caught += !planted.how.empty();
    }
  std::sort(counts.begin(), counts.end(),
            [](const Count &a, const Count &c) { return a.name < c.name; });
  std::string text = fmt::format("\n{:18}  caught\n", "mutation");
  for (const Count &count : counts)
    text += fmt::format("{:18}  {}/{}\n", count.name, count.caught, count.applied);
  return text;
}

std::string toText(const Report &report) {
  size_t width = 6;
  for (const Verdict &verdict : report.kernels)
    width = std::max(width, verdict.name.size());
  bool mutated = std::any_of(report.kernels.begin(), report.kernels.end(),
                             [](const Verdict &v) { return !v.mutations.empty(); });
  std::string text = fmt::format("{:{}}  {:13}  {:>8}  {:14}  {}{}\n", "kernel", width, "contract",
                                 "of bound", "class", mutated ? "caught     " : "", "groups");
  size_t applied = 0, caught = 0, failed = 0;
  for (const Verdict &verdict : report.kernels) {
    std::string count = fmt::format("{}/{}", verdict.mutationsCaught(), verdict.mutations.size());
    text +=
        fmt::format("{:{}}  {:13}  {:8.3f}  {:14}  {}{}{}\n", verdict.name, width, verdict.contract,
                    verdict.worst, verdict.worstClass, mutated ? fmt::format("{:11}", count) : "",
                    groupsText(verdict.groups), verdict.failures.empty() ? "" : "  FAILED");
    applied += verdict.mutations.size();
    caught += verdict.mutationsCaught();
    failed += !verdict.failures.empty();
  }
  for (const Verdict &verdict : report.kernels)
    for (const Failure &failure : verdict.failures)
      text += fmt::format("\n{}, {}, {}:\n  {}\n", verdict.name, groupsText(verdict.groups),
                          failure.where, failure.message);
  if (mutated)
    text += mutationsText(report) + fmt::format("mutations: {} of {} caught\n", caught, applied);
  text += failed ? fmt::format("{} of {} kernels failed\n", failed, report.kernels.size())
                 : fmt::format("all {} kernels hold\n", report.kernels.size());
  return text;
}

} // namespace planc::verify
