//===- SyncCheck.cpp - member masks and the lanes that are there ----------===//
//
// PTX ISA, shfl.sync, vote.sync, bar.warp.sync and the like: the executing thread must be in its
// own member mask, the members must execute the same instruction with the same mask, and a shuffle
// from a thread that does not is undefined. Members that have exited do not count.
//===----------------------------------------------------------------------===//

#include "planemu/planemu.h"
#include "runtime/emulator/observe/Findings.h"
#include "runtime/emulator/observe/LaunchObserver.h"
#include "runtime/emulator/observe/Observer.h"

#include <cstring>

using namespace planemu;

static std::string hex(std::uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", mask);
  return text;
}

void Observer::checkMembers(Warp &warp, const Inst &inst) {
  std::uint32_t guard;
  std::memcpy(&guard, warp.file + inst.guard, 4);
  std::uint32_t here = warp.active & (guard ^ inst.guardXor);
  std::uint32_t masks[32];
  std::memcpy(masks, warp.file + *operandsOf(inst), sizeof(masks));
  if (!here)
    return;
  std::uint32_t common = masks[__builtin_ctz(here)], different = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    different |= masks[lane] ^ common;
  if (!different && !(here & ~common) && !(common & warp.live & ~here))
    return; // as it should be
  for (std::uint32_t left = here; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    if (!(masks[lane] >> lane & 1))
      return launch.findings().add(
          *warp.launch, "sync", "a lane executes this without being in its member mask",
          siteOf(warp, inst, lane),
          "the mask is " + hex(masks[lane]) + ", the lanes here are " + hex(here));
    std::uint32_t absent = masks[lane] & warp.live & ~here;
    if (absent)
      return launch.findings().add(
          *warp.launch, "sync", "lanes of the member mask do not execute this",
          siteOf(warp, inst, lane),
          "the mask is " + hex(masks[lane]) + ", lanes " + hex(absent) + " of it are not here");
    for (std::uint32_t others = masks[lane] & here; others; others &= others - 1) {
      unsigned other = static_cast<unsigned>(__builtin_ctz(others));
      if (masks[other] != masks[lane])
        return launch.findings().add(*warp.launch, "sync",
                                     "lanes that belong together have different member masks",
                                     siteOf(warp, inst, lane),
                                     "the mask is " + hex(masks[lane]) + ", that of lane " +
                                         std::to_string(other) + " is " + hex(masks[other]));
    }
  }
}

void Observer::readsAbsentLane(Warp &warp, const Inst &inst, unsigned lane, unsigned from) {
  if (launch.has(PLANEMU_CHECK_SYNC))
    launch.findings().add(*warp.launch, "sync",
                          "a lane reads a register of a lane that does not take part",
                          siteOf(warp, inst, lane), "the lane it reads is " + std::to_string(from));
}
