//===- Step.h - one program, run on sequences of a session ------------------===//
//
// The launch list is cut into maximal runs of host and of device entries. A device run starts with
// one copy of the *block* to the device (step inputs, and what host ops have written), starts its
// kernels and copies back what host ops read. The first step starts everything one by one; the
// second captures each device run as a graph, which later steps replay: all that changes is in the
// block.
//
// begin() goes up to the first device run and leaves it running; wait() does the rest. Between the
// two the step is *in flight*, and ends either committed or abandoned.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_STEP_H
#define PLANRT_STEP_H

#include "runtime/LaunchList.h"
#include "runtime/StepInputs.h"
#include "runtime/Timeline.h"

#include <functional>

namespace planrt {

struct StepOptions {
  bool unshared = false;
  bool noGraph = false;
  bool debug = false;
  bool timeline = false;
};

/// Called before and after every entry of the launch list; an error ends the step.
using Visitor =
    std::function<planc::Status(size_t index, const planc::bundle::Launch &, bool done)>;

class Step {
public:
  static planc::Result<std::unique_ptr<Step>>
  open(std::shared_ptr<Session> session, const std::string *program, const StepOptions &options);
  /// Gives up a step in flight.
  ~Step();

  /// One token for each sequence, or (`tokens` null) the one that its last step gave.
  planc::Status begin(std::span<const uint32_t> sequences, const int32_t *tokens,
                      const Visitor *visit = nullptr);
  /// Refuses `next` where the program has nothing to choose it from.
  planc::Status checkNext(const int32_t *next) const;
  /// Ends the step in flight; `next`, where not null, receives the argmax of each sequence.
  planc::Status wait(int32_t *next);
  /// A visitor is at work.
  bool isVisited() const { return visiting.has_value(); }
  /// From any thread.
  void cancel() { cancelled.store(true, std::memory_order_relaxed); }

  planc::Status logits(uint32_t row, std::span<float> out) const;
  planc::Status readBuffer(const std::string &edge, std::span<std::byte> out) const;
  planc::Result<Timeline::Slice> slice(size_t entry) const;

  const std::string &image() const { return kernels->image(); }
  const Session &session() const { return *owner; }
  const planc::bundle::Program &program() const { return plan; }
  uint64_t workspaceBytes() const { return memory->workspaceBytes(); }
  uint64_t scratchBytes() const { return memory->scratchBytes(); }

private:
  struct Run {
    bool device = false;
    size_t begin = 0, end = 0; // entries of the launch list
    std::vector<const planc::bundle::Buffer *> readBack;
    std::string failure; // what a late error says
    cudaabi::CUgraphExec graph = nullptr;
  };

  Step(std::shared_ptr<Session> session, const planc::bundle::Program &program,
       const StepOptions &options);

  planc::Status prepareDevice();
  void cutRuns();
  /// An edge that is stored.
  const planc::bundle::Buffer &buffer(const std::string &edge) const;

  bool visited() const { return visitor || options.debug; }
  std::span<const Row> rows() const { return {rowStore.data(), rowCount}; }

  // Each goes on where the last one has stopped.
  planc::Status executeUpToDevice();
  planc::Status executeRest();
  planc::Status finishRun(Run &run);
  /// Runs the body of begin() or wait(); a step that throws is given up.
  template <class Body> planc::Status guarded(Body body);
  /// After success or failure.
  planc::Status end(planc::Status status, const int32_t *next);
  void giveUp();

  planc::Status checkCancelled() const;
  planc::Status executeHost(const Run &run);
  planc::Status executeHostOp(const planc::bundle::HostOp &op);
  planc::Status launch(Run &run);
  planc::Status replay(const Run &run);
  planc::Status enqueue(const Run &run);
  planc::Status startEntry(size_t entry);
  planc::Status capture(Run &run);
  planc::Status executeVisited(const Run &run);
  planc::Status visit(size_t entry, bool done);
  planc::Status copySharedBlocks();
  planc::Status copyBlock(bool wait);
  planc::Status copyBack(const planc::bundle::Buffer &buffer);
  planc::Status synchronize(std::string_view what);

  std::shared_ptr<Session> owner;
  const planc::bundle::Program &plan;
  StepOptions options;
  DevicePtr device;
  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<StepMemory> memory;
  std::unique_ptr<StepInputs> inputs;
  std::unique_ptr<LaunchList> launches;
  std::unique_ptr<Timeline> timeline; // if asked for
  std::vector<Run> runs;
  cudaabi::CUstream stream = nullptr;
  const planc::bundle::Buffer *logitsBuffer = nullptr;
  bool outlives = false; // edges keep their memory after their last use

  uint64_t steps = 0; // that have succeeded
  std::vector<Row> rowStore;
  size_t rowCount = 0;         // of the step in flight, or of the last one
  std::vector<int32_t> argmax; // of every row of the program

  // The step in flight.
  bool inFlight = false;
  bool deviceStarted = false;
  bool wantsArgmax = false;
  size_t nextRun = 0;
  const Visitor *visitor = nullptr;
  std::optional<std::pair<uint32_t, bool>> visiting; // group and `done`, inside a visitor
  std::atomic<bool> cancelled = false;
};

} // namespace planrt

#endif // PLANRT_STEP_H
