//===- LoadStore.h - what the memory instructions share -------------------===//

#ifndef PLANEMU_OPS_LOADSTORE_H
#define PLANEMU_OPS_LOADSTORE_H

#include "runtime/emulator/ops/Access.h"

#include <initializer_list>

namespace planemu::PLANEMU_ISA {

/// Consumes a space; Generic if none is given.
Space takeSpace(Decoder &d);
/// Consumes cache hints, on which only speed depends, with at most one of `operators`; true if one
/// was .L2::cache_hint, whose policy is then the last operand and consumed too.
bool takeHints(Decoder &d, std::initializer_list<const char *> operators = {});
/// Consumes a scope; Inst::ScopeCta or Inst::ScopeGpu, or 0 if none is given.
unsigned takeScope(Decoder &d);
/// Where Access.h looks up addresses of `space`.
Where whereOf(Decoder &d, Space space);
/// cp.async.bulk, cp.reduce, cp.async.mbarrier, barrier.cluster: what selectCp and selectBarrier hand
/// over.
void selectBulkCopy(Decoder &d);
void selectBulkReduce(Decoder &d);
void selectArriveCopies(Decoder &d);
void selectClusterBarrier(Decoder &d);
/// A move between registers of `bits` bits.
Exec copyOf(Decoder &d, unsigned bits);

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_LOADSTORE_H
