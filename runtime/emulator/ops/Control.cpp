//===- Control.cpp - branches, calls, barriers, fences --------------------===//
//
// Most of these end a block (Interpreter.cpp, Worker.cpp); the rest have an effect only on a
// machine that reorders or prefetches.
//===----------------------------------------------------------------------===//

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

void selectExit(Decoder &d) { d.exit(); }
void selectTrap(Decoder &d) { d.trap(); }

void selectCall(Decoder &d) {
  d.take(".uni");
  unsigned n = 0;
  const Operand *results = nullptr, *arguments = nullptr;
  if (d.operandCount() > 0 && d.operand(0).kind == Operand::List)
    results = &d.operand(n++);
  const Operand &name = d.operand(n++);
  if (n < d.operandCount() && d.operand(n).kind == Operand::List)
    arguments = &d.operand(n++);
  if (n != d.operandCount())
    d.fail("indirect calls are not supported");
  const Function *callee = name.kind == Operand::Symbol ? d.ptx().findFunction(name.text) : nullptr;
  if (!d.takeAll().empty())
    d.fail("only .uni is supported");
  if (!callee)
    d.fail("unknown function '" + std::string(name.text) + "'");
  d.call(*callee, results, arguments);
}

/// bar{.cta}.sync|arrive|red, barrier{.cta}.sync|arrive|red{.aligned}, bar.warp.sync.
void selectBar(Decoder &d) {
  if (d.take(".warp")) {
    if (!d.take(".sync"))
      d.fail("only bar.warp.sync is supported");
    d.use(0, Type::B32);
    d.emit(
        [](Warp &w, const Inst &i) {
          if (u32 here = executing(w, i); w.observer && here)
            w.observer->syncLanes(w, here);
        },
        0, Inst::Sync | Inst::Meet);
    return;
  }
  d.take(".cta");
  d.take(".aligned");
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
    d.use(1, Type::U32);
    if (hasThreads)
      d.use(2, Type::U32);
    else
      d.useConstant(0, 32);
    unsigned source = hasThreads ? 3 : 2;
    d.use(source, Type::Pred);
    d.def(0, kind == BarrierSpec::RedPopc ? 32 : 1);
    return d.barrier(kind, d.operand(source).negated, hasThreads);
  }
  bool arrive = d.take(".arrive");
  if (!arrive && !d.take(".sync"))
    d.fail("only .sync, .arrive and .red are supported");
  bool hasThreads = d.operandCount() == 2;
  if (arrive && !hasThreads)
    d.fail("bar.arrive needs a thread count");
  d.use(0, Type::U32);
  if (hasThreads)
    d.use(1, Type::U32);
  else
    d.useConstant(0, 32);
  d.useTrue();
  d.useTrue();
  d.barrier(arrive ? BarrierSpec::Arrive : BarrierSpec::Sync, false, hasThreads);
}

void selectBarrier(Decoder &d) { selectBar(d); }

static void fence(Warp &w, const Inst &i) {
  if (!executing(w, i))
    return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (w.observer)
    w.observer->fence(w, i);
}

/// membar.level, fence{.sem}.scope; the proxy fences order copies that this machine does at issue.
void selectFence(Decoder &d) {
  for (const char *modifier : {".sc", ".acq_rel", ".acquire", ".release"})
    d.take(modifier);
  unsigned scope = d.take(".gl") ? unsigned(Inst::ScopeGpu) : takeScope(d);
  if (d.take(".proxy") && !d.take(".async") && !d.take(".alias"))
    d.fail("unknown proxy");
  d.emit(fence, 0, scope);
}

void selectMembar(Decoder &d) { selectFence(d); }

static void nothing(Warp &, const Inst &) {}

void selectGridDepControl(Decoder &d) {
  if (!d.take(".wait") && !d.take(".launch_dependents"))
    d.fail("neither .wait nor .launch_dependents");
  d.emit(nothing); // grids run one after the other
}

void selectNanosleep(Decoder &d) {
  d.take(".u32");
  d.use(0, Type::U32);
  d.emit(nothing);
}

/// prefetch{.space}.level [a] and prefetchu.L1 [a]; the address is not touched, as on a GPU a bad
/// one is no error.
void selectPrefetch(Decoder &d) {
  for (const char *modifier : {".global", ".local", ".const", ".param", ".L1", ".L2",
                               ".L2::evict_last", ".L2::evict_normal"})
    d.take(modifier);
  d.useAddress(0, Space::Generic);
  d.emit(nothing);
}
void selectPrefetchu(Decoder &d) { selectPrefetch(d); }

} // namespace planemu::PLANEMU_ISA
