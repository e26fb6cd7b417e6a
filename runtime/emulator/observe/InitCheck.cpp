//===- InitCheck.cpp - reads of bytes that nobody wrote -------------------===//

#include "runtime/emulator/observe/InitCheck.h"
#include "planemu/planemu.h"

#include <cstring>

using namespace planemu;

// A row has 32 bytes at most.
constexpr std::uint32_t MostBytes = 32;

void InitCheck::start(const Warp *warps, unsigned count) {
  const Kernel &kernel = *warps->launch->kernel;
  shared.assign(warps->sharedBytes, Unwritten);
  if (kernel.toolkitShared)
    std::memset(shared.data() + kernel.toolkitSharedAt, Written, kernel.toolkitShared);
  local.resize(warps->localBytes ? count : 0);
  for (std::vector<std::uint8_t> &bits : local)
    bits.assign(32ull * warps->localBytes, 0xff);
  registers.assign(count, Undefined());
}

// --- Undefined values -------------------------------------------------------

const InstFlow &InitCheck::flowOf(const Warp &warp, const Inst &inst) const {
  const Kernel &kernel = *warp.launch->kernel;
  return kernel.flows[static_cast<std::size_t>(&inst - kernel.insts.data())];
}

void InitCheck::report(const Warp &warp, const Origin &origin) const {
  bool own = origin.host - reinterpret_cast<std::uint64_t>(warp.shared) < warp.sharedBytes ||
             origin.host - reinterpret_cast<std::uint64_t>(warp.local) < 32ull * warp.localBytes;
  launch.findings().add(*warp.launch, "init",
                        own ? "a read of memory that nothing has written in this CTA"
                            : "a read of global memory that nothing has written",
                        {origin.line, warp.cta->linear, warp.index, origin.lane},
                        describeBytes(warp, origin.host, origin.bytes));
}

void InitCheck::executed(const Warp &warp, const Inst &inst) {
  if (registers[warp.index].any())
    registers[warp.index].follow(warp, inst, [&](const Origin &origin) { report(warp, origin); });
}

void InitCheck::ended(const Warp &warp, const Block &block) {
  Undefined &values = registers[warp.index];
  if (!values.any())
    return;
  auto tell = [&](const Origin &origin) { report(warp, origin); };
  values.use(block.guard, warp.active, tell);
  if (block.ending == Ending::Switch)
    values.use(block.index, warp.active, tell);
}

/// A row whose undefined bits are `bits`, a byte of them for each of its own from the `first` on that
/// has any: a load passes them on to its registers, anything else uses them.
void InitCheck::loadUndefined(const Warp &warp, const Inst &inst, const Row &row,
                              const std::uint8_t *bits, std::uint32_t first) {
  Origin origin{inst.line, row.lane, row.host + first, row.bytes - first};
  const InstFlow &how = flowOf(warp, inst);
  if (how.flow != Flow::Load || row.bytes > MostBytes || launch.has(PLANEMU_CHECK_READS))
    return report(warp, origin);
  const std::uint32_t elements = how.operands - 1u, bytes = row.bytes / elements;
  for (std::uint32_t n = 0; n < elements; ++n) {
    std::uint64_t element = 0;
    std::memcpy(&element, bits + n * bytes, bytes);
    if (element)
      registers[warp.index].set(operandsOf(inst)[n], row.lane, element, origin);
  }
}

/// True if anything that a store stores is undefined; `bits` receives which bits of each byte.
bool InitCheck::undefinedData(const Warp &warp, const Inst &inst, const Row &row,
                              std::uint8_t *bits, Origin &origin) const {
  const InstFlow &how = flowOf(warp, inst);
  if (how.flow != Flow::Store || row.bytes > MostBytes || !registers[warp.index].any())
    return false;
  const std::uint32_t elements = how.operands - 1u, bytes = row.bytes / elements;
  bool some = false;
  for (std::uint32_t n = 0; n < elements; ++n) {
    const Origin *from = nullptr;
    std::uint64_t element = registers[warp.index].bitsOf(operandsOf(inst)[n + 1], row.lane, from);
    std::memcpy(bits + n * bytes, &element, bytes);
    if (from && !some)
      origin = *from;
    some |= from != nullptr;
  }
  return some;
}

/// A store to memory that others see: the bytes of the row that stay unwritten.
std::uint32_t InitCheck::store(const Warp &warp, const Inst &inst, const Row &row) {
  std::uint8_t bits[MostBytes] = {};
  Origin origin;
  if (!undefinedData(warp, inst, row, bits, origin))
    return 0;
  std::uint32_t undefined = 0;
  for (std::uint32_t byte = 0; byte < row.bytes; ++byte)
    undefined |= std::uint32_t(bits[byte] != 0) << byte;
  if (undefined == (row.bytes == 32 ? ~0u : (1u << row.bytes) - 1)) {
    report(warp, origin);
    return 0; // those who read it are not to blame
  }
  return undefined;
}

// --- Accesses ---------------------------------------------------------------

static bool reads(AccessKind kind) {
  return kind != AccessKind::Store && kind != AccessKind::AsyncStore;
}
static bool writes(AccessKind kind) {
  return kind != AccessKind::Load && kind != AccessKind::AsyncLoad;
}

