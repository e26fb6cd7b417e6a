//===- Finish.cpp - order blocks, assign slots, lay out the kernel --------===//
//
// Five steps after decoding:
//   order    a weak topological order (Bourdoncle 1993): every loop is contiguous and starts with
//   its head. Running
//            the fragment with the lowest order first then reconverges after loops even where the
//            text puts the latch above the head, and handles irreducible graphs
//   saves    registers that nobody reads after a call need not be saved for it
//   groups   what groups of warps execute of a block (GroupInsts.cpp)
//   slots    liveness and a linear scan over that order; registers whose lives do not overlap share
//   a slot. This is
//            sound under divergence because writes are lane-masked and a lane follows one path
//   layout   offsets in the file, operands patched
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Frame.h"
#include "runtime/emulator/Machine.h"

#include <algorithm>
#include <limits>
#include <span>

using namespace planemu;

namespace {

/// Visits in a recursion whose depth is bounded by the number of blocks, which the decoder limits.
class WeakTopologicalOrder {
public:
  explicit WeakTopologicalOrder(const std::vector<std::vector<std::uint32_t>> &successors)
      : successors(successors), number(successors.size(), 0) {}

  std::vector<std::uint32_t> run() {
    visit(0);
    std::reverse(order.begin(), order.end());
    return std::move(order);
  }

private:
  static constexpr std::uint32_t Done = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t visit(std::uint32_t block) {
    stack.push_back(block);
    number[block] = ++counter;
    std::uint32_t head = counter;
    bool loop = false;
    for (std::uint32_t successor : successors[block]) {
      std::uint32_t least = number[successor] ? number[successor] : visit(successor);
      if (least <= head) {
        head = least;
        loop = true;
      }
    }
    if (head != number[block])
      return head;
    number[block] = Done;
    std::uint32_t popped = stack.back();
    stack.pop_back();
    if (loop) {
      for (; popped != block; stack.pop_back()) {
        number[popped] = 0;
        popped = stack.back();
      }
      for (std::uint32_t successor : successors[block])
        if (!number[successor])
          visit(successor);
    }
    order.push_back(block);
    return head;
  }

  const std::vector<std::vector<std::uint32_t>> &successors;
  std::vector<std::uint32_t> number, stack, order;
  std::uint32_t counter = 0;
};

} // namespace

static std::vector<std::uint32_t> successorsOf(const Block &block, bool guarded) {
  std::vector<std::uint32_t> successors;
  if (block.ending == Ending::Branch)
    successors.push_back(block.target);
  if (block.ending == Ending::Switch)
    successors = block.targets;
  bool goesOn = block.ending == Ending::Next || block.ending == Ending::Barrier || guarded;
  if (goesOn)
    successors.push_back(block.next);
  return successors;
}

struct Decoder::Liveness {
  using Bits = std::vector<std::uint64_t>;
  std::vector<std::uint32_t> dense, registers; // numbers of those that are used at all, and back
  std::vector<Bits> in, out;                   // by block
};

void Decoder::orderBlocks(std::vector<std::uint32_t> &reachable) {
  std::vector<std::vector<std::uint32_t>> successors;
  for (PendingBlock &block : blocks) {
    // A block nobody placed follows an unconditional ending or the end of the text.
    if (!block.placed)
      block.block.ending = Ending::Exit;
    successors.push_back(successorsOf(block.block, block.guard != 0));
  }
  reachable = WeakTopologicalOrder(successors).run();
  for (std::uint32_t position = 0; position < reachable.size(); ++position)
    blocks[reachable[position]].block.order = position;
  for (std::uint32_t id : reachable)
    for (std::uint32_t successor : successors[id])
      if (blocks[successor].block.order <= blocks[id].block.order)
        blocks[id].block.backward = true;
}

