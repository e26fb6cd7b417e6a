//===- Cluster.cpp - barrier.cluster, mapa, getctarank --------------------===//
//
// Clusters of one CTA: shared memory of the cluster is the CTA's own, and the barrier is one of its
// threads. Unlike bar.sync it is met in two steps, and lanes of a warp may be at different ones: an
// arrival marks the lane, and the wait asks again until no live thread is left unmarked.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/observe/Observer.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"

namespace planemu::PLANEMU_ISA {

/// Starts the next phase if every live thread has arrived.
static void settle(Cta &cta) {
  for (u32 n = 0; n < cta.warpCount; ++n)
    if (cta.warps[n].live & ~cta.warps[n].atCluster)
      return;
  for (u32 n = 0; n < cta.warpCount; ++n)
    cta.warps[n].atCluster = 0;
  ++cta.clusterPhase;
}

/// Operands: the phase that the lane arrives at. imm: aligned.
static void arriveCluster(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (!mask)
    return;
  if (i.imm && mask != w.live)
    return reportFault(w, i.line, FaultKind::BarrierDivergence,
                       static_cast<unsigned>(__builtin_ctz(mask)));
  if (u32 again = mask & w.atCluster)
    return reportFault(w, i.line, FaultKind::Misuse, static_cast<unsigned>(__builtin_ctz(again)), 0,
                       0, "an arrival at barrier.cluster before the wait for the last one");
  if (w.observer && (i.flags & Inst::Release))
    w.observer->arrive(w, Observer::Cluster);
  u32 *phases = at<u32>(w, i.s[0]);
  for (u32 left = mask; left; left &= left - 1)
    phases[__builtin_ctz(left)] = w.cta->clusterPhase;
  w.atCluster |= mask;
  settle(*w.cta);
}

/// Operands: predicate "may go on", which lanes that do not execute have; phase.
static void testCluster(Warp &w, const Inst &i) {
  u32 mask = executing(w, i), passed = ~mask;
  settle(*w.cta);
  const u32 *phases = at<u32>(w, i.s[1]);
  for (u32 left = mask; left; left &= left - 1)
    if (phases[__builtin_ctz(left)] != w.cta->clusterPhase)
      passed |= left & -left;
  if (w.observer && (passed & mask))
    w.observer->pass(w, Observer::Cluster);
  writeMask(w, i.s[0], passed, w.active);
}

void selectClusterBarrier(Decoder &d) {
  bool arrives = d.take(".arrive");
  if (!arrives && !d.take(".wait"))
    d.fail("neither .arrive nor .wait");
  bool relaxed = arrives && d.take(".relaxed");
  if (!relaxed)
    d.take(arrives ? ".release" : ".acquire");
  bool aligned = d.take(".aligned");
  // A warp that arrives twice is found only if the others do not arrive in between.
  d.noteOrderedWarps();
  if (arrives) {
    d.defTemporary(d.clusterPhase());
    d.emit(arriveCluster, aligned, relaxed ? 0 : unsigned(Inst::Release));
    return;
  }
  std::uint32_t passed = d.temporary(1), again = d.loopStart();
  d.defTemporary(passed);
  d.useTemporary(d.clusterPhase());
  d.emit(testCluster);
  d.loopUnless(passed, again);
}

/// mapa{.shared::cluster}.type d, a, rank: the address in the CTA of that rank, which can only be 0.
void selectMapa(Decoder &d) {
  d.take(".shared::cluster");
  Type type = d.takeType();
  if (type != Type::U32 && type != Type::U64)
    d.failType(type);
  d.use(2, Type::U32);
  d.emitBeside(InstClass::Part, [](Warp &w, const Inst &i) {
    for (u32 left = executing(w, i); left; left &= left - 1) {
      int lane = __builtin_ctz(left);
      if (u32 rank = at<u32>(w, i.s[0])[lane])
        return reportFault(w, i.line, FaultKind::BadOperand, static_cast<unsigned>(lane), rank, 0,
                           "mapa in a cluster of one CTA");
    }
  });
  d.def(0, bitsOf(type));
  d.useValue(d.operand(1), type);
  d.emit(copyOf(d, bitsOf(type)));
}

/// getctarank{.shared::cluster}.type d, a.
void selectGetctarank(Decoder &d) {
  d.take(".shared::cluster");
  Type type = d.takeType();
  if (type != Type::U32 && type != Type::U64)
    d.failType(type);
  d.useValue(d.operand(1), type);
  d.emitNothing();
  d.def(0, 32);
  d.useConstant(0, 32);
  d.emit(copyOf(d, 32));
}

} // namespace planemu::PLANEMU_ISA
