//===- Driver.h - the state behind the exported driver functions ----------===//
//
// One emulated device with one context, its primary one. Work on a stream is done when the call
// that enqueues it returns; that is one of the orders CUDA allows, and it makes streams and events
// bookkeeping. As on a GPU, a kernel's fault is not the result of its launch: it sticks to the
// context and every later call returns it.
//
// Every exported function takes the lock. Handles are pointers to these objects, known by the sets
// here, so that a wrong handle is an error and never a crash.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_DRIVER_H
#define PLANEMU_DRIVER_H

#include "runtime/CudaAbi.h"
#include "runtime/emulator/Decoder.h"
#include "runtime/emulator/Memory.h"
#include "runtime/emulator/Pool.h"
#include "runtime/emulator/observe/Findings.h"
#include "runtime/emulator/observe/RaceHistory.h"

#include <chrono>
#include <set>
#include <unordered_map>
#include <variant>

namespace planemu {

using namespace cudaabi;

/// A device to report. `sm` decides which modules load; sizes are what the launch checks use.
struct DeviceModel {
  const char *key; // of PLANEMU_TARGET
  const char *name;
  int sm; // 10 * major + minor
  int multiprocessors;
  int sharedPerBlockOptin, sharedPerMultiprocessor; // bytes
  int l2Bytes;
  int threadsPerMultiprocessor;
  bool integrated;
  std::uint64_t memory; // bytes
};

/// The device PLANEMU_TARGET names, or null.
const DeviceModel *findDeviceModel(const std::string &key);

struct Module;

struct FunctionHandle {
  Module *module;
  std::unique_ptr<Kernel> kernel;
  std::uint32_t dynamicSharedLimit;
};

struct Module {
  std::unique_ptr<PtxModule> ptx;
  std::map<std::string, std::unique_ptr<FunctionHandle>> functions;
  struct Global {
    std::uint64_t address, bytes;
  };
  std::map<std::string, Global> globals;
};

struct KernelNode {
  std::shared_ptr<Module> module; // keeps the code of graphs alive
  FunctionHandle *function;
  std::uint32_t grid[3], block[3], dynamicShared;
  std::vector<std::uint8_t> parameters;
  std::string label;
};
struct CopyNode {
  std::uint64_t to, from, bytes;
  bool toDevice, fromDevice;
};
struct FillNode {
  std::uint64_t to, count;
  std::uint32_t value;
  unsigned width; // bytes of an element
};
using Node = std::variant<KernelNode, CopyNode, FillNode>;

struct Graph {
  std::vector<Node> nodes;
};

struct Stream {
  std::unique_ptr<Graph> capture; // recording if set
  bool invalidated = false;
  unsigned mode = 0;
  std::thread::id thread;
};

struct Event {
  bool timed = true, recorded = false, captured = false;
  std::chrono::steady_clock::time_point time;
};

class Driver {
public:
  static Driver &get();

  CUresult initialize();
  bool initialized() const { return model != nullptr; }

  std::mutex mutex;
  const DeviceModel *model = nullptr;
  const InstructionSet *instructions = nullptr;

  unsigned retained = 0; // of the primary context
  CUresult sticky = CUDA_SUCCESS;
  std::unique_ptr<Memory> memory;
  std::map<void *, std::size_t> hostAllocations;
  std::map<Module *, std::shared_ptr<Module>> modules;
  std::map<FunctionHandle *, Module *> functions;
  std::map<Stream *, std::unique_ptr<Stream>> streams;
  std::map<Event *, std::unique_ptr<Event>> events;
  std::map<Graph *, std::unique_ptr<Graph>> graphs, execs;
  Pool pool;
  std::uint64_t maxSteps = 0; // of one warp in a launch; 0: DefaultMaxSteps
  bool maxStepsFromEnvironment = false;
  std::uint64_t scheduleSeed = 0;

  unsigned checks = 0; // of planemu_check
  Findings findings;
  RaceHistory races;
  bool counts = false;
  std::vector<std::string> launchCounters; // a JSON object a launch

  /// Turns on the checks of PLANEMU_CHECKS, and prints what they find.
  CUresult setChecks(const std::string &list);
  /// Tells `memory` what to keep for the checks.
  void observeMemory();
  /// Runs one node now. A kernel's fault goes to `sticky`.
  CUresult execute(const Node &node);
  /// Runs the node, or records it if the stream is being captured.
  CUresult enqueue(CUstream stream, Node node);
  /// CUDA_SUCCESS, or why the caller may not do what a capture in progress forbids (then the
  /// capture is invalid).
  CUresult checkNoCapture();
  /// Frees everything the primary context owns.
  void destroyContext();

private:
  CUresult runKernel(const KernelNode &node);
};

/// Remembers a message for planemu_last_error; returns `result`.
CUresult failWith(CUresult result, std::string message);
std::string lastMessage();
/// The label of the calling thread's next launch.
void setLaunchLabel(std::string label);
/// That label, cleared.
std::string takeLaunchLabel();
/// A function's start: lock and checks. `context` also asks for a current context without a sticky
/// error.
CUresult enter(bool context);

/// For exported functions: holds the lock; returns from the function if the driver or the context
/// is not usable.
#define PLANEMU_ENTER(NeedsContext)                                                                \
  Driver &driver = Driver::get();                                                                  \
  std::lock_guard lock(driver.mutex);                                                              \
  if (CUresult entered = enter(NeedsContext); entered != CUDA_SUCCESS)                             \
  return entered

} // namespace planemu

/// Starts the definition of an exported function.
#define PLANEMU_EXPORT extern "C" __attribute__((visibility("default"))) cudaabi::CUresult

#endif // PLANEMU_DRIVER_H
