//===- Objects.h - contexts, modules, streams, graphs and their work ------===//
//
// What the handles of a program stand for. Objects are shared: work in flight and graphs keep what
// they need alive after its handle is gone. All of them are used under the driver's lock.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_DRIVER_OBJECTS_H
#define PLANEMU_DRIVER_OBJECTS_H

#include "runtime/emulator/Decoder.h"
#include "runtime/emulator/Heap.h"
#include "runtime/emulator/Memory.h"
#include "runtime/emulator/Tier.h"
#include "runtime/emulator/driver/Abi.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace planemu {

struct Context;
struct Event;
struct Graph;
struct GraphNode;
struct Library;
struct Module;
struct Stream;

// --- Code ---------------------------------------------------------------------

struct FunctionHandle {
  std::uintptr_t handle = 0;
  std::string name;
  Module *module = nullptr; // keeps this function
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Tier> tier; // once it is launched while a JIT compiler is in use
  std::uint32_t dynamicSharedLimit = 0;
  int carveout = -1;
};

struct Module {
  std::uintptr_t handle = 0;
  Context *context = nullptr;
  Library *library = nullptr; // that loaded it, if one did
  std::unique_ptr<PtxModule> ptx;
  std::map<std::string, std::shared_ptr<FunctionHandle>> functions;
  struct Global {
    std::uint64_t address, bytes;
  };
  std::map<std::string, Global> globals;
};

/// A kernel of a library: one function in every context that asked for it.
struct LibraryKernel {
  std::uintptr_t handle = 0;
  std::string name;
  Library *library = nullptr;
  std::map<CUfunction_attribute, int> attributes; // set for functions to come
};

/// Code that is loaded into contexts as they need it.
struct Library {
  std::uintptr_t handle = 0;
  std::string ptx;
  std::map<std::string, std::shared_ptr<LibraryKernel>> kernels;
  std::map<Context *, std::shared_ptr<Module>> modules;
};

/// What cuLink* has been given.
struct LinkState {
  std::uintptr_t handle = 0;
  std::vector<std::string> images;
  std::string ptx;                   // the result
  std::vector<CUjit_option> options; // where its messages go
  std::vector<void *> values;
};

// --- Memory -------------------------------------------------------------------

/// What is known of a range beyond its bytes, for pointer attributes and frees.
struct Allocation {
  enum Kind : std::uint8_t { Device, Managed, Pool, Graph };
  std::uint64_t bytes = 0;
  Kind kind = Device;
  std::uint64_t id = 0;    // never given out again
  std::uintptr_t pool = 0; // handle
  bool freeing = false;    // cuMemFreeAsync was called
};

struct MemoryPool {
  std::uintptr_t handle = 0;
  CUmemPoolProps properties{};
  std::uint64_t threshold = 0, used = 0, usedHigh = 0;
  bool reuse[3] = {true, true, true}; // of CU_MEMPOOL_ATTR_REUSE_*
};

/// Page-locked memory of the host, valid on the device at the same address.
struct HostRange {
  std::uint64_t bytes = 0;
  unsigned flags = 0;
  bool registered = false; // by cuMemHostRegister, so the program owns it
  Context *owner = nullptr;
  std::uint64_t id = 0;
};

/// Memory made by cuMemCreate.
struct MemoryBlock {
  CUmemAllocationProp properties{};
  std::uint64_t bytes = 0;
  unsigned references = 1, mappings = 0;
  Context *owner = nullptr;
  std::uint64_t inMemory = 0; // its number there
};

/// Memory of a graph's allocation node; goes with the last graph that has the node.
struct GraphMemory {
  std::shared_ptr<Context> context;
  std::uint64_t address = 0;
  ~GraphMemory();
};

// --- Work ---------------------------------------------------------------------

