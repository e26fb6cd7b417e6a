//===- RaceCheck.cpp - conflicting accesses that nothing orders -----------===//

#include "runtime/emulator/observe/RaceCheck.h"

#include <algorithm>
#include <cstring>

using namespace planemu;

void RaceCheck::View::join(const View &other) {
  own = planemu::join(own, other.own);
  others = planemu::join(others, other.others);
  fencedGpu = planemu::join(fencedGpu, other.fencedGpu);
  fencedCta = planemu::join(fencedCta, other.fencedCta);
  observedGpu = planemu::join(observedGpu, other.observedGpu);
  observedCta = planemu::join(observedCta, other.observedCta);
}

void RaceCheck::start(const Warp *all, unsigned count) {
  cta = all->cta->linear;
  firstHere = history.next();
  sharedQuads.resize(all->sharedBytes / 16 + 1); // stale cells have old ids
  sharedWords.resize(4 * sharedQuads.size());
  sharedVariables.clear();
  warps.clear();
  warps.resize(count);
  auto nothing = std::make_shared<const Clocks>(count, 0);
  for (WarpState &state : warps)
    state.view.own = nothing;
  std::fill(std::begin(barriers), std::end(barriers), View());
}

// --- Synchronisation --------------------------------------------------------

/// The steps of the warp so far are over; it goes on in a new one.
void RaceCheck::advance(WarpState &state, unsigned warp) {
  auto own = std::make_shared<Clocks>(*state.view.own);
  (*own)[warp] = state.clock++;
  state.view.own = std::move(own);
}

void RaceCheck::arrive(const Warp &warp, unsigned id) {
  WarpState &state = warps[warp.index];
  advance(state, warp.index);
  barriers[id].join(state.view);
  state.allSee = state.syncedAt = history.next();
}

void RaceCheck::pass(const Warp &warp, unsigned id) {
  warps[warp.index].view.join(barriers[id]);
  warps[warp.index].learntAt = history.next();
}

void RaceCheck::syncLanes(Warp &warp, std::uint32_t mask) {
  WarpState &state = warps[warp.index];
  state.syncedAt = history.next();
  if (mask == ~0u) {
    state.allSee = state.syncedAt;
    return;
  }
  LaneRow row = {};
  for (std::uint32_t left = mask; left; left &= left - 1)
    join(row, state.sees[__builtin_ctz(left)]);
  for (std::uint32_t left = mask; left; left &= left - 1)
    row[static_cast<unsigned>(__builtin_ctz(left))] = state.syncedAt;
  for (std::uint32_t left = mask; left; left &= left - 1)
    state.sees[__builtin_ctz(left)] = row;
}

void RaceCheck::acquireLanes(WarpState &state, std::uint32_t mask) {
  if (!state.messages)
    return;
  LaneMessages &messages = *state.messages;
  for (std::uint32_t left = mask & messages.hasObserved; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    join(state.sees[lane], messages.observed[lane]);
    messages.observed[lane] = {};
  }
  messages.hasObserved &= ~mask;
  state.syncedAt = history.next();
}

void RaceCheck::releaseLanes(WarpState &state, std::uint32_t mask) {
  if (!state.messages)
    state.messages = std::make_unique<LaneMessages>();
  LaneMessages &messages = *state.messages;
  state.syncedAt = history.next();
  for (std::uint32_t left = mask; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    messages.fenced[lane] = state.sees[lane];
    messages.fenced[lane][lane] = state.syncedAt;
  }
  messages.hasFenced |= mask;
}

void RaceCheck::acquire(WarpState &state, Scope scope) {
  KnowledgePtr &observed = scope == Scope::Gpu ? state.view.observedGpu : state.view.observedCta;
  if (!observed)
    return;
  auto others = std::make_shared<Knowledge>(*observed);
  if (auto mine = others->of.find(cta); mine != others->of.end()) {
    state.view.own = planemu::join(state.view.own, mine->second);
    others->of.erase(mine);
  }
  state.view.others = planemu::join(state.view.others, others);
  state.learntAt = history.next();
  observed = nullptr;
}

void RaceCheck::release(WarpState &state, std::uint64_t linear, unsigned warp, Scope scope) {
  advance(state, warp);
  auto known = state.view.others ? std::make_shared<Knowledge>(*state.view.others)
                                 : std::make_shared<Knowledge>();
  known->of[linear] = state.view.own;
  state.view.fencedCta = known;
  if (scope == Scope::Gpu)
    state.view.fencedGpu = known;
}

