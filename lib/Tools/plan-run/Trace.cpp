//===- Trace.cpp - when the groups of a run ran, for a viewer ---------------===//
//
// See Trace.h.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/plan-run/Trace.h"

#include <cmath>

using namespace planc;
using namespace planrun;

static constexpr int process = 1;

static Json metadata(const char *what, std::optional<uint32_t> track, Json args) {
  Json event = {{"ph", "M"}, {"name", what}, {"pid", process}, {"args", std::move(args)}};
  if (track)
    event["tid"] = *track;
  return event;
}

Trace::Trace(const bundle::Program &program, const Json &device) : program(program) {
  std::string name =
      fmt::format("{}: {}, {}", device["name"].get<std::string>(),
                  device["product"].get<std::string>(), device["image"].get<std::string>());
  events.push_back(metadata("process_name", {}, {{"name", name}}));
  static constexpr const char *tracks[] = {"host thread", "stream"}; // as planrt_slice counts them
  for (uint32_t i = 0; i < std::size(tracks); ++i) {
    events.push_back(metadata("thread_name", i, {{"name", tracks[i]}}));
    events.push_back(metadata("thread_sort_index", i, {{"sort_index", i}}));
  }
}

double Trace::at(Clock::time_point time) const {
  return std::chrono::duration<double, std::micro>(time - origin).count();
}

/// Nanoseconds are all that the clocks give.
static double rounded(double microseconds) { return std::round(microseconds * 1000) / 1000; }

void Trace::addSlice(uint32_t track, std::string name, const char *category, double start,
                     double duration, Json args) {
  // The end is rounded and not the duration: slices that follow each other must not overlap.
  double begin = rounded(start), end = rounded(start + duration);
  events.push_back({{"ph", "X"},
                    {"name", std::move(name)},
                    {"cat", category},
                    {"pid", process},
                    {"tid", track},
                    {"ts", begin},
                    {"dur", rounded(end - begin)},
                    {"args", std::move(args)}});
}

void Trace::addStep(size_t step, size_t first, size_t lists, Clock::time_point begin,
                    Clock::time_point end, const std::vector<planrt_slice> &slices) {
  double start = at(begin);
  addSlice(0, fmt::format("step {}", step), "step", start, at(end) - start,
           {{"step", step}, {"program", program.name}, {"first_list", first}, {"lists", lists}});
  for (const planrt_slice &slice : slices) {
    const bundle::Launch &launch = program.launch_list[slice.launch.index];
    Json args = {{"group", launch.group},
                 {"rule", launch.rule},
                 {"kernel", launch.kernel ? Json(*launch.kernel) : Json()},
                 {"nodes", launch.nodes},
                 {"step", step}};
    addSlice(slice.track, launch.rule, "group", start + slice.start, slice.duration,
             std::move(args));
  }
}

std::string Trace::text() const {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (size_t i = 0; i < events.size(); ++i)
    text += events[i].dump() + (i + 1 < events.size() ? ",\n" : "\n]}\n");
  return text;
}
