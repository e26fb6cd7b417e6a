//===- Driver.h - the state behind the exported driver functions ----------===//
//
// One emulated device, any number of contexts. Work on a stream is done before the call that
// enqueues it returns, unless it waits for a host function, which runs on a thread of its own; what
// waits is a Task, and whoever finishes the last thing it waits for runs it. Both are orders that
// CUDA allows. As on a GPU, a kernel's fault is not the result of its launch: it sticks to the
// context and every later call returns it.
//
// Every exported function takes the lock, and holds it while kernels run; host functions run
// without it.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_DRIVER_H
#define PLANEMU_DRIVER_H

#include "planemu/planemu.h"
#include "runtime/emulator/Pool.h"
#include "runtime/emulator/driver/Handles.h"
#include "runtime/emulator/driver/Objects.h"
#include "runtime/emulator/observe/Findings.h"
#include "runtime/emulator/observe/RaceHistory.h"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace planemu {

constexpr int DriverVersion = 13000;                    // CUDA 13.0
constexpr int LeastPriority = 0, GreatestPriority = -5; // of streams; without effect

/// A device to report. `sm` decides which modules load; sizes are what the launch checks use.
struct DeviceModel {
  const char *key; // of PLANEMU_TARGET
  const char *name;
  int sm; // 10 * major + minor
  int multiprocessors;
  int sharedPerBlockOptin, sharedPerMultiprocessor; // bytes
  int l2Bytes;
  int threadsPerMultiprocessor, blocksPerMultiprocessor;
  bool integrated;
  std::uint64_t memory; // bytes
};

/// The device PLANEMU_TARGET names, or null.
const DeviceModel *findDeviceModel(const std::string &key);
/// "gb10, h200, ...".
std::string knownDeviceModels();
/// False if the model has no such attribute.
bool deviceAttribute(const DeviceModel &model, CUdevice_attribute attribute, int &value);

class Driver {
public:
  static Driver &get();

  CUresult initialize();
  bool initialized() const { return model != nullptr; }

  std::mutex mutex;
  std::condition_variable changed; // a task is done
  const DeviceModel *model = nullptr;
  const InstructionSet *instructions = nullptr;
  std::string chosenTarget; // planemu_set_target
  Pool pool;
  std::uint64_t maxSteps = 0; // of one warp in a launch; 0: DefaultMaxSteps
  bool maxStepsFromEnvironment = false;
  std::uint64_t scheduleSeed = 0;
  unsigned jit = PLANEMU_JIT_OFF; // planemu_jit_mode
  bool jitFromEnvironment = false;
  const planemu_jit_compiler *compiler = nullptr; // once it was asked for

  unsigned checks = 0; // of planemu_check
  Findings findings;
  RaceHistory races;
  bool counts = false;
  std::vector<std::string> launchCounters; // a JSON object a launch

  /// Compiles the blocks of kernels as planemu_set_jit says.
  CUresult setJit(unsigned mode);
  /// Turns on the checks of PLANEMU_CHECKS, and prints what they find.
  CUresult setChecks(const std::string &list);
  /// Tells the memory of all contexts what to keep for the checks.
  void observeMemory();

  std::shared_ptr<Context> primary;
  unsigned retained = 0; // of the primary context
  unsigned primaryFlags = 0;
  Handles<Context, CUcontext> contexts;
  Handles<Module, CUmodule> modules;
  Handles<FunctionHandle, CUfunction> functions;
  Handles<Library, CUlibrary> libraries;
  Handles<LibraryKernel, CUkernel> kernels;
  Handles<LinkState, CUlinkState> links;
  Handles<Stream, CUstream> streams;
  Handles<Event, CUevent> events;
  Handles<Graph, CUgraph> graphs;
  Handles<GraphNode, CUgraphNode> nodes;
  Handles<GraphExec, CUgraphExec> execs;
  Handles<MemoryPool, CUmemoryPool> pools;
  std::shared_ptr<MemoryPool> defaultPool, currentPool;
  std::map<std::uint64_t, HostRange> hostRanges;
  std::map<CUmemGenericAllocationHandle, MemoryBlock> blocks;
  std::vector<std::shared_ptr<Capture>> captures; // in progress