void RaceCheck::fence(Warp &warp, std::uint32_t mask, Scope scope) {
  WarpState &state = warps[warp.index];
  acquireLanes(state, mask);
  releaseLanes(state, mask);
  acquire(state, Scope::Cta);
  if (scope == Scope::Gpu)
    acquire(state, Scope::Gpu);
  release(state, cta, warp.index, scope);
}

/// What is known of this CTA: all that CTA scope hands on.
KnowledgePtr RaceCheck::ownPart(const KnowledgePtr &known) const {
  if (!known)
    return nullptr;
  auto own = known->of.find(cta);
  if (own == known->of.end())
    return nullptr;
  auto part = std::make_shared<Knowledge>();
  part->of.insert(*own);
  return part;
}

/// A strong access to a word: learns what was released there, and releases what was fenced. An
/// atomic passes on what it finds; a store replaces it.
void RaceCheck::synchronise(const Now &now, unsigned lane, std::uint64_t host, bool isShared) {
  bool reads = now.access->kind != AccessKind::Store;
  bool writes = now.access->kind != AccessKind::Load;
  auto &variables = isShared ? sharedVariables : history.variables;
  View &view = now.state->view;
  auto found = variables.find(host);
  if (reads && found != variables.end()) {
    view.observedCta = planemu::join(view.observedCta, ownPart(found->second.cta));
    view.observedCta = planemu::join(view.observedCta, ownPart(found->second.gpu));
    if (now.scope == Scope::Gpu)
      view.observedGpu = planemu::join(view.observedGpu, found->second.gpu);
    synchroniseLane(now, lane, found->second, true, false);
  }
  if (!writes || (!view.fencedCta && !view.fencedGpu && found == variables.end()))
    return;
  SyncVariable &variable = variables[host];
  if (!reads)
    variable = {};
  variable.cta = planemu::join(variable.cta, ownPart(view.fencedCta));
  if (now.scope == Scope::Gpu)
    variable.gpu = planemu::join(variable.gpu, view.fencedGpu);
  synchroniseLane(now, lane, variable, false, true);
}

/// The same between lanes of one warp.
void RaceCheck::synchroniseLane(const Now &now, unsigned lane, SyncVariable &variable, bool reads,
                                bool writes) {
  WarpState &state = *now.state;
  std::pair key(cta, now.warp->index);
  if (auto told = variable.lanes.find(key); reads && told != variable.lanes.end()) {
    if (!state.messages)
      state.messages = std::make_unique<LaneMessages>();
    join(state.messages->observed[lane], told->second);
    state.messages->hasObserved |= 1u << lane;
  }
  if (writes && state.messages && (state.messages->hasFenced >> lane & 1))
    join(variable.lanes[key], state.messages->fenced[lane]);
}

// --- Accesses ---------------------------------------------------------------

[[gnu::noinline]] RaceCheck::Relation RaceCheck::relate(const Now &now, std::uint32_t id) const {
  const AccessRecord &record = history[id];
  if (record.warp == now.warp->index && record.cta == cta)
    return {id, true, false};
  if (id >= now.state->learntAt)
    return {id, false, false};
  if (record.cta == cta)
    return {id, false, (*now.state->view.own)[record.warp] >= record.clock};
  const KnowledgePtr &others = now.state->view.others;
  if (!others)
    return {id, false, false};
  auto known = others->of.find(record.cta);
  return {id, false, known != others->of.end() && (*known->second)[record.warp] >= record.clock};
}

/// The lanes of a row find few different ids.
[[gnu::always_inline]] inline const RaceCheck::Relation &
RaceCheck::relationTo(const Now &now, std::uint32_t id) const {
  Relation &relation = now.relations[id % std::size(now.relations)];
  if (relation.id != id)
    relation = relate(now, id);
  return relation;
}

/// True if the access `id` of `lane` (or of several lanes) is before what `currentLane` does now.
[[gnu::always_inline]] inline bool RaceCheck::ordered(const Now &now, std::uint32_t id,
                                                      unsigned lane, bool mixed,
                                                      unsigned currentLane) const {
  const Relation &relation = relationTo(now, id);
  if (!relation.sameWarp)
    return relation.before;
  const WarpState &state = *now.state;
  if ((lane == currentLane && !mixed) || id < state.allSee)
    return true;
  const LaneRow &sees = state.sees[currentLane];
  if (!mixed)
    return id < sees[lane];
  for (unsigned other = 0; other < 32; ++other)
    if (other != currentLane && id >= sees[other])
      return false;
  return true;
}

