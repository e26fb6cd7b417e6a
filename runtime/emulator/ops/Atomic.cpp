//===- Atomic.cpp - atom, red ---------------------------------------------===//
//
// Lanes apply in lane order. On global memory each is one atomic operation of the host,
// sequentially consistent, which covers every ordering and scope; shared memory belongs to one
// worker and needs none. The order between CTAs is open, as on a GPU; so that floating-point sums do
// not depend on the number of threads, the CTAs of a kernel that has them run on one.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Access.h"
#include "runtime/emulator/ops/AtomicOps.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"

#include <initializer_list>

namespace planemu::PLANEMU_ISA {

/// Operands: destination (a register nobody reads for red), address, b, c.
template <Where Space, class Base, Op O, class T> static void atomic(Warp &w, const Inst &i) {
  using U = Unsigned<T>;
  u32 mask = executing(w, i);
  if (!mask)
    return;
  Rows rows;
  formAddresses<Base>(w, i.s[1], i.imm, rows.host);
  resolve<Space, sizeof(T)>(w, i, mask, Space == Where::Shared ? "atom.shared" : "atom.global",
                            rows);
  observe(w, i, AccessKind::Atomic, mask, sizeof(T), rows);
  T *d = at<T>(w, i.s[0]);
  const T *b = at<T>(w, i.s[2]), *c = at<T>(w, i.s[3]);
  for (u32 left = mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    char *address =
        rows.whole ? rows.whole + lane * sizeof(T) : reinterpret_cast<char *>(rows.host.of[lane]);
    if (!address)
      continue;
    U *word = reinterpret_cast<U *>(address);
    if constexpr (Space == Where::Shared) {
      T old = bits<T>(*word);
      *word = bits<U>(updated<O, T>(old, b[lane], c[lane]));
      d[lane] = old;
    } else if constexpr (O == Op::Add && std::is_integral_v<T>) {
      d[lane] = __atomic_fetch_add(word, b[lane], __ATOMIC_SEQ_CST);
    } else {
      U seen = __atomic_load_n(word, __ATOMIC_RELAXED);
      while (!__atomic_compare_exchange_n(word, &seen,
                                          bits<U>(updated<O, T>(bits<T>(seen), b[lane], c[lane])),
                                          true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
      d[lane] = bits<T>(seen);
    }
  }
}

template <Op O, class T> static Exec place(Where where, unsigned baseBits) {
  if (where == Where::Shared)
    return baseBits == 32 ? atomic<Where::Shared, u32, O, T> : atomic<Where::Shared, u64, O, T>;
  return baseBits == 64 ? atomic<Where::Global, u64, O, T> : nullptr;
}

static Exec find(Op op, Type type, Where where, unsigned baseBits) {
#define PLANEMU_ATOMIC(O, T, Host)                                                                 \
  if (op == Op::O && type == Type::T)                                                              \
    return place<Op::O, Host>(where, baseBits);
  PLANEMU_ATOMIC(Add, U32, u32)
  PLANEMU_ATOMIC(Add, S32, u32)
  PLANEMU_ATOMIC(Add, U64, u64)
  PLANEMU_ATOMIC(Add, S64, u64)
  PLANEMU_ATOMIC(Add, F32, f32)
  PLANEMU_ATOMIC(Add, F64, f64)
  PLANEMU_ATOMIC(AddF16x2, F16x2, u32)
  PLANEMU_ATOMIC(AddBf16x2, BF16x2, u32)
  PLANEMU_ATOMIC(AddF16, F16, u16)
  PLANEMU_ATOMIC(AddBf16, BF16, u16)
  PLANEMU_ATOMIC(MinF16x2, F16x2, u32)
  PLANEMU_ATOMIC(MinBf16x2, BF16x2, u32)
  PLANEMU_ATOMIC(MinF16, F16, u16)
  PLANEMU_ATOMIC(MinBf16, BF16, u16)
  PLANEMU_ATOMIC(MaxF16x2, F16x2, u32)
  PLANEMU_ATOMIC(MaxBf16x2, BF16x2, u32)
  PLANEMU_ATOMIC(MaxF16, F16, u16)
  PLANEMU_ATOMIC(MaxBf16, BF16, u16)
  PLANEMU_ATOMIC(Inc, U32, u32)
  PLANEMU_ATOMIC(Dec, U32, u32)
  PLANEMU_ATOMIC(And, B32, u32)
  PLANEMU_ATOMIC(And, B64, u64)
  PLANEMU_ATOMIC(Or, B32, u32)
  PLANEMU_ATOMIC(Or, B64, u64)
  PLANEMU_ATOMIC(Xor, B32, u32)
  PLANEMU_ATOMIC(Xor, B64, u64)
  PLANEMU_ATOMIC(Min, U32, u32)
  PLANEMU_ATOMIC(Min, S32, s32)
  PLANEMU_ATOMIC(Min, U64, u64)
  PLANEMU_ATOMIC(Min, S64, s64)
  PLANEMU_ATOMIC(Max, U32, u32)
  PLANEMU_ATOMIC(Max, S32, s32)
  PLANEMU_ATOMIC(Max, U64, u64)
  PLANEMU_ATOMIC(Max, S64, s64)
  PLANEMU_ATOMIC(Exch, B32, u32)
  PLANEMU_ATOMIC(Exch, B64, u64)
  PLANEMU_ATOMIC(Cas, B16, u16)
  PLANEMU_ATOMIC(Cas, B32, u32)
  PLANEMU_ATOMIC(Cas, B64, u64)
#undef PLANEMU_ATOMIC
  return nullptr;
}

/// .v2, .v4, .v8: each element is an atomic operation of its own. Results go through temporaries,
/// for a destination may be a later element's source.
static void selectVector(Decoder &d, bool returns, Op op, Type type, unsigned count, Space space,
                         unsigned order) {
  if (!isHalf(type) && !(op == Op::Add && type == Type::F32))
    d.fail("vectors are of f16, bf16 and additions of f32 alone");
  if ((space != Space::Global && space != Space::Generic) || count * bitsOf(type) > 128)
    d.fail("vectors of at most 128 bits in global memory are supported");
  unsigned n = returns ? 1 : 0;
  for (unsigned vector = returns ? 0 : 1; vector <= n + 1; vector += 2)
    if (d.operand(vector).kind != Operand::Vector || d.elements(vector) != count)
      d.fail("the vector does not have " + std::to_string(count) + " elements");
  std::vector<std::uint32_t> results;
  for (unsigned element = 0; element < count; ++element) {
    results.push_back(d.temporary(bitsOf(type)));
    d.defTemporary(results.back());
    Decoder::Address address = d.useAddress(n, space);
    for (int twice = 0; twice < 2; ++twice)
      d.use(d.operand(n + 1).parts[element], type);
    Exec run = find(op, type, whereOf(d, address.space), address.baseBits);
    if (!run)
      d.failType(type);
    d.emit(run, address.offset + element * bitsOf(type) / 8, order);
    d.needsRegionCache();
  }
  for (unsigned element = 0; returns && element < count; ++element) {
    d.def(d.operand(0).parts[element], bitsOf(type));
    d.useTemporary(results[element]);
    d.emit(copyOf(d, bitsOf(type)));
  }
}

/// Operands: the halves of the destination, address, the halves of b and of c. The CTAs of a kernel
/// that has them run on one thread.
template <Where Space, class Base, Op O> static void atomicWide(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (!mask)
    return;
  Rows rows;
  formAddresses<Base>(w, i.ops[2], i.imm, rows.host);
  resolve<Space, 16>(w, i, mask, Space == Where::Shared ? "atom.shared" : "atom.global", rows);
  observe(w, i, AccessKind::Atomic, mask, 16, rows);
  auto half = [&](int operand, int lane) { return at<u64>(w, i.ops[operand])[lane]; };
  for (u32 left = mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    char *address =
        rows.whole ? rows.whole + lane * 16 : reinterpret_cast<char *>(rows.host.of[lane]);
    if (!address)
      continue;
    u64 old[2], b[2] = {half(3, lane), half(4, lane)}, c[2] = {half(5, lane), half(6, lane)};
    std::memcpy(old, address, 16);
    if (O == Op::Exch)
      std::memcpy(address, b, 16);
    else if (std::memcmp(old, b, 16) == 0)
      std::memcpy(address, c, 16);
    at<u64>(w, i.ops[0])[lane] = old[0];
    at<u64>(w, i.ops[1])[lane] = old[1];
  }
}

template <Op O> static Exec placeWide(Where where, unsigned baseBits) {
  if (where == Where::Shared)
    return baseBits == 32 ? atomicWide<Where::Shared, u32, O> : atomicWide<Where::Shared, u64, O>;
  return baseBits == 64 ? atomicWide<Where::Global, u64, O> : nullptr;
}

static void selectWide(Decoder &d, Op op, Space space, unsigned order) {
  if (op != Op::Exch && op != Op::Cas)
    d.failType(Type::B128);
  d.noteOrderedCtas();
  for (unsigned half = 0; half < 2; ++half)
    d.defHalf(d.operand(0), half);
  Decoder::Address address = d.useAddress(1, space);
  for (unsigned source = 2; source < 4; ++source)
    for (unsigned half = 0; half < 2; ++half)
      d.useHalf(d.operand(op == Op::Cas ? source : 2), half);
  Where where = whereOf(d, address.space);
  Exec run = op == Op::Cas ? placeWide<Op::Cas>(where, address.baseBits)
                           : placeWide<Op::Exch>(where, address.baseBits);
  if (!run)
    d.failType(Type::B128);
  d.emitList(run, address.offset, order);
  d.needsRegionCache();
}

Op takeOperation(Decoder &d) {
  static constexpr struct {
    const char *text;
    Op op;
  } Ops[] = {{".add", Op::Add},   {".inc", Op::Inc}, {".dec", Op::Dec}, {".and", Op::And},
             {".or", Op::Or},     {".xor", Op::Xor}, {".min", Op::Min}, {".max", Op::Max},
             {".exch", Op::Exch}, {".cas", Op::Cas}};
  for (const auto &row : Ops)
    if (d.take(row.text))
      return row.op;
  d.fail("no operation");
}

static void selectAtomic(Decoder &d, bool returns) {
  unsigned order = d.take(".acquire")   ? Inst::Acquire
                   : d.take(".release") ? Inst::Release
                   : d.take(".acq_rel") ? Inst::Acquire | Inst::Release
                                        : 0u;
  if (!order)
    d.take(".relaxed");
  unsigned scope = takeScope(d);
  order |= scope ? scope : Inst::ScopeGpu;
  if (!returns && (order & Inst::Acquire))
    d.fail("red does not acquire");
  bool noftz = d.take(".noftz");
  Space space = takeSpace(d);
  if (space != Space::Generic && space != Space::Global && space != Space::Shared)
    d.fail("the space is neither global nor shared");
  takeHints(d);
  Op op = takeOperation(d);
  if (!returns && (op == Op::Exch || op == Op::Cas))
    d.fail("the operation needs atom");
  unsigned count = d.take(".v2") ? 2 : d.take(".v4") ? 4 : d.take(".v8") ? 8 : 1;
  Type type = d.takeType();
  if (isHalf(type) != noftz)
    d.fail(noftz ? "'.noftz' is of f16 and bf16 alone" : "f16 and bf16 need '.noftz'");
  if (type == Type::S64 && op == Op::Add)
    d.failType(type);
  if (isHalf(type)) {
    if ((op == Op::Min || op == Op::Max) && count == 1)
      d.fail("minima and maxima of f16 and bf16 are of vectors alone");
    op = halfOp(op, type);
  }
  // Integers add up to the same in any order, floats do not.
  if (isHalf(type) || type == Type::F32 || type == Type::F64)
    d.noteOrderedCtas();
  if (type == Type::B128)
    return count == 1 ? selectWide(d, op, space, order) : d.failType(type);
  if (count > 1)
    return selectVector(d, returns, op, type, count, space, order);
  unsigned n = 0;
  if (returns)
    d.def(n++, bitsOf(type));
  else
    d.defUnused(bitsOf(type));
  Decoder::Address address = d.useAddress(n++, space);
  d.use(n, type);
  d.use(op == Op::Cas ? n + 1 : n, type);
  Exec run = find(op, type, whereOf(d, address.space), address.baseBits);
  if (!run)
    d.failType(type);
  d.emit(run, address.offset, order);
  d.needsRegionCache();
  if (op == Op::Cas)
    d.noteCompares();
}

void selectAtom(Decoder &d) { selectAtomic(d, true); }
void selectRed(Decoder &d) {
  if (d.take(".async"))
    d.fail("red.async is not supported");
  selectAtomic(d, false);
}

} // namespace planemu::PLANEMU_ISA
