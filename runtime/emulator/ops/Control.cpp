//===- Control.cpp - branches, calls, barriers, fences --------------------===//
//
// Most of these end a block (Interpreter.cpp, Worker.cpp); the rest have an effect only on a
// machine that reorders or prefetches.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Heap.h"
#include "runtime/emulator/Print.h"
#include "runtime/emulator/observe/Observer.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"

#include <atomic>

namespace planemu::PLANEMU_ISA {

void selectBra(Decoder &d) {
  d.take(".uni");
  d.branch(0);
}

void selectBrx(Decoder &d) {
  if (!d.take(".idx"))
    d.fail("only brx.idx is supported");
  d.take(".uni");
  d.branchIndexed(0, 1);
}

void selectRet(Decoder &d) {
  d.take(".uni");
  d.ret();
}

// --- The stack ----------------------------------------------------------------
//
// It lies behind a thread's variables in local memory and grows upwards.

/// Operands: address, size, stack pointer (twice), where the stack starts. imm: alignment.
template <class T> static void allocateStack(Warp &w, const Inst &i) {
  T *addresses = at<T>(w, i.s[0]);
  const T *sizes = at<T>(w, i.s[1]);
  u64 *tops = at<u64>(w, i.s[2]);
  const u64 *starts = at<u64>(w, i.s[4]);
  for (u32 left = executing(w, i); left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    u64 align = static_cast<u64>(i.imm), top = starts[lane] + tops[lane];
    u64 begin = (top + align - 1) & ~(align - 1);
    if (sizes[lane] > w.localBytes || begin > w.localBytes - sizes[lane])
      return reportFault(w, i.line, FaultKind::OutOfBounds, static_cast<unsigned>(lane), begin,
                         static_cast<u32>(sizes[lane]), "alloca (local)");
    addresses[lane] = static_cast<T>(begin);
    tops[lane] = begin + sizes[lane] - starts[lane];
  }
}

static Type takeStackType(Decoder &d) {
  Type type = d.takeType();
  if (type != Type::U32 && type != Type::U64)
    d.failType(type);
  return type;
}

/// alloca.type d, size{, alignment}: bytes that are free again when the function returns.
void selectAlloca(Decoder &d) {
  Type type = takeStackType(d);
  std::int64_t align = 8;
  if (d.operandCount() == 3) {
    if (!d.isImmediate(2, align) || align <= 0 || align > 512 || (align & (align - 1)))
      d.fail("the alignment is not a power of two");
    d.operandUsed(2);
  }
  std::uint32_t result = d.temporary(bitsOf(type));
  d.defTemporary(result);
  d.use(1, type);
  d.useTemporary(d.stackPointer());
  d.defTemporary(d.stackPointer());
  d.useStackStart();
  d.emit(type == Type::U64 ? allocateStack<u64> : allocateStack<u32>, align);
  d.def(0, bitsOf(type));
  d.useTemporary(result);
  d.emit(copyOf(d, bitsOf(type)));
}

/// stacksave.type d; stackrestore.type a.
void selectStacksave(Decoder &d) {
  Type type = takeStackType(d);
  d.def(0, bitsOf(type));
  d.useTemporary(d.stackPointer());
  d.emit(type == Type::U64 ? each<[](u64 top) { return top; }, u64, u64>
                           : each<[](u64 top) { return static_cast<u32>(top); }, u32, u64>);
}
void selectStackrestore(Decoder &d) {
  Type type = takeStackType(d);
  d.defTemporary(d.stackPointer());
  d.use(0, type);
  d.emit(type == Type::U64 ? each<[](u64 top) { return top; }, u64, u64>
                           : each<[](u32 top) { return u64(top); }, u64, u32>);
}

void selectExit(Decoder &d) { d.exit(); }
void selectTrap(Decoder &d) { d.trap(); }

/// Appends `count` arguments or results, of at least `bytes` bytes each.
static void useArguments(Decoder &d, const Operand *list, std::size_t count, unsigned bytes = 4) {
  if ((list ? list->parts.size() : 0) != count)
    d.fail("takes " + std::to_string(count) + " of these");
  for (std::size_t n = 0; n < count; ++n)
    d.useArgument(list->parts[n], bytes);
}

/// A call of what the driver's run-time system has. False if it has no `name`.
static bool selectSystemCall(Decoder &d, std::string_view name, const Operand *results,
                             const Operand *arguments) {
  for (std::string_view launches :
       {"__cudaCDP2", "cudaGetParameterBuffer", "cudaLaunchDevice", "cudaDeviceSynchronize"})
    if (name.starts_with(launches))
      d.fail("a kernel cannot launch kernels");
  if (name == "vprintf") {
    useArguments(d, results, 1);
    useArguments(d, arguments, 2);
    d.noteOrderedWarps();
    d.emit(printFormatted);
    return true;
  }
  // The latter takes an alignment too.
  if (name == "malloc" || name == "__cuda_syscall_aligned_malloc") {
    useArguments(d, results, 1, 8);
    useArguments(d, arguments, name == "malloc" ? 1 : 2, 8);
    d.noteAllocates();
    d.emit(allocateMemory, name != "malloc");
    return true;
  }
  if (name == "free") {
    useArguments(d, results, 0);
    useArguments(d, arguments, 1, 8);
    d.noteAllocates();
    d.emit(freeMemory);
    return true;
  }
  if (name == "__assertfail") {
    useArguments(d, results, 0);
    useArguments(d, arguments, 5);
    d.emit(failAssertion);
    d.trap();
    return true;
  }
  return false;
}

void selectCall(Decoder &d) {
  d.take(".uni");
  unsigned n = 0;
  const Operand *results = nullptr, *arguments = nullptr;
  if (d.operandCount() > 0 && d.operand(0).kind == Operand::List)
    results = &d.operand(n++);
  const Operand &name = d.operand(n++);
  if (n < d.operandCount() && d.operand(n).kind == Operand::List)
    arguments = &d.operand(n++);
  if (!d.takeAll().empty())
    d.fail("only .uni is supported");
  if (name.kind == Operand::Register) {
    if (n + 1 != d.operandCount())
      d.fail("a call through a pointer ends with its prototype or targets");
    return d.callThrough(name, results, arguments, d.operand(n));
  }
  if (n != d.operandCount())
    d.fail("too many operands");
  const Function *callee = name.kind == Operand::Symbol ? d.ptx().findFunction(name.text) : nullptr;
  if (!callee)
    d.fail("unknown function '" + std::string(name.text) + "'");
  if (callee->external && selectSystemCall(d, callee->name, results, arguments))
    return;
  d.call(*callee, results, arguments);
}

/// Appends the barrier number, operand `n`, and the thread count after it if there is one.
static void useBarrier(Decoder &d, unsigned n, bool hasThreads) {
  std::int64_t id, threads;
  if (d.isImmediate(n, id) && (id < 0 || id > 15))
    d.fail("barrier " + std::to_string(id) + " is not one of 0 to 15");
  d.use(n, Type::U32);
  if (!hasThreads)
    return d.useConstant(0, 32);
  if (d.isImmediate(n + 1, threads) && (threads <= 0 || threads % 32))
    d.fail("the thread count " + std::to_string(threads) + " is not a multiple of 32");
  d.use(n + 1, Type::U32);
}

/// bar{.cta}.sync|arrive|red, bar.warp.sync, barrier{.cta}.sync|arrive|red{.aligned}.
static void selectBarrier(Decoder &d, bool alignable) {
  if (!alignable && d.take(".warp")) {
    if (!d.take(".sync"))
      d.fail("only bar.warp.sync is supported");
    d.use(0, Type::B32);
    d.emit(
        [](Warp &w, const Inst &i) {
          if (!w.observer)
            return;
          // Lanes of different masks may be here together.
          const u32 *members = at<u32>(w, i.s[0]);
          for (u32 left = executing(w, i); left;) {
            u32 group = (members[__builtin_ctz(left)] & left) | (left & -left);
            w.observer->syncLanes(w, group);
            left &= ~group;
          }
        },
        0, Inst::Sync | Inst::Meet);
    return;
  }
  if (alignable && d.take(".cluster"))
    return selectClusterBarrier(d);
  d.take(".cta");
  bool aligned = !alignable || d.take(".aligned");
  if (d.take(".red")) {
    Type type = Type::Pred;
    BarrierSpec::Kind kind = BarrierSpec::RedPopc;
    if (d.take(".popc"))
      type = d.takeType();
    else if (d.take(".and"))
      kind = BarrierSpec::RedAnd, type = d.takeType();
    else if (d.take(".or"))
      kind = BarrierSpec::RedOr, type = d.takeType();
    else
      d.fail("no reduction");
    if (type != (kind == BarrierSpec::RedPopc ? Type::U32 : Type::Pred))
      d.failType(type);
    bool hasThreads = d.operandCount() == 4;
    useBarrier(d, 1, hasThreads);
    unsigned source = hasThreads ? 3 : 2;
    d.use(source, Type::Pred);
    d.def(0, kind == BarrierSpec::RedPopc ? 32 : 1);
    return d.barrier(kind, d.operand(source).negated, hasThreads, aligned);
  }
  bool arrive = d.take(".arrive");
  if (!arrive && !d.take(".sync"))
    d.fail("only .sync, .arrive and .red are supported");
  bool hasThreads = d.operandCount() == 2;
  if (arrive && !hasThreads)
    d.fail("bar.arrive needs a thread count");
  useBarrier(d, 0, hasThreads);
  d.useTrue();
  d.useTrue();
  d.barrier(arrive ? BarrierSpec::Arrive : BarrierSpec::Sync, false, hasThreads, aligned);
}

void selectBar(Decoder &d) { selectBarrier(d, false); }
void selectBarrier(Decoder &d) { selectBarrier(d, true); }

static void fence(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (!mask)
    return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (w.observer)
    w.observer->fence(w, i, mask);
}

/// fence{.sem}.scope. The proxy fences order copies that this machine does at issue.
void selectFence(Decoder &d) {
  if (d.take(".proxy")) {
    if (!d.take(".alias")) {
      if (!d.take(".async"))
        d.fail("unknown proxy");
      for (const char *space : {".global", ".shared::cta", ".shared::cluster"})
        if (d.take(space))
          break;
    }
    d.emit(fence, 0, Inst::ScopeCta);
    return;
  }
  // What an initialised mbarrier is to others of its cluster.
  if (d.take(".mbarrier_init")) {
    if (!d.take(".release") || !d.take(".cluster"))
      d.fail("'.mbarrier_init' goes with .release.cluster");
    d.emit(fence, 0, Inst::ScopeCta);
    return;
  }
  for (const char *order : {".sc", ".acq_rel", ".acquire", ".release"})
    if (d.take(order))
      break;
  unsigned scope = takeScope(d);
  if (!scope)
    d.fail("none of .cta, .cluster, .gpu and .sys");
  d.emit(fence, 0, scope);
}

/// membar.level: the names that fence.sc's scopes had before.
void selectMembar(Decoder &d) {
  unsigned scope = d.take(".cta")   ? unsigned(Inst::ScopeCta)
                   : d.take(".gl")  ? unsigned(Inst::ScopeGpu)
                   : d.take(".sys") ? unsigned(Inst::ScopeGpu)
                                    : 0;
  if (!scope)
    d.fail("none of .cta, .gl and .sys");
  d.emit(fence, 0, scope);
}

static void nothing(Warp &, const Inst &) {}

void selectGridDepControl(Decoder &d) {
  if (!d.take(".wait") && !d.take(".launch_dependents"))
    d.fail("neither .wait nor .launch_dependents");
  d.emit(nothing); // grids run one after the other
}

/// Registers are the emulator's own. PTX ISA: 24 to 256 of them, in steps of 8.
void selectSetmaxnreg(Decoder &d) {
  if (!d.take(".inc") && !d.take(".dec"))
    d.fail("neither .inc nor .dec");
  if (!d.take(".sync") || !d.take(".aligned"))
    d.fail("'.sync.aligned' is missing");
  if (Type type = d.takeType(); type != Type::U32)
    d.failType(type);
  std::int64_t count = 0;
  if (!d.isImmediate(0, count) || count < 24 || count > 256 || count % 8)
    d.fail("the number of registers is a constant from 24 to 256, a multiple of 8");
  d.operandUsed(0);
  d.emit(nothing);
}

void selectNanosleep(Decoder &d) {
  if (Type type = d.takeType(); type != Type::U32)
    d.failType(type);
  d.use(0, Type::U32);
  d.emit(nothing);
}

// --- Hints ------------------------------------------------------------------
//
// Their addresses are not touched: as on a GPU, a bad one is no error.

/// prefetch{.global|.local}.L1|.L2 [a], prefetch.global.L2::evict_last|.L2::evict_normal [a].
void selectPrefetch(Decoder &d) {
  bool global = d.take(".global"), local = !global && d.take(".local");
  bool evict = global && (d.take(".L2::evict_last") || d.take(".L2::evict_normal"));
  if (!evict && !d.take(".L1") && !d.take(".L2"))
    d.fail("neither .L1 nor .L2");
  d.useAddress(0, local ? Space::Local : global ? Space::Global : Space::Generic);
  d.emit(nothing);
}

void selectPrefetchu(Decoder &d) {
  if (!d.take(".L1"))
    d.fail("only .L1 is supported");
  d.useAddress(0, Space::Generic);
  d.emit(nothing);
}

/// discard{.global}.L2 [a], 128 and applypriority{.global}.L2::evict_normal [a], 128. What a
/// discarded line holds is open; here it keeps its value.
static void selectLine(Decoder &d, const char *level) {
  bool global = d.take(".global");
  if (!d.take(level))
    d.fail("only '" + std::string(level) + "' is supported");
  std::int64_t bytes;
  if (!d.isImmediate(1, bytes) || bytes != 128)
    d.fail("the size is not 128");
  d.operandUsed(1);
  d.useAddress(0, global ? Space::Global : Space::Generic);
  d.emit(nothing);
}
void selectDiscard(Decoder &d) { selectLine(d, ".L2"); }
void selectApplypriority(Decoder &d) { selectLine(d, ".L2::evict_normal"); }

/// createpolicy: an opaque value for .L2::cache_hint, on which only speed depends; here zero.
void selectCreatepolicy(Decoder &d) {
  bool fractional = d.take(".fractional"), range = !fractional && d.take(".range");
  bool convert = !fractional && !range && d.take(".cvt");
  if (convert) {
    if (!d.take(".L2"))
      d.fail("only .cvt.L2 is supported");
  } else if (!fractional && !range) {
    d.fail("none of .fractional, .range and .cvt");
  } else {
    bool global = range && d.take(".global");
    bool primary = false;
    for (const char *priority :
         {".L2::evict_last", ".L2::evict_normal", ".L2::evict_first", ".L2::evict_unchanged"})
      primary |= d.take(priority);
    if (!primary)
      d.fail("no priority");
    if (range)
      d.useAddress(1, global ? Space::Global : Space::Generic);
  }
  if (Type type = d.takeType(); type != Type::B64)
    d.failType(type);
  if (convert)
    d.use(1, Type::B64);
  else if (range)
    for (unsigned n : {2, 3})
      d.use(n, Type::U32);
  else if (d.operandCount() > 1)
    d.use(1, Type::F32);
  d.emit(nothing);
  d.def(0, 64);
  d.useConstant(0, 64);
  d.emit(copyOf(d, 64));
}

/// pmevent{.mask} n: nobody counts these events.
void selectPmevent(Decoder &d) {
  bool mask = d.take(".mask");
  std::int64_t event;
  if (!d.isImmediate(0, event) || event < 0 || event > (mask ? 0xffff : 15))
    d.fail("the event is not a constant in range");
  d.operandUsed(0);
  d.emit(nothing);
}

/// Without a debugger a breakpoint ends the kernel as a trap does.
void selectBrkpt(Decoder &d) { d.trap(); }

} // namespace planemu::PLANEMU_ISA