void RaceCheck::report(const Now &now, const char *message, unsigned lane, std::uint64_t host,
                       std::uint32_t bytes, std::uint32_t id, unsigned otherLane) {
  const AccessRecord &record = history[id];
  Site other{record.line, record.cta, record.warp, otherLane};
  unsigned first = static_cast<unsigned>(__builtin_ctz(bytes));
  launch.findings().add(
      *now.warp->launch, "race", message, siteOf(*now.warp, *now.inst, lane),
      describeBytes(*now.warp, host + first, static_cast<std::uint32_t>(__builtin_popcount(bytes))),
      &other,
      record.kind == AccessKind::Load || record.kind == AccessKind::AsyncLoad ? "the read was at"
                                                                              : "the write was at");
}

inline void RaceCheck::read(const Now &now, RaceCell &cell, unsigned lane, std::uint32_t bytes) {
  // What all CTAs read: two others have, and this one knows nothing of others.
  if (!now.state->view.others && cell.first >= now.first && cell.first < firstHere &&
      cell.second >= now.first && cell.second < firstHere)
    return;
  auto sameWarp = [&](std::uint32_t id) { return relationTo(now, id).sameWarp; };
  auto mixes = [&](std::uint32_t id, unsigned before, bool mixed) {
    return id >= now.first && (mixed || before != lane) && !ordered(now, id, before, mixed, lane);
  };
  bool firstFree = cell.first < now.first, secondFree = cell.second < now.first;
  if (firstFree || sameWarp(cell.first)) {
    cell.firstMixed = !firstFree && mixes(cell.first, cell.firstLane, cell.firstMixed);
    cell.firstBytes = (firstFree ? 0 : cell.firstBytes) | bytes;
    cell.first = now.id;
    cell.firstLane = lane;
    return;
  }
  if (!secondFree && !sameWarp(cell.second)) {
    // Two others have read it: one of them may have been followed by this one.
    if (ordered(now, cell.first, cell.firstLane, cell.firstMixed, lane)) {
      cell.first = now.id;
      cell.firstLane = lane;
      cell.firstBytes = bytes;
      cell.firstMixed = false;
      return;
    }
    if (!ordered(now, cell.second, cell.secondLane, cell.secondMixed, lane))
      return;
    secondFree = true;
  }
  cell.secondMixed = !secondFree && mixes(cell.second, cell.secondLane, cell.secondMixed);
  cell.secondBytes = (secondFree ? 0 : cell.secondBytes) | bytes;
  cell.second = now.id;
  cell.secondLane = lane;
}

/// True if `lane` stores what the cell's writer, another lane of the same instruction, does.
bool RaceCheck::storesTheSame(const Now &now, const RaceCell &cell, unsigned lane,
                              std::uint32_t bytes, std::uint64_t host) const {
  const Access &access = *now.access;
  if (!access.data)
    return false;
  std::uint32_t from = static_cast<std::uint32_t>(__builtin_ctz(bytes));
  std::size_t count = static_cast<std::size_t>(__builtin_popcount(bytes));
  const char *mine = access.data + lane * access.bytes + (host + from - access.of(lane));
  std::uint64_t inOther = host + from - access.of(cell.writeLane);
  // Out of its row: the writer was an earlier execution, whose value is in memory.
  const char *other = (access.mask >> cell.writeLane & 1) && inOther + count <= access.bytes
                          ? access.data + cell.writeLane * access.bytes + inOther
                          : reinterpret_cast<const char *>(host + from);
  return std::memcmp(mine, other, count) == 0;
}

/// True if `lane` stores what `count` bytes of shared memory hold already: whichever of the two
/// writes comes last, the value is one. Compilers store what several warps have computed alike.
bool RaceCheck::storesWhatIsThere(const Now &now, unsigned lane, std::uint64_t host,
                                  std::size_t count) const {
  const Access &access = *now.access;
  if (!access.data ||
      host - reinterpret_cast<std::uint64_t>(now.warp->shared) >= now.warp->sharedBytes)
    return false;
  const char *mine = access.data + lane * access.bytes + (host - access.of(lane));
  return std::memcmp(mine, reinterpret_cast<const char *>(host), count) == 0;
}