/// Calls visit(position in block, virtual id, is a definition that overwrites all lanes of its
/// thread, is a def).
template <typename Visit> void Decoder::visitReferences(PendingBlock &block, Visit visit) {
  std::uint32_t position = 0;
  for (Pending &pending : block.insts) {
    for (std::uint32_t n = 0; n < pending.referenceCount; ++n) {
      Reference &reference = references[pending.firstReference + n];
      if (!reference.def)
        visit(position, reference.id, false, false);
    }
    if (pending.guard)
      visit(position, pending.guard, false, false);
    if (pending.instead)
      visit(position, pending.instead, false, false);
    for (std::uint32_t n = 0; n < pending.referenceCount; ++n) {
      Reference &reference = references[pending.firstReference + n];
      if (reference.def)
        visit(position, reference.id, pending.guard == 0, true);
    }
    ++position;
  }
  if (block.guard)
    visit(position, block.guard, false, false);
  if (block.block.ending == Ending::Switch)
    visit(position, block.index, false, false);
  if (block.block.ending == Ending::Barrier) {
    for (unsigned n = 0; n < 3; ++n)
      visit(position, block.barrierRefs[n], false, false);
    // Written when the barrier completes, while the warp may already wait elsewhere in its CTA's
    // list.
    visit(position, block.barrierRefs[3], false, true);
  }
}

Decoder::Liveness Decoder::findLiveness(const std::vector<std::uint32_t> &reachable) {
  using Bits = Liveness::Bits;
  Liveness liveness;
  auto &[dense, registers, liveIn, liveOut] = liveness;
  dense.assign(virtuals.size(), ~0u);
  for (std::uint32_t id : reachable)
    visitReferences(blocks[id], [&](std::uint32_t, std::uint32_t reference, bool, bool) {
      if (reference != 0 && !virtuals[reference].constant && dense[reference] == ~0u) {
        dense[reference] = static_cast<std::uint32_t>(registers.size());
        registers.push_back(reference);
      }
    });

  std::size_t words = registers.size() / 64 + 1;
  std::vector<Bits> uses(blocks.size()), defs(blocks.size());
  liveIn.resize(blocks.size());
  liveOut.resize(blocks.size());
  for (std::uint32_t id : reachable) {
    uses[id].assign(words, 0);
    defs[id].assign(words, 0);
    liveOut[id].assign(words, 0);
    visitReferences(blocks[id],
                    [&](std::uint32_t, std::uint32_t reference, bool kills, bool isDef) {
                      std::uint32_t n = dense[reference];
                      if (n == ~0u)
                        return;
                      std::uint64_t bit = 1ull << (n % 64);
                      // A definition under a guard keeps the other lanes' value, so it reads it.
                      if ((!isDef || !kills) && !(defs[id][n / 64] & bit))
                        uses[id][n / 64] |= bit;
                      if (kills)
                        defs[id][n / 64] |= bit;
                    });
    liveIn[id] = uses[id];
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto id = reachable.rbegin(); id != reachable.rend(); ++id)
      for (std::uint32_t successor : successorsOf(blocks[*id].block, blocks[*id].guard != 0))
        for (std::size_t word = 0; word < words; ++word) {
          std::uint64_t fresh = liveIn[successor][word] & ~liveOut[*id][word];
          if (!fresh)
            continue;
          liveOut[*id][word] |= fresh;
          liveIn[*id][word] |= fresh & ~defs[*id][word];
          changed = true;
        }
  }
  return liveness;
}

/// A body saves all its registers around a call. Those that it does not read again need not be, and
/// what is left gets places in the frame.
void Decoder::dropSaves(const std::vector<std::uint32_t> &reachable) {
  if (saves.empty())
    return;
  Liveness liveness = findLiveness(reachable);
  for (std::uint32_t id : reachable) {
    PendingBlock &block = blocks[id];
    std::vector<bool> live(virtuals.size(), false);
    for (std::size_t n = 0; n < liveness.registers.size(); ++n)
      live[liveness.registers[n]] = liveness.out[id][n / 64] >> (n % 64) & 1;
    live[block.guard] = live[block.index] = true;
    for (std::uint32_t reference : block.barrierRefs)
      live[reference] = true;
    for (auto pending = block.insts.rbegin(); pending != block.insts.rend(); ++pending) {
      std::span<Reference> refs(references.data() + pending->firstReference,
                                pending->referenceCount);
      if (pending->save && refs[0].def && !live[refs[0].id])
        saves[pending->save - 1].kept = false;
      for (const Reference &reference : refs)
        if (reference.def && !pending->guard)
          live[reference.id] = false;
      for (const Reference &reference : refs)
        if (!reference.def)
          live[reference.id] = true;
      live[pending->guard] = true;
    }
  }
  std::uint32_t site = ~0u, slot = 0;
  for (Save &save : saves) {
    if (save.site != site)
      slot = 0;
    site = save.site;
    if (save.kept)
      save.slot = slot++;
    save.body->mostSaved = std::max(save.body->mostSaved, slot);
  }
  for (PendingBlock &block : blocks) {
    std::erase_if(block.insts, [&](const Pending &pending) {
      return pending.save && !saves[pending.save - 1].kept;
    });
    for (Pending &pending : block.insts)
      if (pending.save) {
        const Save &save = saves[pending.save - 1];
        pending.inst.imm = (save.body->bytes + 7) / 8 * 8 + 8 * save.slot;
      }
  }
}