  std::uint64_t nextId() { return ++lastId; }
  std::uint64_t usedMemory() const; // of all contexts

  // Contexts.
  /// The calling thread's context, or null.
  static Context *current();
  static void setCurrent(std::shared_ptr<Context> context);
  std::shared_ptr<Context> shared(Context *context) const;
  CUresult createContext(unsigned flags, bool primary, std::shared_ptr<Context> &context);
  /// Frees everything the context owns.
  void destroyContext(Context &context);

  // Streams.
  /// The stream a handle names for the calling thread; 0 is the legacy stream, or the thread's own
  /// in a per-thread variant of a function.
  std::shared_ptr<Stream> findStream(CUstream handle);
  /// Does the work now, records it if the stream is being captured, or leaves it to wait its turn.
  CUresult enqueue(Stream &stream, Work work);
  /// Tasks that work on `stream` has to wait for now.
  std::vector<std::shared_ptr<Task>> predecessors(const Stream &stream) const;
  /// Does the work or makes it a task, `task`, after `after`.
  CUresult submit(std::shared_ptr<Context> context, Work work,
                  const std::vector<std::shared_ptr<Task>> &after, std::shared_ptr<Task> &task);
  /// Makes `stream` wait for `task` too.
  void follow(Stream &stream, std::shared_ptr<Task> task);
  /// Waits until the context has no tasks left.
  void drain(std::unique_lock<std::mutex> &lock, Context &context);
  CUresult wait(std::unique_lock<std::mutex> &lock, Context &context,
                const std::vector<std::shared_ptr<Task>> &tasks);

  // Captures.
  /// CUDA_SUCCESS, or why the calling thread may not do what could disturb a capture.
  CUresult checkNoCapture();
  /// The same for work on the legacy stream, which would wait for captured streams.
  CUresult checkLegacy(const Stream &stream);
  CUresult capture(Stream &stream, Work work);
  void endCapture(const std::shared_ptr<Capture> &capture);

  // Graphs.
  std::shared_ptr<GraphNode> addNode(Graph &graph, Work work, std::vector<GraphNode *> after);
  /// Runs or submits all nodes of `graph`; `ends` receives tasks to wait for.
  CUresult runGraph(const Graph &graph, const std::shared_ptr<Context> &context,
                    const std::vector<std::shared_ptr<Task>> &after,
                    std::vector<std::shared_ptr<Task>> &ends);

  /// Runs work now that is neither a host function nor a graph. A kernel's fault goes to the
  /// context.
  CUresult execute(Context &context, const Work &work);

  // Memory.
  CUresult allocate(Context &context, std::uint64_t bytes, Allocation::Kind kind,
                    std::uint64_t &address);
  CUresult free(Context &context, std::uint64_t address);
  /// The context whose memory holds the address: the current one, or another.
  Context *ownerOf(std::uint64_t address) const;
  /// Gives the block back if nothing refers to it.
  void releaseBlock(CUmemGenericAllocationHandle handle);

private:
  CUresult runKernel(Context &context, const KernelWork &work);
  CUresult runCopy(Context &context, const CopyWork &work);
  CUresult runFill(Context &context, const FillWork &work);
  void start(std::shared_ptr<Task> task);
  void finish(std::shared_ptr<Task> task);
  void runHostFunctions();

  std::uint64_t lastId = 0;
  std::thread hostThread; // runs hostQueue; started by the first host function
  std::deque<std::shared_ptr<Task>> hostQueue;
  std::condition_variable hostWake;
};

/// Remembers a message for planemu_last_error; returns `result`.
CUresult failWith(CUresult result, std::string message);
std::string lastMessage();
/// The label of the calling thread's next launch.
void setLaunchLabel(std::string label);
/// That label, cleared.
std::string takeLaunchLabel();
std::string hex(std::uint64_t value);
/// True in a host function, which may not call the driver.
bool inHostFunction();

/// While one lives, the null stream is the calling thread's own.
class PerThreadStream {
public:
  PerThreadStream();
  ~PerThreadStream();
};