/// One lane accesses `bytes`, a mask, of the word at `host`; `words`: of so many words in a row.
void RaceCheck::word(const Now &now, RaceCell &cell, unsigned lane, std::uint32_t bytes,
                     std::uint64_t host, unsigned words) {
  auto excused = [&](std::uint32_t id) {
    if (now.scope == Scope::Weak)
      return false;
    const AccessRecord &record = history[id];
    return record.scope != Scope::Weak &&
           (record.cta == cta || (record.scope == Scope::Gpu && now.scope == Scope::Gpu));
  };
  AccessKind kind = now.access->kind;
  bool isRead = kind == AccessKind::Load || kind == AccessKind::AsyncLoad;
  if (cell.write >= now.first && (cell.writeBytes & bytes) && !excused(cell.write)) {
    if (cell.write == now.id && !isRead) {
      if ((cell.writeLane != lane || cell.writeMixed) &&
          !storesTheSame(now, cell, lane, bytes, host))
        report(now, "two lanes write different values to the same bytes", lane, host, bytes,
               cell.write, cell.writeLane);
    } else if (!ordered(now, cell.write, cell.writeLane, cell.writeMixed, lane) &&
               (isRead || !storesWhatIsThere(now, lane, host + __builtin_ctz(bytes),
                                             words * __builtin_popcount(bytes)))) {
      report(now,
             isRead ? "a read of bytes that another thread writes, and nothing orders the two"
                    : "two writes of the same bytes by different threads, and nothing orders them",
             lane, host, bytes, cell.write, cell.writeLane);
    }
  }
  if (isRead)
    return read(now, cell, lane, bytes);
  const char *message = "a write of bytes that another thread reads, and nothing orders the two";
  if (cell.first >= now.first && (cell.firstBytes & bytes) && !excused(cell.first) &&
      !ordered(now, cell.first, cell.firstLane, cell.firstMixed, lane))
    report(now, message, lane, host, bytes, cell.first, cell.firstLane);
  if (cell.second >= now.first && (cell.secondBytes & bytes) && !excused(cell.second) &&
      !ordered(now, cell.second, cell.secondLane, cell.secondMixed, lane))
    report(now, message, lane, host, bytes, cell.second, cell.secondLane);
  bool again = cell.write == now.id;
  cell.writeMixed = again && (cell.writeMixed || cell.writeLane != lane);
  cell.writeBytes = again ? cell.writeBytes | bytes : bytes;
  cell.write = now.id;
  cell.writeLane = lane;
  cell.first = cell.second = 0;
}

/// Most reads are of what nobody writes in this launch and no other warp has read. False: it is not
/// so.
inline bool RaceCheck::readsQuietly(const Now &now, RaceCell &cell, unsigned lane,
                                    std::uint32_t bytes) {
  bool again = cell.first == now.id;
  if (cell.write >= now.first || (cell.first >= now.first && !again))
    return false;
  cell.firstMixed = again && (cell.firstMixed || cell.firstLane != lane);
  cell.firstBytes = again ? cell.firstBytes | bytes : bytes;
  cell.firstLane = lane;
  cell.first = now.id;
  return true;
}

/// True if four cells in a row are equal.
static inline bool fourEqual(const RaceCell *cells) {
  std::uint64_t words[8];
  std::memcpy(words, cells, sizeof(words));
  std::uint64_t different = 0;
  for (int n = 2; n < 8; ++n)
    different |= words[n] ^ words[n - 2];
  return different == 0;
}

/// The bytes of a row, `first` of the memory that `cells` describe.
inline void RaceCheck::row(const Now &now, RaceCells cells, std::uint64_t first,
                           std::uint64_t count, unsigned lane, std::uint64_t host) {
  AccessKind kind = now.access->kind;
  bool isRead = kind == AccessKind::Load || kind == AccessKind::AsyncLoad;
  auto step = [&](RaceCell &cell, std::uint32_t bytes, std::uint64_t at, unsigned count) {
    if (!isRead || !readsQuietly(now, cell, lane, bytes))
      word(now, cell, lane, bytes, at, count);
  };
  const std::uint64_t end = first + count;
  for (std::uint64_t at = first; at < end;) {
    RaceCell &quad = cells.quads[at / 16], *words = cells.words + at / 16 * 4;
    if (at % 16 == 0 && end - at >= 16 && (!quad.split || fourEqual(words)) &&
        (isRead || quad.write != now.id)) {
      // Four words with one past have one future, unless it depends on what is in them.
      if (quad.split)
        quad = *words;
      step(quad, 0xf, host + (at - first), 4);
      at += 16;
      continue;
    }
    if (!quad.split) {
      std::fill(words, words + 4, quad);
      quad.split = true;
    }
    unsigned from = at % 4;
    unsigned here = static_cast<unsigned>(std::min<std::uint64_t>(4 - from, end - at));
    step(words[at / 4 % 4], ((1u << here) - 1) << from, host + (at - first) - from, 1);
    at += here;
  }
}

