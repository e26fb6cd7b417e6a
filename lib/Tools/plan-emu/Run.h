//===- Run.h - one kernel on the emulator ----------------------------------===//
//
// A session with libplanemu: one module, its kernels, one kernel's arguments.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_PLAN_EMU_RUN_H
#define PLANC_LIB_TOOLS_PLAN_EMU_RUN_H

#include "lib/Support/Json.h"
#include "lib/Tools/plan-emu/Emulator.h"
#include "lib/Tools/plan-emu/Options.h"

namespace planemutool {

/// What the driver says of a kernel.
struct KernelInfo {
  CUfunction function = nullptr;
  std::string name;
  struct Parameter {
    uint64_t offset = 0, bytes = 0;
  };
  std::vector<Parameter> parameters;
  int maxThreads = 0, sharedBytes = 0, localBytes = 0; // of a CTA; static; of a thread
};

struct RunResults {
  double ms = 0; // of all launches
  uint64_t warpInstructions = 0;
  std::vector<std::string> findings;
  std::string counters; // JSON text
};

class Run {
public:
  Run(const Emulator &emulator, const Options &options) : emulator(emulator), options(options) {}

  /// Sets the emulator up and loads the file's kernels, in the order of their names.
  planc::Result<std::vector<KernelInfo>> open();
  /// What the loader had to say of a kernel, one warning a line.
  std::string warnings(const std::string &kernel) const;

  /// Runs the kernel on `arguments`, whose data it replaces by what the kernel left in the buffers.
  /// `results` has findings and counters also when it fails.
  planc::Status launch(const KernelInfo &kernel, std::vector<Argument> &arguments,
                       RunResults &results);

private:
  planc::Status configure(std::string_view text);
  planc::Status load(planc::Bytes content, CUmodule &module);
  planc::Result<KernelInfo> describe(CUfunction function) const;
  planc::Status checkArguments(const KernelInfo &kernel,
                               const std::vector<Argument> &arguments) const;
  planc::Status allocate(std::vector<Argument> &arguments, std::vector<CUdeviceptr> &addresses);
  planc::Status execute(const KernelInfo &kernel, std::vector<void *> &pointers);

  const Emulator &emulator;
  const Options &options;
  std::string log;
};

} // namespace planemutool

#endif // PLANC_LIB_TOOLS_PLAN_EMU_RUN_H
