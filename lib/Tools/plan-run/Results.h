//===- Results.h - what a run has produced ----------------------------------===//
//
// Filled by a run on a device (DeviceRun.cpp) or on the reference (ReferenceRun.cpp), printed and
// written by plan-run.cpp; so both say the same in the same form.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_PLAN_RUN_RESULTS_H
#define PLANC_LIB_TOOLS_PLAN_RUN_RESULTS_H

#include "lib/Bundle/Container.h"
#include "lib/Tools/plan-run/Options.h"

#include <map>

namespace planrun {

struct StepResult {
  std::vector<int32_t> tokens; // one a list
  std::vector<int32_t> argmax;
  double ms = 0;
};

/// The values of one edge over all steps, in the order of the .npy file.
struct Dump {
  std::string descr; // "<f4", "<i4"
  int64_t rows = 0;  // of one list
  int64_t dim = 0;
  planc::Bytes data;
};

struct Results {
  planc::Json device;
  std::string program;
  std::vector<StepResult> steps;
  std::vector<float> logits; // [steps, lists, vocab], if they are wanted
  std::map<std::string, Dump> dumps;
  planc::Json memory;
  std::optional<planc::Json> compare;
  bool passed = true;                // the comparison, if there was one
  std::vector<std::string> findings; // of the emulator's checks; also of a run that failed
  std::string counters;              // JSON text, if they are wanted
  std::string trace;                 // the same
};

/// The tokens to feed in a step: the given ones, then the argmax of the step before.
std::vector<int32_t> tokensOfStep(const Options &options, const Results &results, size_t step);

/// The program that the options choose.
planc::Result<const planc::bundle::Program *> chooseProgram(const planc::bundle::Bundle &bundle,
                                                            const Options &options);

/// Appends a stored edge's bytes as the .npy file wants them: bf16 is widened to float.
void appendDump(Dump &dump, planc::bundle::Dtype dtype, planc::ByteView bytes);

/// Memory of this process, shared pages counted by their share: a page that is mapped many times
/// counts once.
uint64_t proportionalBytes();

/// Both take `memory["pss"]` while everything is still there.
planc::Status runOnDevice(const planc::bundle::Bundle &bundle,
                          const planc::bundle::Program &program, const Options &options,
                          Results &results);
planc::Status runOnReference(const planc::bundle::Bundle &bundle,
                             const planc::bundle::Program &program, const Options &options,
                             Results &results);

} // namespace planrun

#endif // PLANC_LIB_TOOLS_PLAN_RUN_RESULTS_H