void Decoder::assignSlots(const std::vector<std::uint32_t> &reachable) {
  auto [dense, registers, liveIn, liveOut] = findLiveness(reachable);

  for (std::uint32_t id : reachable) {
    std::vector<bool> live(virtuals.size(), false);
    for (std::size_t n = 0; n < registers.size(); ++n)
      live[registers[n]] = liveOut[id][n / 64] >> (n % 64) & 1;
    leaveOut(blocks[id], live);
  }

  struct Interval {
    std::uint32_t first = ~0u, last = 0, dense = 0;
    void extend(std::uint32_t position) {
      first = std::min(first, position);
      last = std::max(last, position);
    }
  };
  std::vector<Interval> intervals(registers.size());
  std::uint32_t base = 0;
  for (std::uint32_t id : reachable) {
    std::uint32_t end = base + static_cast<std::uint32_t>(blocks[id].insts.size());
    for (std::size_t n = 0; n < registers.size(); ++n) {
      if (liveIn[id][n / 64] >> (n % 64) & 1)
        intervals[n].extend(base);
      if (liveOut[id][n / 64] >> (n % 64) & 1)
        intervals[n].extend(end);
    }
    visitReferences(blocks[id], [&](std::uint32_t position, std::uint32_t reference, bool, bool) {
      if (dense[reference] != ~0u)
        intervals[dense[reference]].extend(base + position);
    });
    base = end + 1;
  }
  for (std::uint32_t n = 0; n < intervals.size(); ++n)
    intervals[n].dense = n;
  std::sort(intervals.begin(), intervals.end(), [](const Interval &a, const Interval &b) {
    return a.first != b.first ? a.first < b.first : a.dense < b.dense;
  });

  // Classes by width: predicate, 16, 32, 64 bits, which a half of 128 has too. A slot is free again strictly after the last
  // position of its interval, so a destination never shares with a source of the same instruction.
  auto classOf = [&](std::uint32_t id) {
    unsigned bits = virtuals[id].bits;
    return bits == 1 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3;
  };
  std::vector<std::uint32_t> free[4];
  std::uint32_t counts[4] = {1, 0, 0, 0}; // predicate 0 is the true one
  std::vector<std::uint32_t> slotOf(registers.size());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> active; // last position, dense; a min-heap
  for (const Interval &interval : intervals) {
    while (!active.empty() && active.front().first < interval.first) {
      std::uint32_t done = active.front().second;
      free[classOf(registers[done])].push_back(slotOf[done]);
      std::pop_heap(active.begin(), active.end(), std::greater<>());
      active.pop_back();
    }
    unsigned kind = classOf(registers[interval.dense]);
    if (free[kind].empty()) {
      slotOf[interval.dense] = counts[kind]++;
    } else {
      slotOf[interval.dense] = free[kind].back();
      free[kind].pop_back();
    }
    active.emplace_back(interval.last, interval.dense);
    std::push_heap(active.begin(), active.end(), std::greater<>());
  }

  // Layout.
  std::uint32_t top = (4 * counts[0] + 63) / 64 * 64;
  kernel->constantsFrom = top;
  for (Constant &constant : kernel->constants) {
    constant.offset = top;
    top += 32u * constant.bytes;
  }
  std::uint32_t classBase[4] = {0, 0, 0, 0};
  for (unsigned kind : {3u, 2u, 1u}) {
    classBase[kind] = top;
    top += counts[kind] * 32 * (1u << kind);
  }
  kernel->fileBytes = top;
  kernel->doublesFrom = classBase[3];
  kernel->wordsFrom = classBase[2];
  kernel->halvesFrom = classBase[1];
  kernel->registersUsed = counts[2] + 2 * counts[3] + (counts[1] + 1) / 2;
  offsets.assign(virtuals.size(), 0);
  for (std::uint32_t id = 1; id < virtuals.size(); ++id) {
    if (virtuals[id].constant) {
      offsets[id] = kernel->constants[virtuals[id].constantIndex].offset;
    } else if (dense[id] != ~0u) {
      unsigned kind = classOf(id);
      offsets[id] = classBase[kind] + slotOf[dense[id]] * (kind == 0 ? 4 : 32 * (1u << kind));
    }
  }
  for (std::uint32_t n = 0; n < registers.size(); ++n)
    if (liveIn[0][n / 64] >> (n % 64) & 1) {
      unsigned bits = std::min<unsigned>(64, virtuals[registers[n]].bits);
      kernel->readFirst.push_back({offsets[registers[n]], bits == 1 ? 4 : 4 * bits});
    }
}