/// A function's start: checks the driver, and with `context` also that a usable one is current.
CUresult enter(Driver &driver, bool context);

/// For exported functions: holds the lock; returns from the function if the driver is not usable.
#define PLANEMU_ENTER(NeedsContext)                                                                \
  Driver &driver = Driver::get();                                                                  \
  std::unique_lock<std::mutex> lock(driver.mutex);                                                 \
  if (CUresult entered = enter(driver, NeedsContext); entered != CUDA_SUCCESS)                     \
  return entered
/// The same, and there is a usable `context`.
#define PLANEMU_ENTER_CONTEXT                                                                      \
  PLANEMU_ENTER(true);                                                                             \
  [[maybe_unused]] Context &context = *Driver::current()

/// Returns from the function unless the result is success.
#define PLANEMU_TRY(Call)                                                                          \
  if (CUresult tried = (Call); tried != CUDA_SUCCESS)                                              \
  return tried

// Between the files of this folder.
CUresult loadModule(Driver &driver, Context &context, std::string ptx, unsigned count,
                    CUjit_option *options, void **values, std::shared_ptr<Module> &module);
void unloadModule(Driver &driver, Module &module);
/// Copies a message into a log buffer of the caller, if there is one.
void writeLog(const std::string &text, CUjit_option bufferOption, CUjit_option sizeOption,
              unsigned count, CUjit_option *options, void **values);
/// The PTX of an image in memory: PTX itself or a fatbin that holds some for the device.
CUresult readPtxImage(const DeviceModel &model, const void *image, std::string &ptx);
CUresult readPtxFile(const DeviceModel &model, const char *name, std::string &ptx);
/// Is this PTX at all, right or wrong? Blanks and comments may stand before `.version`.
bool startsAsPtx(std::string_view text);
/// The function a CUfunction names; a CUkernel is taken too, and means its function in the current
/// context.
std::shared_ptr<FunctionHandle> findFunction(Driver &driver, CUfunction handle);
CUresult kernelFunction(Driver &driver, LibraryKernel &kernel, Context &context,
                        std::shared_ptr<FunctionHandle> &function);
CUresult getFunctionAttribute(Driver &driver, const FunctionHandle &function,
                              CUfunction_attribute attribute, int &value);
CUresult setFunctionAttribute(Driver &driver, FunctionHandle &function,
                              CUfunction_attribute attribute, int value);
CUresult parameterInfo(const Kernel &kernel, std::size_t index, std::size_t *offset,
                       std::size_t *bytes);
/// Blocks of a kernel that fit on a multiprocessor at once.
int residentBlocks(const DeviceModel &model, const FunctionHandle &function, unsigned threads,
                   std::uint64_t dynamicShared);

struct LaunchShape {
  unsigned grid[3], block[3], shared;
  bool cooperative = false;
};
/// Checks a launch as the device would and builds its work.
CUresult prepareLaunch(Driver &driver, CUfunction handle, const LaunchShape &shape,
                       void **parameters, void **extra, KernelWork &work);
/// Checks a copy's shape; says nothing of its addresses.
CUresult checkCopy(const CUDA_MEMCPY3D &copy);
/// Checks that the device may touch what the copy names.
CUresult checkCopyAddresses(const Driver &driver, Context &context, const CopyWork &work);
CUresult checkFill(const CUDA_MEMSET_NODE_PARAMS &fill);
std::shared_ptr<Graph> cloneGraph(Driver &driver, const Graph &graph, bool registered);
/// The nodes, each after those it depends on, else in order of creation; empty if there is a cycle.
std::vector<GraphNode *> orderNodes(const Graph &graph);
void forgetGraph(Driver &driver, Graph &graph);
/// Appends the graph's nodes with these handles to `nodes`, each at most once.
CUresult findNodes(Driver &driver, const Graph &graph, const CUgraphNode *handles,
                   std::size_t count, std::vector<GraphNode *> &nodes);
/// Only plain edges are emulated.
CUresult checkEdges(const CUgraphEdgeData *edges, std::size_t count);
CUgraphNodeType typeOf(const Work &work);

} // namespace planemu

#endif // PLANEMU_DRIVER_H
