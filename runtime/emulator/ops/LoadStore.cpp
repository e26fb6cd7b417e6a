//===- LoadStore.cpp - ld, ldu, st ----------------------------------------===//
//
// PTX ISA, "Data Movement: ld, ld.global.nc, st". Cache hints change nothing here; the orderings
// (.relaxed, .acquire, .release, .volatile) become fences of the host, whose plain accesses are at
// least relaxed for aligned words.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/LoadStore.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/Rows.h"

#include <algorithm>
#include <atomic>

namespace planemu::PLANEMU_ISA {

static constexpr const char *loadNames[] = {"ld.global", "ld.shared", "ld.local"};
static constexpr const char *storeNames[] = {"st.global", "st.shared", "st.local"};

/// Any lanes, any addresses.
template <Where Space, class Base, class T, class R, int N>
[[gnu::noinline]] static void loadApart(Warp &w, const Inst &i, u32 mask, const u32 *slots) {
  constexpr u32 RowBytes = N * sizeof(T);
  char *const file = w.file;
  Rows rows;
  if constexpr (Space != Where::Local)
    if (mask == ~0u && !w.observer &&
        scattered<Space, Base, RowBytes>(w, i, i.ops[N], i.imm, rows.host)) [[likely]]
      return loadScattered<T, R, N>(file, slots, rows.host.of);
  formAddresses<Base>(w, i.ops[N], i.imm, rows.host);
  resolve<Space, RowBytes>(w, i, mask, loadNames[int(Space)], rows);
  observe(w, i, AccessKind::Load, mask, RowBytes, rows);
  if (rows.whole)
    return loadContiguous<T, R, N>(file, slots, rows.whole);
  if (mask == ~0u && !w.cta->failed)
    return loadScattered<T, R, N>(file, slots, rows.host.of);
  alignas(64) char gathered[32 * RowBytes];
  std::memset(gathered, 0, sizeof(gathered));
  for (u32 left = mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    if (rows.host.of[lane])
      std::memcpy(gathered + lane * RowBytes, hostPointer<char>(rows.host.of[lane]), RowBytes);
  }
  for (int c = 0; c < Chunks; ++c) {
    V<T> v[N];
    std::memcpy(v, gathered + c * sizeof(v), sizeof(v));
    rowsToColumns<T, N>(v);
    for (int n = 0; n < N; ++n)
      merge<R>(file + slots[n], c, mask >> (c * Chunk), widen<T, R>(v[n]));
  }
}

/// All lanes, if their rows are equally far from each other. False: they are not, and nothing is done.
/// T: element in memory, signed if it extends with its sign. R: unsigned type of the registers.
template <Where Space, class Base, class T, class R, int N>
[[gnu::always_inline]] inline bool loadTogether(Warp &w, const Inst &i) {
  char *const file = w.file;
  const u32 *const ops = i.ops;
  u32 slots[N];
  for (int n = 0; n < N; ++n)
    slots[n] = ops[n];
  Strided from = strided<Space, Base, N * sizeof(T)>(w, i, ops[N], i.imm, ops + N + 1);
  if (!from.first) [[unlikely]]
    return false;
  if (from.stride == N * sizeof(T)) [[likely]]
    loadContiguous<T, R, N>(file, slots, from.first);
  else if (from.stride == 0)
    loadUniform<T, R, N>(file, slots, from.first);
  else
    loadStrided<T, R, N>(file, slots, from);
  return true;
}

template <Where Space, class Base, class T, class R, int N>
[[gnu::noinline]] static void loadRows(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (mask != ~0u)
    noteNotSo(w, i, i.ops + N + 1);
  if (!mask)
    return;
  if constexpr (Space != Where::Local)
    if (mask == ~0u && !w.observer && loadTogether<Space, Base, T, R, N>(w, i)) [[likely]]
      return;
  u32 slots[N];
  std::copy(i.ops, i.ops + N, slots);
  loadApart<Space, Base, T, R, N>(w, i, mask, slots);
}

template <Where Space, class Base, class T, class R, int N>
static void loadGroup(const Group &group, const Inst &i) {
  for (Warp *w : group)
    if (!loadTogether<Space, Base, T, R, N>(*w, i)) [[unlikely]]
      loadRows<Space, Base, T, R, N>(*w, i);
}

template <Where Space, class Base, class T, class R, int N>
[[gnu::noinline]] static void storeApart(Warp &w, const Inst &i, u32 mask, const u32 *slots) {
  constexpr u32 RowBytes = N * sizeof(T);
  Rows rows;
  alignas(64) char image[32 * RowBytes];
  if constexpr (Space != Where::Local)
    if (mask == ~0u && !w.observer &&
        scattered<Space, Base, RowBytes>(w, i, i.ops[0], i.imm, rows.host)) [[likely]] {
      storeContiguous<T, R, N>(w.file, slots, image);
      for (int lane = 0; lane < 32; ++lane)
        std::memcpy(hostPointer<char>(rows.host.of[lane]), image + lane * RowBytes, RowBytes);
      return;
    }
  formAddresses<Base>(w, i.ops[0], i.imm, rows.host);
  resolve<Space, RowBytes>(w, i, mask, storeNames[int(Space)], rows);
  if (rows.whole && !w.observer)
    return storeContiguous<T, R, N>(w.file, slots, rows.whole);
  storeContiguous<T, R, N>(w.file, slots, image);
  observe(w, i, AccessKind::Store, mask, RowBytes, rows, image);
  if (rows.whole) {
    std::memcpy(rows.whole, image, sizeof(image));
    return;
  }
  for (u32 left = mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    if (rows.host.of[lane])
      std::memcpy(hostPointer<char>(rows.host.of[lane]), image + lane * RowBytes, RowBytes);
  }
}

/// All lanes, if their rows lie one after the other. False: they do not, and nothing is done.
template <Where Space, class Base, class T, class R, int N>
[[gnu::always_inline]] inline bool storeTogether(Warp &w, const Inst &i) {
  char *const file = w.file;
  const u32 *const ops = i.ops;
  u32 slots[N];
  for (int n = 0; n < N; ++n)
    slots[n] = ops[1 + n];
  Strided into = strided<Space, Base, N * sizeof(T)>(w, i, ops[0], i.imm, ops + 1 + N);
  if (!into.first || into.stride != N * sizeof(T)) [[unlikely]]
    return false;
  storeContiguous<T, R, N>(file, slots, into.first);
  return true;
}

template <Where Space, class Base, class T, class R, int N>
[[gnu::noinline]] static void storeRows(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (mask != ~0u)
    noteNotSo(w, i, i.ops + 1 + N);
  if (!mask)
    return;
  if constexpr (Space != Where::Local)
    if (mask == ~0u && !w.observer && storeTogether<Space, Base, T, R, N>(w, i)) [[likely]]
      return;
  u32 slots[N];
  std::copy(i.ops + 1, i.ops + 1 + N, slots);
  storeApart<Space, Base, T, R, N>(w, i, mask, slots);
}

template <Where Space, class Base, class T, class R, int N>
static void storeGroup(const Group &group, const Inst &i) {
  for (Warp *w : group)
    if (!storeTogether<Space, Base, T, R, N>(*w, i)) [[unlikely]]
      storeRows<Space, Base, T, R, N>(*w, i);
}

// --- Choosing ---------------------------------------------------------------

namespace {
struct Form {
  Where where;
  unsigned baseBits;
  Type type;
  unsigned registerBits, count;
  bool isStore;
};
} // namespace

template <Where Space, class Base, class T, class R, int N> static Exec rowsOf(const Form &f) {
  using U = Unsigned<T>;
#if defined(__AVX2__)
  if constexpr (Space != Where::Local && N == 1)
    return f.isStore ? Exec(storeRows<Space, Base, U, R, N>, storeGroup<Space, Base, U, R, N>)
                     : Exec(loadRows<Space, Base, T, R, N>, loadGroup<Space, Base, T, R, N>);
#endif
  return f.isStore ? grouped<storeRows<Space, Base, U, R, N>>
                   : grouped<loadRows<Space, Base, T, R, N>>;
}

template <Where Space, class Base, class T, class R> static Exec byCount(const Form &f) {
  switch (f.count) {
  case 1:
    return rowsOf<Space, Base, T, R, 1>(f);
  case 2:
    return rowsOf<Space, Base, T, R, 2>(f);
  case 4:
    return rowsOf<Space, Base, T, R, 4>(f);
  case 8:
    if constexpr (sizeof(T) <= 4)
      return rowsOf<Space, Base, T, R, 8>(f);
    [[fallthrough]];
  default:
    return nullptr;
  }
}

template <Where Space, class Base, class T> static Exec byRegister(const Form &f) {
  if (f.registerBits == 8 * sizeof(T) || (sizeof(T) == 1 && f.registerBits == 16))
    return byCount<Space, Base, T, std::conditional_t<sizeof(T) == 1, u16, Unsigned<T>>>(f);
  // Wider registers than the type: single loads and stores, and bytes.
  if (f.count != 1 && sizeof(T) != 1)
    return nullptr;
  if constexpr (sizeof(T) == 1)
    if (f.registerBits == 32 && f.count != 1)
      return byCount<Space, Base, T, u32>(f);
  if (f.count != 1)
    return nullptr;
  if constexpr (sizeof(T) < 4)
    if (f.registerBits == 32)
      return rowsOf<Space, Base, T, u32, 1>(f);
  if constexpr (sizeof(T) < 8)
    if (f.registerBits == 64)
      return rowsOf<Space, Base, T, u64, 1>(f);
  return nullptr;
}

template <Where Space, class Base> static Exec byType(const Form &f) {
  bool extends = isSigned(f.type);
  switch (bitsOf(f.type)) {
  case 8:
    return extends ? byRegister<Space, Base, s8>(f) : byRegister<Space, Base, u8>(f);
  case 16:
    return extends ? byRegister<Space, Base, s16>(f) : byRegister<Space, Base, u16>(f);
  case 32:
    return extends ? byRegister<Space, Base, s32>(f) : byRegister<Space, Base, u32>(f);
  case 64:
    return byRegister<Space, Base, u64>(f);
  default:
    return nullptr;
  }
}

template <Where Space> static Exec byBase(const Form &f) {
  return f.baseBits == 64 ? byType<Space, u64>(f) : byType<Space, u32>(f);
}

static Exec find(const Form &f) {
  switch (f.where) {
  case Where::Global:
    return byBase<Where::Global>(f);
  case Where::Shared:
    return byBase<Where::Shared>(f);
  default:
    return byBase<Where::Local>(f);
  }
}

static void fenceAll(Warp &w, const Inst &i) {
  if (executing(w, i))
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

Where whereOf(Decoder &d, Space space) {
  switch (space) {
  case Space::Generic:
  case Space::Global:
    return Where::Global;
  case Space::Shared:
    return Where::Shared;
  case Space::Local:
    return Where::Local;
  default:
    d.fail("this space is not supported here");
  }
}

Space takeSpace(Decoder &d) {
  if (d.take(".global"))
    return Space::Global;
  if (d.take(".shared") || d.take(".shared::cta") || d.take(".shared::cluster"))
    return Space::Shared;
  if (d.take(".local"))
    return Space::Local;
  if (d.take(".const"))
    return Space::Const;
  if (d.take(".param") || d.take(".param::entry") || d.take(".param::func"))
    return Space::Param;
  return Space::Generic;
}

static bool takeOneOf(Decoder &d, std::initializer_list<const char *> modifiers) {
  for (const char *modifier : modifiers)
    if (d.take(modifier))
      return true;
  return false;
}

/// Hints that only speed depends on; one of a kind.
bool takeHints(Decoder &d, std::initializer_list<const char *> operators) {
  takeOneOf(d, operators);
  takeOneOf(d, {".L1::evict_normal", ".L1::evict_unchanged", ".L1::evict_first", ".L1::evict_last",
                ".L1::no_allocate"});
  takeOneOf(d, {".L2::evict_last", ".L2::evict_normal", ".L2::evict_first"});
  takeOneOf(d, {".L2::64B", ".L2::128B", ".L2::256B"});
  if (!d.take(".L2::cache_hint"))
    return false;
  unsigned policy = d.operandCount() - 1;
  if (d.registerBits(d.operand(policy)) != 64)
    d.fail("the last operand of '.L2::cache_hint' is not a 64-bit register");
  d.operandUsed(policy);
  return true;
}

static unsigned takeCount(Decoder &d) {
  return d.take(".v2") ? 2 : d.take(".v4") ? 4 : d.take(".v8") ? 8 : 1;
}

/// A cluster is one CTA here.
unsigned takeScope(Decoder &d) {
  if (d.take(".cta") || d.take(".cluster"))
    return Inst::ScopeCta;
  return d.take(".gpu") || d.take(".sys") ? unsigned(Inst::ScopeGpu) : 0;
}

namespace {
/// How an access orders others, as flags of Inst.
struct Ordering {
  const char *modifier; // null if weak
  unsigned flags;
};
} // namespace

/// .weak, .volatile, .relaxed.scope, .mmio.relaxed.sys, .acquire.scope, .release.scope. Volatile
/// accesses are relaxed ones of the widest scope.
static Ordering takeOrdering(Decoder &d, const char *strong, unsigned flags) {
  if (d.take(".volatile"))
    return {".volatile", Inst::ScopeGpu};
  bool mmio = d.take(".mmio"), orders = !mmio && d.take(strong);
  if (!orders && !d.take(".relaxed")) {
    if (mmio)
      d.fail("'.mmio' needs '.relaxed'");
    d.take(".weak");
    return {nullptr, 0};
  }
  if (mmio && !d.take(".sys"))
    d.fail("'.mmio' needs '.sys'");
  unsigned scope = mmio ? unsigned(Inst::ScopeGpu) : takeScope(d);
  if (!scope)
    d.fail("no scope");
  return {orders ? strong : ".relaxed", scope | (orders ? flags : 0)};
}

/// Consumes cache hints. Weak accesses alone have operators, and reach read-only and own memory.
static void takeHintsOf(Decoder &d, const Ordering &ordering, Space space,
                        std::initializer_list<const char *> operators) {
  if (!ordering.modifier) {
    takeHints(d, operators);
    return;
  }
  if (space == Space::Const || space == Space::Local || space == Space::Param)
    d.fail(std::string("'") + ordering.modifier + "' is of global and shared memory");
  if (takeOneOf(d, operators))
    d.fail(std::string("'") + ordering.modifier + "' takes no cache operator");
  takeHints(d);
}

static Type takeMemoryType(Decoder &d) {
  Type type = d.takeType();
  if (!isBits(type) && !isInteger(type) && type != Type::F32 && type != Type::F64)
    d.failType(type);
  return type;
}

/// 256 bits at once: eight words or four double words, of global memory.
static void requireWide(Decoder &d, Space space, unsigned count, Type type) {
  if (count > 1 && type == Type::B128)
    d.failType(type);
  if (count == 8 && bitsOf(type) != 32)
    d.failType(type);
  if (count * bitsOf(type) > 128 && space != Space::Global && space != Space::Generic)
    d.fail("256 bits at once are loaded and stored in global memory alone");
}

/// Operand `n`, a vector of `count` elements. One element is itself, in braces or not.
static const Operand &elementsOf(Decoder &d, unsigned n, unsigned count) {
  const Operand &op = d.operand(n);
  if (d.elements(n) != count || (count > 1 && op.kind != Operand::Vector))
    d.fail("the vector does not have " + std::to_string(count) + " elements");
  return count == 1 && op.kind == Operand::Vector ? op.parts[0] : op;
}

/// Vectors of 16-bit elements in registers of 32 bits: through registers of their own width.
static void loadAndWiden(Decoder &d, Space space, unsigned order, unsigned count, Type type) {
  std::vector<std::uint32_t> narrow;
  for (unsigned n = 0; n < count; ++n) {
    narrow.push_back(d.temporary(16));
    d.defTemporary(narrow.back());
  }
  Decoder::Address address = d.useAddress(1, space);
  Exec run = find({whereOf(d, address.space), address.baseBits, type, 16, count, false});
  if (!run)
    d.failType(type);
  d.emitAccess(run, count, address.offset, order);
  for (unsigned n = 0; n < count; ++n) {
    if (d.defWide(d.operand(0).parts[n], type) != 32)
      d.fail("registers of different widths");
    d.useTemporary(narrow[n]);
    d.emit(isSigned(type) ? each<[](s16 value) { return s32(value); }, s32, s16>
                          : each<[](u16 value) { return u32(value); }, u32, u16>);
  }
  if (order & Inst::Acquire)
    d.emitBeside(InstClass::Fence, fenceAll);
}

/// 128 bits as two of 64. They are one access, so CTAs that use strong ones to talk to each other
/// must not run at once: the host's moves of 16 bytes are no single ones.
static void selectWideLd(Decoder &d, Space space, const Ordering &ordering) {
  const Operand &to = elementsOf(d, 0, 1);
  if (d.isKernelParameter(1) && (space == Space::Param || space == Space::Generic)) {
    for (unsigned half = 0; half < 2; ++half) {
      d.defHalf(to, half);
      d.useKernelParameter(1, 8 * half, Type::B64, 64);
      d.emit(copyOf(d, 64));
    }
    return;
  }
  if (ordering.modifier)
    d.noteOrderedCtas();
  d.defHalf(to, 0);
  d.defHalf(to, 1);
  Decoder::Address address = d.useAddress(1, space);
  d.emitAccess(find({whereOf(d, address.space), address.baseBits, Type::B64, 64, 2, false}), 2,
               address.offset, ordering.flags);
  if (ordering.flags & Inst::Acquire)
    d.emitBeside(InstClass::Fence, fenceAll);
}

static void selectWideSt(Decoder &d, Space space, const Ordering &ordering) {
  if (ordering.modifier)
    d.noteOrderedCtas();
  Decoder::Address address = d.useAddress(0, space);
  d.useHalf(elementsOf(d, 1, 1), 0);
  d.useHalf(elementsOf(d, 1, 1), 1);
  d.emitAccess(find({whereOf(d, address.space), address.baseBits, Type::B64, 64, 2, true}), 0,
               address.offset, ordering.flags);
}

void selectLd(Decoder &d) {
  Ordering ordering = takeOrdering(d, ".acquire", Inst::Acquire);
  unsigned order = ordering.flags;
  Space space = takeSpace(d);
  if (d.take(".nc") && (space != Space::Global || ordering.modifier))
    d.fail("'.nc' reads global memory that nobody writes");
  takeHintsOf(d, ordering, space, {".ca", ".cg", ".cs", ".lu", ".cv"});
  unsigned count = takeCount(d);
  Type type = takeMemoryType(d);
  const Operand &to = elementsOf(d, 0, count);
  if (to.kind == Operand::Sink)
    d.fail("the destination is a sink");
  requireWide(d, space, count, type);
  if (type == Type::B128)
    return selectWideLd(d, space, ordering);
  auto element = [&](unsigned n) -> const Operand & { return count == 1 ? to : to.parts[n]; };

  if (d.isKernelParameter(1) && (space == Space::Param || space == Space::Generic)) {
    // A parameter at a known offset is a constant: a move.
    for (unsigned n = 0; n < count; ++n) {
      unsigned bits = d.defWide(element(n), type);
      d.useKernelParameter(1, n * bitsOf(type) / 8, type, bits);
      d.emit(copyOf(d, bits));
    }
    return;
  }
  if (count > 1 && bitsOf(type) == 16 && d.registerBits(element(0)) > 16) {
    loadAndWiden(d, space, order, count, type);
    return;
  }
  unsigned bits = 0;
  for (unsigned n = 0; n < count; ++n) {
    unsigned these = d.defWide(element(n), type);
    if (bits && bits != these)
      d.fail("registers of different widths");
    bits = these;
  }
  Decoder::Address address = d.useAddress(1, space);
  Exec run = find({whereOf(d, address.space), address.baseBits, type, bits, count, false});
  if (!run)
    d.failType(type);
  d.emitAccess(run, count, address.offset, order);
  if (count == 1 && !ordering.modifier)
    d.noteWeakRead();
  if (order & Inst::Acquire)
    d.emitBeside(InstClass::Fence, fenceAll);
}

void selectSt(Decoder &d) {
  Ordering ordering = takeOrdering(d, ".release", Inst::Release);
  unsigned order = ordering.flags;
  Space space = takeSpace(d);
  if (space == Space::Const)
    d.fail("constant memory cannot be written");
  takeHintsOf(d, ordering, space, {".wb", ".cg", ".cs", ".wt"});
  unsigned count = takeCount(d);
  Type type = takeMemoryType(d);
  const Operand &from = elementsOf(d, 1, count);
  requireWide(d, space, count, type);
  if (order & Inst::Release)
    d.emitBeside(InstClass::Fence, fenceAll);
  if (type == Type::B128)
    return selectWideSt(d, space, ordering);
  Decoder::Address address = d.useAddress(0, space);
  unsigned bits = 0;
  for (unsigned n = 0; n < count; ++n) {
    unsigned these = d.useWide(count == 1 ? from : from.parts[n], type);
    if (bits && bits != these)
      d.fail("registers of different widths");
    bits = these;
  }
  Exec run = find({whereOf(d, address.space), address.baseBits, type, bits, count, true});
  if (!run)
    d.failType(type);
  d.emitAccess(run, 0, address.offset, order);
}

} // namespace planemu::PLANEMU_ISA