/// A loop around atom.cas begins with a read of the word, which most write without .relaxed: any value
/// will do, for atom.cas compares it. So a weak read of the very address counts as a relaxed one.
void Decoder::strengthenReads(const std::vector<std::uint32_t> &reachable) {
  using Address = std::pair<std::uint32_t, std::int64_t>;
  auto addressOf = [&](const Pending &pending) {
    return Address(references[pending.firstReference + 1].id, pending.inst.imm);
  };
  std::map<Address, unsigned> compared; // by which scopes
  for (std::uint32_t id : reachable)
    for (const Pending &pending : blocks[id].insts)
      if (pending.compares)
        compared[addressOf(pending)] |= pending.inst.flags & (Inst::ScopeCta | Inst::ScopeGpu);
  if (compared.empty())
    return;
  for (std::uint32_t id : reachable)
    for (Pending &pending : blocks[id].insts)
      if (pending.weakRead)
        if (auto scopes = compared.find(addressOf(pending)); scopes != compared.end())
          pending.inst.flags |= static_cast<std::uint16_t>(scopes->second);
}

/// The stack lies behind a thread's variables.
void Decoder::layOutStack() {
  if (!stack)
    return;
  // Of what CUDA gives a thread by default many times as much: registers have 8 bytes in a frame.
  const std::uint32_t stackBytes = bodies.empty() ? 16u << 10 : 64u << 10;
  auto aligned = [&](std::uint32_t bytes) {
    return (bytes + frameAlign - 1) / frameAlign * frameAlign;
  };
  std::uint32_t start = aligned(kernel->localBytes);
  kernel->localBytes = start + stackBytes;
  for (Constant &constant : kernel->constants) {
    switch (constant.kind) {
    case Constant::LocalBase:
      constant.value = start;
      break;
    case Constant::FrameAlign:
      constant.value = frameAlign;
      break;
    case Constant::FrameBytes: {
      const Body &body = *bodies[constant.value];
      constant.value = aligned((body.bytes + 7) / 8 * 8 + 8 * body.mostSaved);
      break;
    }
    default:
      continue;
    }
    constant.kind = Constant::Bits;
  }
}