void InitCheck::accessGlobal(Warp &warp, const Inst &inst, AccessKind kind, const Row &row) {
  ShadowRef shadow = launch.shadowOf(inst, row.host);
  if (!shadow.shadow || !shadow.shadow->written())
    return;
  WrittenBits written = shadow.shadow->written();
  std::uint64_t first = row.host - shadow.low + shadow.offset;
  if (reads(kind) && (row.bytes > 56 || !written.allOf(first, row.bytes)))
    if (std::uint64_t good = written.firstUnwritten(first, row.bytes); good < row.bytes) {
      std::uint8_t bits[MostBytes] = {};
      for (std::uint32_t byte = 0; byte < row.bytes && row.bytes <= MostBytes; ++byte)
        bits[byte] = written.get(first + byte) ? 0 : 0xff;
      loadUndefined(warp, inst, row, bits, static_cast<std::uint32_t>(good));
    }
  if (writes(kind)) {
    std::uint32_t undefined = kind == AccessKind::Store ? store(warp, inst, row) : 0;
    written.mark(first, row.bytes);
    written.unmark(first, undefined);
  }
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

void InitCheck::accessShared(Warp &warp, const Inst &inst, AccessKind kind, const Row &row,
                             State *states) {
  if (reads(kind) && !allWritten(states, row.bytes)) {
    std::uint8_t bits[MostBytes] = {};
    std::uint32_t first = row.bytes;
    for (std::uint32_t byte = row.bytes; byte-- > 0;) {
      if (states[byte] == Written)
        continue;
      first = byte;
      if (row.bytes <= MostBytes)
        bits[byte] = 0xff;
    }
    if (states[first] == InFlight)
      launch.findings().add(*warp.launch, "init",
                            "a read of bytes that a cp.async is still copying: nothing waits for "
                            "its group or mbarrier",
                            siteOf(warp, inst, row.lane),
                            describeBytes(warp, row.host + first, row.bytes - first));
    else
      loadUndefined(warp, inst, row, bits, first);
  }
  if (!writes(kind))
    return;
  std::uint32_t undefined = kind == AccessKind::Store ? store(warp, inst, row) : 0;
  std::memset(states, kind == AccessKind::AsyncStore ? InFlight : Written, row.bytes);
  for (; undefined; undefined &= undefined - 1)
    states[__builtin_ctz(undefined)] = Unwritten;
}

void InitCheck::accessLocal(Warp &warp, const Inst &inst, AccessKind kind, const Row &row,
                            std::uint8_t *undefined) {
  if (reads(kind))
    for (std::uint32_t byte = 0; byte < row.bytes; ++byte)
      if (undefined[byte]) {
        loadUndefined(warp, inst, row, undefined, byte);
        break;
      }
  if (!writes(kind))
    return;
  std::uint8_t bits[MostBytes] = {};
  Origin origin;
  if (kind == AccessKind::Store && undefinedData(warp, inst, row, bits, origin))
    std::memcpy(undefined, bits, row.bytes);
  else
    std::memset(undefined, 0, row.bytes);
}

bool InitCheck::access(Warp &warp, const Inst &inst, const Access &access) {
  const std::uint64_t sharedLow = reinterpret_cast<std::uint64_t>(warp.shared);
  const std::uint64_t localLow = reinterpret_cast<std::uint64_t>(warp.local);
  const Undefined &values = registers[warp.index];
  if (access.whole && !access.sizes && access.whole - sharedLow >= warp.sharedBytes &&
      access.whole - localLow >= 32ull * warp.localBytes && !values.any()) {
    // A whole warp in one piece of global memory, which is nearly always all written.
    ShadowRef shadow = launch.shadowOf(inst, access.whole);
    if (!shadow.shadow || !shadow.shadow->written())
      return false;
    WrittenBits written = shadow.shadow->written();
    std::uint64_t first = access.whole - shadow.low + shadow.offset;
    std::uint32_t bytes = 32 * access.bytes;
    if (!reads(access.kind) || written.firstUnwritten(first, bytes) == bytes) {
      if (writes(access.kind))
        written.mark(first, bytes);
      return false;
    }
  }
  const std::uint32_t sharedBytes = warp.sharedBytes;
  const Access rows = access; // which nothing that is called changes
  for (std::uint32_t left = rows.mask; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    Row row{lane, rows.of(lane), rows.sizes ? rows.sizes[lane] : rows.bytes};
    if (!row.host || !row.bytes)
      continue;
    if (row.host - sharedLow < sharedBytes) {
      State *states = shared.data() + (row.host - sharedLow);
      if (rows.kind == AccessKind::Load && allWritten(states, row.bytes))
        continue;
      accessShared(warp, inst, rows.kind, row, states);
    } else if (row.host - localLow < 32ull * warp.localBytes) {
      accessLocal(warp, inst, rows.kind, row, local[warp.index].data() + (row.host - localLow));
    } else {
      accessGlobal(warp, inst, rows.kind, row);
    }
  }
  return values.any();
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
