//===- Step.h - one program, run on sequences of a session ------------------===//
//
// The launch list is cut into maximal runs of host and of device entries. A device run starts with
// one copy of the *block* to the device (step inputs, and what host ops have written), starts its
// kernels and copies back what host ops read. The first step starts everything one by one; the
// second captures each device run as a graph, which later steps replay: all that changes is in the
// block.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_STEP_H
#define PLANRT_STEP_H

#include "runtime/Session.h"
#include "runtime/StepMemory.h"

#include <functional>

namespace planrt {

struct StepOptions {
  bool unshared = false;
  bool noGraph = false;
};

/// Called before and after every entry of the launch list; an error ends the step.
using Visitor =
    std::function<planc::Status(size_t index, const planc::bundle::Launch &, bool done)>;

class Step {
public:
  static planc::Result<std::unique_ptr<Step>>
  open(std::shared_ptr<Session> session, const std::string *program, const StepOptions &options);
  ~Step();

  /// One token for each sequence; gives the argmax of each. `visit` may be null.
  planc::Result<std::vector<int32_t>> run(std::span<const uint32_t> sequences,
                                          std::span<const int32_t> tokens, const Visitor &visit);

  planc::Status logits(uint32_t row, std::span<float> out) const;
  planc::Status readBuffer(const std::string &edge, std::span<std::byte> out) const;

  const std::string &image() const { return kernels->image(); }
  const Session &session() const { return *owner; }
  const planc::bundle::Program &program() const { return plan; }
  uint64_t workspaceBytes() const { return memory->workspaceBytes(); }
  uint64_t scratchBytes() const { return memory->scratchBytes(); }

private:
  /// A kernel start with everything that does not change.
  struct Start {
    const Kernels::Loaded *kernel = nullptr;
    std::vector<CUdeviceptr> values;
    std::vector<void *> pointers; // to values
    std::string label;            // for the emulator's messages
  };
  struct Run {
    bool device = false;
    size_t begin = 0, end = 0; // entries of the launch list
    std::vector<const planc::bundle::Buffer *> readBack;
    cudaabi::CUgraphExec graph = nullptr;
  };

  Step(std::shared_ptr<Session> session, const planc::bundle::Program &program,
       const StepOptions &options)
      : owner(std::move(session)), plan(program), options(options),
        device(owner->weights()->device()) {}

  void bindArguments();
  CUdeviceptr address(const planc::bundle::Arg &arg, size_t launch) const;
  void cutRuns();
  /// An edge that is stored.
  const planc::bundle::Buffer &buffer(const std::string &edge) const;

  void fillBlock(std::span<const Row> rows);
  template <class T> std::span<T> input(const std::string &name);
  planc::Status execute(const Visitor &visit);
  planc::Status executeDevice(Run &run);
  planc::Status enqueue(const Run &run);
  planc::Status capture(Run &run);
  planc::Status executeVisited(const Run &run, const Visitor &visit);
  planc::Status start(size_t index);
  planc::Status copyBlock(bool wait);
  planc::Status copyBack(const planc::bundle::Buffer &buffer);
  planc::Status synchronize(const std::string &what);
  planc::Status executeHost(const planc::bundle::HostOp &op);

  std::shared_ptr<Session> owner;
  const planc::bundle::Program &plan;
  StepOptions options;
  DevicePtr device;
  std::unique_ptr<Kernels> kernels;
  std::vector<Start> starts; // by entry of the launch list
  std::vector<Run> runs;
  cudaabi::CUstream stream = nullptr;

  std::unique_ptr<StepMemory> memory;
  bool outlives = false; // edges keep their memory after their last use

  uint64_t steps = 0; // that were started on the device
  bool deviceStarted = false;
  std::vector<Row> lastRows;
  std::vector<int32_t> tokens; // argmax of every row of the program
  const planc::bundle::Buffer *logitsBuffer = nullptr;
  std::optional<std::pair<uint32_t, bool>> visiting; // group and `done`, inside a visitor
};

} // namespace planrt

#endif // PLANRT_STEP_H