void Decoder::finish() {
  std::uint32_t dynamicBase = (kernel->staticShared + kernel->dynamicAlign - 1) /
                              kernel->dynamicAlign * kernel->dynamicAlign;
  bool dynamic = false;
  for (Constant &constant : kernel->constants)
    if (constant.kind == Constant::DynamicBase) {
      constant.kind = Constant::Bits;
      constant.value += dynamicBase;
      dynamic = true;
    }
  if (dynamic)
    kernel->staticShared = dynamicBase;
  for (Kernel::SharedName &shared : kernel->sharedNames)
    if (shared.bytes == Kernel::Endless)
      shared.offset = dynamicBase;

  std::vector<std::uint32_t> reachable;
  orderBlocks(reachable);
  dropSaves(reachable);
  layOutStack();
  strengthenReads(reachable);
  for (std::uint32_t id : reachable)
    readThrough(blocks[id]);
  assignSlots(reachable);

  unsigned notes = 0; // of one block at most
  for (std::uint32_t id : reachable)
    notes = std::max(notes, shareAddresses(blocks[id]));
  const std::uint32_t notesAt = kernel->fileBytes;
  kernel->fileBytes += (notes * std::uint32_t(sizeof(AddressNote)) + 63) / 64 * 64;

  std::vector<std::size_t> lists, groupLists; // where each list of operands starts
  kernel->blocks.resize(reachable.size());
  std::vector<std::uint32_t> newIndex(blocks.size(), 0);
  for (std::uint32_t position = 0; position < reachable.size(); ++position)
    newIndex[reachable[position]] = position;
  for (std::uint32_t position = 0; position < reachable.size(); ++position) {
    PendingBlock &pendingBlock = blocks[reachable[position]];
    Block &block = kernel->blocks[position];
    block = std::move(pendingBlock.block);
    block.first = static_cast<std::uint32_t>(kernel->insts.size());
    block.groupFirst = static_cast<std::uint32_t>(kernel->groupInsts.size());
    for (Pending &pending : pendingBlock.insts) {
      Inst inst = pending.inst;
      inst.guard = offsets[pending.guard];
      std::size_t list = SIZE_MAX;
      if (pending.list)
        list = kernel->operandStore.size();
      for (std::uint32_t n = 0; n < pending.referenceCount; ++n) {
        std::uint32_t offset = offsets[references[pending.firstReference + n].id];
        if (pending.list)
          kernel->operandStore.push_back(offset);
        else
          inst.s[n] = offset;
      }
      if (pending.list)
        inst.flags |= Inst::List;
      if (pending.noteFlag)
        kernel->operandStore.push_back(notesAt + pending.note * std::uint32_t(sizeof(AddressNote)));
      lists.push_back(list);
      kernel->strongAccesses |= (inst.flags & Inst::ScopeGpu) != 0;
      const bool strong = (inst.flags & (Inst::ScopeCta | Inst::ScopeGpu)) != 0;
      kernel->orderedWarps |=
          pending.cls == InstClass::Atomic || (strong && pending.cls != InstClass::Fence);
      kernel->insts.push_back(inst);
      if (!pending.left) {
        if (pending.instead)
          inst.s[1] = offsets[pending.instead];
        if (pending.guard)
          inst.together = runEach;
        inst.flags |= static_cast<std::uint16_t>(pending.noteFlag);
        groupLists.push_back(list);
        kernel->groupInsts.push_back(inst);
        LaneNote note{pending.lanes, pending.referenceCount, 0, pending.dying};
        for (std::uint32_t n = 0; n < note.operands && n < 32; ++n)
          note.written |= std::uint32_t(references[pending.firstReference + n].def) << n;
        kernel->notes.push_back(note);
      }
      kernel->classes.push_back(pending.cls);
      InstFlow flow{pending.flow};
      if ((flow.flow == Flow::Load || flow.flow == Flow::Store) && !pending.list)
        flow.flow = Flow::Copy; // to or from the registers that it loads or stores
      if (pending.referenceCount <= 32)
        flow.operands = static_cast<std::uint8_t>(pending.referenceCount);
      for (std::uint32_t n = 0; n < flow.operands; ++n)
        flow.written |= std::uint32_t(references[pending.firstReference + n].def) << n;
      kernel->flows.push_back(flow);
    }
    block.last = static_cast<std::uint32_t>(kernel->insts.size());
    block.groupLast = static_cast<std::uint32_t>(kernel->groupInsts.size());
    block.guard = offsets[pendingBlock.guard];
    block.target = newIndex[block.target];
    block.next = newIndex[block.next];
    for (std::uint32_t &target : block.targets)
      target = newIndex[target];
    if (block.ending == Ending::Switch)
      block.index = offsets[pendingBlock.index];
    if (block.ending == Ending::Barrier) {
      BarrierSpec &spec = kernel->barriers[block.index];
      spec.id = offsets[pendingBlock.barrierRefs[0]];
      spec.threads = pendingBlock.hasThreads ? offsets[pendingBlock.barrierRefs[1]] : 0;
      spec.source = offsets[pendingBlock.barrierRefs[2]];
      spec.result = offsets[pendingBlock.barrierRefs[3]];
    }
  }
  findAsides();
  auto pointToLists = [&](std::vector<Inst> &insts, const std::vector<std::size_t> &starts) {
    for (std::size_t n = 0; n < insts.size(); ++n)
      if (starts[n] != SIZE_MAX)
        insts[n].ops = kernel->operandStore.data() + starts[n];
  };
  pointToLists(kernel->insts, lists);
  pointToLists(kernel->groupInsts, groupLists);
}
