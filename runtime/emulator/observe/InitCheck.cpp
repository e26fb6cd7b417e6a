//===- InitCheck.cpp - reads of bytes that nobody wrote -------------------===//

#include "runtime/emulator/observe/InitCheck.h"

#include <cstring>

using namespace planemu;

void InitCheck::start(const Warp *warps, unsigned count) {
  shared.assign(warps->sharedBytes, Unwritten);
  local.resize(warps->localBytes ? count : 0);
  for (std::vector<State> &states : local)
    states.assign(32ull * warps->localBytes, Unwritten);
}

void InitCheck::accessGlobal(Warp &warp, const Inst &inst, const Access &access, unsigned lane,
                             std::uint64_t host, std::uint32_t bytes) {
  ShadowRef shadow = launch.shadowOf(inst, host);
  if (!shadow.shadow || !shadow.shadow->written())
    return;
  WrittenBits written = shadow.shadow->written();
  std::uint64_t first = host - shadow.low + shadow.offset;
  if (access.kind != AccessKind::Store && (bytes > 56 || !written.allOf(first, bytes))) {
    std::uint64_t good = written.firstUnwritten(first, bytes);
    // A row of several lanes: name the lane.
    if (good < bytes) {
      unsigned reader = lane + static_cast<unsigned>(good / access.bytes);
      launch.findings().add(
          *warp.launch, "init", "a read of global memory that nothing has written",
          siteOf(warp, inst, reader), describeBytes(warp, host + good, access.bytes));
    }
  }
  if (access.kind != AccessKind::Load && access.kind != AccessKind::AsyncLoad)
    written.mark(first, bytes);
}

/// True if all `bytes` states are Written.
bool InitCheck::allWritten(const State *states, std::uint32_t bytes) {
  constexpr std::uint64_t Eight = Written * 0x0101010101010101ull;
  std::uint64_t word, wrong = 0;
  for (; bytes >= 8; bytes -= 8, states += 8) {
    std::memcpy(&word, states, 8);
    wrong |= word ^ Eight;
  }
  for (; bytes; --bytes, ++states)
    wrong |= *states ^ Written;
  return wrong == 0;
}

void InitCheck::accessStates(Warp &warp, const Inst &inst, const Access &access, unsigned lane,
                             std::uint64_t host, State *states, std::uint32_t bytes) {
  if (access.kind == AccessKind::Load || access.kind == AccessKind::Atomic) {
    bool good = allWritten(states, bytes);
    for (std::uint32_t byte = 0; !good && byte < bytes; ++byte) {
      if (states[byte] == Written)
        continue;
      bool inFlight = states[byte] == InFlight;
      launch.findings().add(
          *warp.launch, "init",
          inFlight
              ? "a read of bytes that a cp.async is still copying: nothing waits for its group "
                "or mbarrier"
              : "a read of memory that nothing has written in this CTA",
          siteOf(warp, inst, lane), describeBytes(warp, host + byte, bytes - byte));
      break;
    }
    if (access.kind == AccessKind::Load)
      return;
  }
  std::memset(states, access.kind == AccessKind::AsyncStore ? InFlight : Written, bytes);
}

void InitCheck::access(Warp &warp, const Inst &inst, const Access &access) {
  const std::uint64_t sharedLow = reinterpret_cast<std::uint64_t>(warp.shared);
  const std::uint64_t localLow = reinterpret_cast<std::uint64_t>(warp.local);
  if (access.whole && !access.sizes && access.whole - sharedLow >= warp.sharedBytes &&
      access.whole - localLow >= 32ull * warp.localBytes) {
    // A whole warp in one piece of global memory.
    return accessGlobal(warp, inst, access, 0, access.whole, 32 * access.bytes);
  }
  const std::uint32_t sharedBytes = warp.sharedBytes;
  const Access rows = access; // which nothing that is called changes
  for (std::uint32_t left = rows.mask; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    std::uint64_t host = rows.of(lane);
    std::uint32_t bytes = rows.sizes ? rows.sizes[lane] : rows.bytes;
    if (!host || !bytes)
      continue;
    if (host - sharedLow < sharedBytes) {
      std::uint32_t offset = static_cast<std::uint32_t>(host - sharedLow);
      State *states = shared.data() + offset;
      if (rows.kind == AccessKind::Load && allWritten(states, bytes))
        continue;
      accessStates(warp, inst, access, lane, host, states, bytes);
    } else if (host - localLow < 32ull * warp.localBytes) {
      accessStates(warp, inst, access, lane, host, local[warp.index].data() + (host - localLow),
                   bytes);
    } else {
      accessGlobal(warp, inst, access, lane, host, bytes);
    }
  }
}

void InitCheck::copiesEnd(const AsyncCopies::Copies &ended, const AsyncCopies &others) {
  for (const AsyncCopy &copy : ended)
    std::memset(shared.data() + copy.offset, Written, copy.bytes);
  // A later copy into the same bytes may be in flight still.
  if (!ended.empty())
    others.forEach([&](const AsyncCopy &copy) {
      std::memset(shared.data() + copy.offset, InFlight, copy.bytes);
    });
}
