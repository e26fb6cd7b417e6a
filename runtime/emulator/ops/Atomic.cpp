//===- Atomic.cpp - atom, red ---------------------------------------------===//
//
// Lanes apply in lane order. On global memory each is one atomic operation of the host,
// sequentially consistent, which covers every ordering and scope; shared memory belongs to one
// worker and needs none. The order between CTAs is open, as on a GPU; so that floating-point sums do
// not depend on the number of threads, the CTAs of a kernel that has them run on one.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Access.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"

namespace planemu::PLANEMU_ISA {

namespace {

enum class Op {
  Add,
  Inc,
  Dec,
  And,
  Or,
  Xor,
  Min,
  Max,
  Exch,
  Cas,
  AddF16x2,
  AddBf16x2,
  AddF16,
  AddBf16
};

} // namespace

template <bool Bfloat> static u16 addHalf(u16 a, u16 b) {
  Vf32 sum = Bfloat ? fromBf16(splat<u16>(a)) + fromBf16(splat<u16>(b))
                    : fromF16(splat<u16>(a)) + fromF16(splat<u16>(b));
  return (Bfloat ? toBf16(sum) : toF16(sum))[0];
}

template <Op O, class T> static T updated(T old, T b, T c) {
  if constexpr (O == Op::Add)
    return static_cast<T>(old + b);
  else if constexpr (O == Op::Inc)
    return old >= b ? 0 : old + 1;
  else if constexpr (O == Op::Dec)
    return old == 0 || old > b ? b : old - 1;
  else if constexpr (O == Op::And)
    return old & b;
  else if constexpr (O == Op::Or)
    return old | b;
  else if constexpr (O == Op::Xor)
    return old ^ b;
  else if constexpr (O == Op::Min)
    return b < old ? b : old;
  else if constexpr (O == Op::Max)
    return b > old ? b : old;
  else if constexpr (O == Op::Exch)
    return b;
  else if constexpr (O == Op::Cas)
    return old == b ? c : old;
  else if constexpr (O == Op::AddF16)
    return addHalf<false>(old, b);
  else if constexpr (O == Op::AddBf16)
    return addHalf<true>(old, b);
  else
    return addHalf<O == Op::AddBf16x2>(static_cast<u16>(old), static_cast<u16>(b)) |
           u32(addHalf<O == Op::AddBf16x2>(static_cast<u16>(old >> 16), static_cast<u16>(b >> 16)))
               << 16;
}

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

static void selectAtomic(Decoder &d, bool returns) {
  unsigned order = d.take(".acquire")   ? Inst::Acquire
                   : d.take(".release") ? Inst::Release
                   : d.take(".acq_rel") ? Inst::Acquire | Inst::Release
                                        : 0u;
  if (!order)
    d.take(".relaxed");
  unsigned scope = takeScope(d);
  order |= scope ? scope : Inst::ScopeGpu;
  d.take(".noftz");
  Space space = takeSpace(d);
  takeHints(d);
  static constexpr struct {
    const char *text;
    Op op;
  } Ops[] = {{".add", Op::Add},   {".inc", Op::Inc}, {".dec", Op::Dec}, {".and", Op::And},
             {".or", Op::Or},     {".xor", Op::Xor}, {".min", Op::Min}, {".max", Op::Max},
             {".exch", Op::Exch}, {".cas", Op::Cas}};
  const Op *found = nullptr;
  for (const auto &row : Ops)
    if (d.take(row.text))
      found = &row.op;
  if (!found)
    d.fail("no operation");
  Op op = *found;
  if (!returns && (op == Op::Exch || op == Op::Cas))
    d.fail("the operation needs atom");
  Type type = d.takeType();
  if (op == Op::Add)
    op = type == Type::F16x2    ? Op::AddF16x2
         : type == Type::BF16x2 ? Op::AddBf16x2
         : type == Type::F16    ? Op::AddF16
         : type == Type::BF16   ? Op::AddBf16
                                : op;
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
  // Integers add up to the same in any order, floats do not.
  if (op >= Op::AddF16x2 || type == Type::F32 || type == Type::F64)
    d.noteFloatAtomic();
  d.emit(run, address.offset, order);
  d.needsRegionCache();
}

void selectAtom(Decoder &d) { selectAtomic(d, true); }
void selectRed(Decoder &d) {
  if (d.take(".async"))
    d.fail("red.async is not supported");
  selectAtomic(d, false);
}

} // namespace planemu::PLANEMU_ISA
