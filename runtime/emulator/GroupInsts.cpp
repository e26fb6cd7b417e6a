//===- GroupInsts.cpp - what groups of warps execute of a block -----------===//
//
// Steps of Finish.cpp that make Kernel::groupInsts (Code.h):
//
//   read     sources that copies and conversions have filled become what those were filled from
//   leave    and who then writes what nobody reads is left out
//   share    accesses that have their addresses in one register look at it once
//   asides   blocks that some lanes run while the others wait behind it
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Decoder.h"

#include <algorithm>
#include <span>

using namespace planemu;

static constexpr unsigned MaxNotes = 64; // of a block

/// Sources that a copy earlier in the block has filled become what it was filled from, and
/// instructions that have forms for it read what Split and WidenE4m3 have read. Compilers move values
/// between registers of the same width but different types for every second operation, and have no
/// other way from a byte of e4m3 to f32.
void Decoder::readThrough(PendingBlock &block) {
  struct View {
    Effect effect;
    std::uint32_t from;
    unsigned half;
  };
  std::unordered_map<std::uint32_t, View> views; // by the register that holds it
  auto viewOf = [&](std::uint32_t id, Effect effect) {
    auto view = views.find(id);
    return view != views.end() && view->second.effect == effect ? &view->second : nullptr;
  };
  for (Pending &pending : block.insts) {
    std::span<Reference> refs(references.data() + pending.firstReference, pending.referenceCount);
    for (Reference &reference : refs)
      if (!reference.def)
        if (const View *copy = viewOf(reference.id, Effect::Copy))
          reference.id = copy->from;

    auto readInstead = [&](const GroupForm &form, std::uint32_t id) {
      if (form.together && !pending.guard) {
        pending.inst.together = form.together;
        pending.lanes = form.lanes;
        pending.instead = id;
      }
    };
    if (const SourceForms *forms = pending.forms)
      if (const View *half = viewOf(refs[1].id, Effect::Split)) {
        const View *codes = viewOf(half->from, Effect::WidenE4m3);
        const View *codesHalf = codes ? viewOf(codes->from, Effect::Split) : nullptr;
        if (codesHalf)
          readInstead(forms->e4m3InB32[2 * codesHalf->half + half->half], codesHalf->from);
        else if (codes)
          readInstead(forms->e4m3[half->half], codes->from);
        else
          readInstead(forms->half[half->half], half->from);
      }

    for (const Reference &reference : refs)
      if (reference.def && !views.empty())
        std::erase_if(views, [&](const auto &view) {
          return view.first == reference.id || view.second.from == reference.id;
        });
    // A register that is its own source says nothing of what it was.
    auto note = [&](unsigned result, unsigned source, unsigned half) {
      if (refs[result].id != refs[source].id)
        views[refs[result].id] = {pending.effect, refs[source].id, half};
    };
    if (pending.effect == Effect::Split) {
      note(0, 2, 0);
      note(1, 2, 1);
    } else if (pending.effect != Effect::Other &&
               (pending.effect != Effect::Copy ||
                virtuals[refs[0].id].bits == virtuals[refs[1].id].bits)) {
      note(0, 1, 0);
    }
  }
}

/// What has an effect on registers alone, and on none that anybody reads, need not be executed.
/// `live`: by virtual id, the registers that are read behind the block.
void Decoder::leaveOut(PendingBlock &block, std::vector<bool> &live) {
  live[block.index] = true;
  for (std::uint32_t reference : block.barrierRefs)
    live[reference] = true;
  std::vector<bool> behind = live;
  behind[block.guard] = true;
  for (auto pending = block.insts.rbegin(); pending != block.insts.rend(); ++pending) {
    std::span<Reference> refs(references.data() + pending->firstReference, pending->referenceCount);
    pending->left = pending->effect != Effect::Other;
    for (const Reference &reference : refs)
      pending->left &= !reference.def || !live[reference.id];
    if (pending->left)
      continue;
    for (std::uint32_t n = 0; n < refs.size() && n < 32; ++n)
      pending->dying |= std::uint32_t(refs[n].def && !behind[refs[n].id]) << n;
    for (const Reference &reference : refs)
      if (reference.def && !pending->guard)
        live[reference.id] = false;
    for (const Reference &reference : refs)
      if (!reference.def)
        live[pending->instead ? pending->instead : reference.id] = true;
  }
}

/// Finds accesses to memory that have their addresses in a register where an earlier one of the block
/// had them. Returns how many AddressNotes the block needs.
unsigned Decoder::shareAddresses(PendingBlock &block) {
  std::unordered_map<std::uint32_t, Pending *> first; // by the register
  unsigned notes = 0;
  for (Pending &pending : block.insts) {
    if (pending.left)
      continue;
    std::span<Reference> refs(references.data() + pending.firstReference, pending.referenceCount);
    if (pending.address) {
      auto [known, fresh] = first.try_emplace(refs[pending.address - 1].id, &pending);
      Pending *maker = known->second;
      if (!fresh && !maker->noteFlag && notes < MaxNotes) {
        maker->noteFlag = Inst::MakesNote;
        maker->note = notes++;
      }
      if (!fresh && maker->noteFlag) {
        pending.noteFlag = Inst::ReadsNote;
        pending.note = maker->note;
      }
    }
    for (const Reference &reference : refs)
      if (reference.def)
        first.erase(reference.id);
  }
  return notes;
}

/// Finds the branches around a block that one warp's lanes can run without the others.
void Decoder::findAsides() {
  auto comesTo = [&](std::uint32_t id, std::uint32_t behind) {
    const Block &block = kernel->blocks[id];
    return block.ending == Ending::Next && block.next == behind && !block.backward &&
           std::none_of(kernel->insts.begin() + block.first, kernel->insts.begin() + block.last,
                        [](const Inst &inst) { return inst.flags & Inst::Sync; });
  };
  for (Block &block : kernel->blocks) {
    if (block.ending != Ending::Branch || !block.guard || block.backward)
      continue;
    if (comesTo(block.next, block.target))
      block.aside = Aside::Next;
    else if (comesTo(block.target, block.next))
      block.aside = Aside::Target;
  }
}
