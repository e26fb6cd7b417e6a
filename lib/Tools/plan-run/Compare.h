//===- Compare.h - a device's launches, judged by the reference -------------===//
//
// Before a launch its inputs and states are read back, after it its outputs and states; the
// reference evaluates the same kernel on those inputs. So every launch is judged on its own, and an
// error of an early one is not blamed on a later one.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_PLAN_RUN_COMPARE_H
#define PLANC_LIB_TOOLS_PLAN_RUN_COMPARE_H

#include "lib/Bundle/Container.h"

#include "include/planrt/planrt.h"

#include <memory>

namespace planrun {

class Comparison {
public:
  /// The handles are borrowed. Fails if the bundle's plan cannot be read.
  static planc::Result<std::unique_ptr<Comparison>>
  open(const planc::bundle::Bundle &bundle, const planc::bundle::Program &program, uint32_t threads,
       const planrt_weights *weights, const planrt_session *session, const planrt_step *step);
  ~Comparison();

  void beginStep(size_t step);
  /// Around the launch of an entry of the launch list.
  planc::Status before(size_t launch);
  planc::Status after(size_t launch);

  bool passed() const;
  /// {"passed", "first": null or {step, group, node, edge, text}, "edges": [..]}: per edge the
  /// worst of all steps.
  planc::Json summary() const;

private:
  struct Impl;
  explicit Comparison(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace planrun

#endif // PLANC_LIB_TOOLS_PLAN_RUN_COMPARE_H