struct KernelWork {
  std::shared_ptr<Module> module; // keeps the code of graphs alive
  std::shared_ptr<FunctionHandle> function;
  std::uint32_t grid[3], block[3], dynamicShared;
  bool cooperative = false;
  std::vector<std::uint8_t> parameters;
  std::string label;
};
struct CopyWork {
  CUDA_MEMCPY3D copy{};
  std::shared_ptr<Context> to, from; // null: the one the work runs in
};
struct FillWork {
  CUDA_MEMSET_NODE_PARAMS fill{};
};
struct HostWork {
  CUhostFn function = nullptr;
  CUstreamCallback callback = nullptr; // of cuStreamAddCallback, instead of function
  CUstream stream = nullptr;
  void *userData = nullptr;
};
struct EmptyWork {};
struct RecordWork {
  std::shared_ptr<Event> event;
};
struct WaitWork { // in graphs only; elsewhere a wait is a dependency
  std::shared_ptr<Event> event;
};
struct ChildWork {
  std::shared_ptr<Graph> graph;
};
struct AllocWork {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  std::shared_ptr<GraphMemory> memory;
};
struct FreeWork {
  CUdeviceptr address = 0;
  bool inGraph = false; // then the graph keeps the memory
};
using Work = std::variant<KernelWork, CopyWork, FillWork, HostWork, EmptyWork, RecordWork, WaitWork,
                          ChildWork, AllocWork, FreeWork>;

/// Work that could not be done at once, since it waits for a host function.
struct Task {
  std::shared_ptr<Context> context;
  Work work;
  unsigned waits = 0; // tasks that must finish first
  bool done = false;
  std::vector<std::shared_ptr<Task>> next;
};

// --- Graphs, streams, events ----------------------------------------------------

struct GraphNode {
  std::uintptr_t handle = 0;
  Graph *graph = nullptr;
  std::shared_ptr<Context> context; // null: the one the graph is launched in
  Work work;
  std::vector<GraphNode *> dependencies;
  std::uintptr_t original = 0; // handle of the node this one was cloned from
  bool enabled = true;
  std::map<int, CUlaunchAttributeValue> attributes; // hints that were set
  std::vector<void *> parameterPointers;            // answer of cuGraphKernelNodeGetParams
};

struct Graph {
  std::uintptr_t handle = 0;
  std::vector<std::shared_ptr<GraphNode>> nodes; // in order of creation
  bool isChild = false;                          // belongs to a node
};

struct GraphExec {
  std::uintptr_t handle = 0;
  std::shared_ptr<Graph> graph; // a private copy
  std::uint64_t flags = 0;
  std::shared_ptr<Context> context;
};

/// A capture in progress: the streams that take part and the graph they fill.
struct Capture {
  std::uint64_t id = 0;
  std::shared_ptr<Graph> graph;
  bool ownsGraph = true; // and was not given one
  Stream *origin = nullptr;
  CUstreamCaptureMode mode = 0;
  std::thread::id thread;
  bool invalidated = false, ended = false;
};

struct Stream {
  std::uintptr_t handle = 0; // 0: the legacy stream or one of a thread
  std::uintptr_t shown = 0;  // handle a callback gets
  std::shared_ptr<Context> context;
  std::uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false;
  std::shared_ptr<Task> last; // null or done: idle
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> captureEnds;             // what the next captured node depends on
  std::vector<CUgraphNode> reportedEnds;            // answer of cuStreamGetCaptureInfo
  std::map<int, CUlaunchAttributeValue> attributes; // hints that were set
};

struct Event {
  std::uintptr_t handle = 0;
  Context *context = nullptr;
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Task> task;       // null or done: complete
  std::shared_ptr<Capture> capture; // last recorded in it
  std::vector<GraphNode *> captureEnds;
};

struct Context {
  std::uintptr_t handle = 0;
  std::uint64_t id = 0;
  bool primary = false, alive = true;
  unsigned flags = 0, apiVersion = 0;
  unsigned attached = 0; // by cuCtxAttach
  std::unique_ptr<Memory> memory;
  std::uint64_t gridWorkspace = 0;  // of cooperative launches, allocated by the first one
  std::unique_ptr<DeviceHeap> heap; // made by the first kernel that allocates
  CUresult sticky = CUDA_SUCCESS;
  unsigned pending = 0; // tasks that are not done
  std::map<std::uint64_t, Allocation> allocations;
  /// Mapped ranges: bytes and block.
  std::map<std::uint64_t, std::pair<std::uint64_t, CUmemGenericAllocationHandle>> mappings;
  std::shared_ptr<Stream> legacy;
  std::map<std::thread::id, std::shared_ptr<Stream>> perThread;
  std::map<CUlimit, std::size_t> limits;
  CUfunc_cache cacheConfig = CU_FUNC_CACHE_PREFER_NONE;
  std::string output; // of kernels, until somebody waits for them
  void print();
  CUsharedconfig sharedConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
};

} // namespace planemu

#endif // PLANEMU_DRIVER_OBJECTS_H
