//===- Trace.h - when the groups of a run ran, for a viewer -----------------===//
//
// A trace in the trace-event format that Perfetto and Chrome's tracing page open: the device is a
// process, the thread that calls planrt and the stream are its tracks. Everything but the times is
// the same in every run.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_PLAN_RUN_TRACE_H
#define PLANC_LIB_TOOLS_PLAN_RUN_TRACE_H

#include "lib/Bundle/Container.h"

#include "include/planrt/planrt.h"

#include <chrono>

namespace planrun {

class Trace {
public:
  using Clock = std::chrono::steady_clock;

  /// `device` is plan-run's description of it. The trace's clock starts now.
  Trace(const planc::bundle::Program &program, const planc::Json &device);

  /// One launch list: of step `step` for `lists` token lists from `first` on. The slices are those
  /// of planrt_step_slice, relative to `begin`.
  void addStep(size_t step, size_t first, size_t lists, Clock::time_point begin,
               Clock::time_point end, const std::vector<planrt_slice> &slices);

  /// The file: one event a line.
  std::string text() const;

private:
  /// Microseconds of the trace's clock.
  double at(Clock::time_point time) const;
  void addSlice(uint32_t track, std::string name, const char *category, double start,
                double duration, planc::Json args);

  const planc::bundle::Program &program;
  Clock::time_point origin = Clock::now();
  std::vector<planc::Json> events;
};

} // namespace planrun

#endif // PLANC_LIB_TOOLS_PLAN_RUN_TRACE_H