/// The record of this execution. Executions of one instruction between which the warp did not
/// synchronise share one.
std::uint32_t RaceCheck::recordOf(Warp &warp, const Inst &inst, const Access &access,
                                  WarpState &state) {
  WarpState::Recent &recent =
      state.recent[(inst.cache * 2u + (access.kind == AccessKind::AsyncStore)) % 64];
  if (recent.line == inst.line && recent.clock == state.clock && recent.id >= state.syncedAt &&
      history[recent.id].kind == access.kind)
    return recent.id;
  std::uint32_t id =
      history.add({cta, state.clock, inst.line, static_cast<std::uint8_t>(warp.index),
                   scopeOf(inst), access.kind});
  recent = {inst.line, id, state.clock};
  return id;
}

void RaceCheck::access(Warp &warp, const Inst &inst, const Access &access) {
  WarpState &state = warps[warp.index];
  if (inst.flags & Inst::Release)
    fence(warp, access.mask, scopeOf(inst));
  Now now{&warp, &inst, &state, &access, recordOf(warp, inst, access, state), 0, scopeOf(inst), {}};
  const std::uint64_t sharedLow = reinterpret_cast<std::uint64_t>(warp.shared);
  const bool isRead = access.kind == AccessKind::Load || access.kind == AccessKind::AsyncLoad;
  const std::uint32_t sharedBytes = warp.sharedBytes;
  const Access rows = access; // which nothing that is called changes
  ShadowRef region;
  RaceCells cells;
  for (std::uint32_t left = rows.mask; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    std::uint64_t host = rows.of(lane);
    std::uint64_t count = rows.sizes ? rows.sizes[lane] : rows.bytes;
    if (!host || !count)
      continue;
    auto lookAt = [&](RaceCells cells, std::uint64_t first) {
      RaceCell &quad = cells.quads[first / 16];
      if (isRead && count == 16 && first % 16 == 0 && !quad.split &&
          readsQuietly(now, quad, lane, 0xf))
        return;
      row(now, cells, first, count, lane, host);
    };
    bool isShared = host - sharedLow < sharedBytes;
    if (isShared) {
      now.first = firstHere;
      lookAt({sharedQuads.data(), sharedWords.data()}, host - sharedLow);
    } else {
      if (host - region.low >= region.bytes) {
        region = launch.shadowOf(inst, host);
        cells = region.shadow ? region.shadow->cells() : RaceCells();
      }
      if (!cells) // local memory and parameters are a thread's own
        continue;
      now.first = history.first();
      lookAt(cells, host - region.low + region.offset);
    }
    if (now.scope != Scope::Weak)
      synchronise(now, lane, host, isShared);
  }
  if (inst.flags & Inst::Acquire) {
    acquireLanes(state, access.mask);
    acquire(state, Scope::Cta);
    if (now.scope == Scope::Gpu)
      acquire(state, Scope::Gpu);
  }
}

/// Until now only the thread that issued them was not to read what they write; what it tells others
/// from now on holds for them too. What was told before, between issue and wait, did not.
void RaceCheck::copiesEnd(const Warp &warp, const AsyncCopies::Copies &ended) {
  std::uint32_t id = 0, line = 0;
  auto renew = [&](RaceCell &cell, const AsyncCopy &copy) {
    if (cell.write < firstHere || cell.writeLane != copy.lane)
      return;
    const AccessRecord &written = history[cell.write];
    if (written.kind == AccessKind::AsyncStore && written.warp == warp.index &&
        written.line == copy.line)
      cell.write = id;
  };
  for (const AsyncCopy &copy : ended) {
    if (!id || line != copy.line) {
      line = copy.line;
      id = history.add({cta, warps[warp.index].clock, line, static_cast<std::uint8_t>(warp.index),
                        Scope::Weak, AccessKind::AsyncStore});
    }
    const std::uint32_t end = copy.offset + copy.bytes;
    for (std::uint32_t at = copy.offset; at < end;) {
      RaceCell &quad = sharedQuads[at / 16];
      renew(quad.split ? sharedWords[at / 4] : quad, copy);
      at = (quad.split ? at / 4 * 4 + 4 : at / 16 * 16 + 16);
    }
  }
}
