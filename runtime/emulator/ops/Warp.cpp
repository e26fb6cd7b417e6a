//===- Warp.cpp - shfl, vote, match, redux, activemask, elect -------------===//
//
// Instructions between the lanes of a warp. Operand 0 of each .sync one is the member mask, which
// the interpreter reads to wait for the members (Interpreter.cpp). What a lane reads from one that
// does not execute is undefined in PTX; here it is the register's old value.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/observe/Observer.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/Lanes.h"

namespace planemu::PLANEMU_ISA {

/// Calls act(lanes) for each group of executing lanes that have the same member mask (operand 0):
/// lanes with different ones do not see each other.
template <class Act> static void forGroups(Warp &w, const Inst &i, Act act) {
  for (u32 rest = executing(w, i); rest;) {
    V<u32> first = splat(at<u32>(w, i.s[0])[__builtin_ctz(rest)]);
    u32 group = 0;
    for (int c = 0; c < Chunks; ++c)
      group |= compress(load<u32>(w.file + i.s[0], c) == first) << (c * Chunk);
    group &= rest;
    act(group);
    rest &= ~group;
  }
}

// --- shfl -------------------------------------------------------------------

namespace {
enum class Mode { Up, Down, Butterfly, Index };
} // namespace

/// Operands: members, destination, predicate, a, b, c. PTX ISA, shfl.sync: c holds the clamp (bits
/// 0-4) and the mask that cuts the warp into segments (bits 8-12).
template <Mode M> static void shuffle(Warp &w, const Inst &i) {
  u32 mask = executing(w, i), inRange = 0;
  u32 source[32];
  std::memcpy(source, w.file + i.s[3], sizeof(source));
  u32 *d = at<u32>(w, i.s[1]);
  const u32 *b = at<u32>(w, i.s[4]), *c = at<u32>(w, i.s[5]);
  for (u32 left = mask; left; left &= left - 1) {
    s32 lane = __builtin_ctz(left);
    s32 by = static_cast<s32>(b[lane] & 31), clamp = static_cast<s32>(c[lane] & 31);
    s32 segment = static_cast<s32>(c[lane] >> 8 & 31);
    s32 most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    s32 from;
    bool ok;
    if constexpr (M == Mode::Up) {
      from = lane - by;
      ok = from >= most;
    } else if constexpr (M == Mode::Down) {
      from = lane + by;
      ok = from <= most;
    } else if constexpr (M == Mode::Butterfly) {
      from = lane ^ by;
      ok = from <= most;
    } else {
      from = least | (by & ~segment);
      ok = from <= most;
    }
    if (ok && !(mask >> from & 1) && w.observer)
      w.observer->readsAbsentLane(w, i, static_cast<unsigned>(lane), static_cast<unsigned>(from));
    d[lane] = source[ok ? from : lane];
    inRange |= u32(ok) << lane;
  }
  writeMask(w, i.s[2], inRange, mask);
}

/// The same where segment and clamp are constants that take in the whole warp.
template <Mode M> static void shuffleWhole(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (mask != ~0u)
    return shuffle<M>(w, i);
  u32 source[32], inRange = 0;
  std::memcpy(source, w.file + i.s[3], sizeof(source));
  u32 *const d = at<u32>(w, i.s[1]);
  const u32 *const b = at<u32>(w, i.s[4]);
  u32 from[32]; // d may be b
  for (u32 lane = 0; lane < 32; ++lane) {
    u32 by = b[lane] & 31;
    from[lane] = M == Mode::Up          ? lane - by
                 : M == Mode::Down      ? lane + by
                 : M == Mode::Butterfly ? lane ^ by
                                        : by;
  }
  for (u32 lane = 0; lane < 32; ++lane) {
    bool ok = from[lane] < 32;
    d[lane] = source[ok ? from[lane] : lane];
    inRange |= u32(ok) << lane;
  }
  writeMask(w, i.s[2], inRange, mask);
}

/// The butterfly of a full-warp reduction: distance and clamp are constants.
template <int Distance> static void butterfly(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (mask != ~0u)
    return shuffle<Mode::Butterfly>(w, i);
  Vu32 v[Chunks], r[Chunks];
  for (int c = 0; c < Chunks; ++c)
    v[c] = load<u32>(w.file + i.s[3], c);
  for (int c = 0; c < Chunks; ++c) {
    if constexpr (Distance == 1)
      r[c] = __builtin_shufflevector(v[c], v[c], 1, 0, 3, 2, 5, 4, 7, 6);
    else if constexpr (Distance == 2)
      r[c] = __builtin_shufflevector(v[c], v[c], 2, 3, 0, 1, 6, 7, 4, 5);
    else if constexpr (Distance == 4)
      r[c] = __builtin_shufflevector(v[c], v[c], 4, 5, 6, 7, 0, 1, 2, 3);
    else
      r[c] = v[c ^ (Distance / Chunk)];
  }
  for (int c = 0; c < Chunks; ++c)
    store<u32>(w.file + i.s[1], c, r[c]);
  writeMask(w, i.s[2], ~0u, mask);
}

/// shfl.sync.mode.b32 d|p, a, b, c, members.
void selectShfl(Decoder &d) {
  if (!d.take(".sync"))
    d.fail("only shfl.sync is supported");
  Exec run = d.take(".up")     ? shuffle<Mode::Up>
             : d.take(".down") ? shuffle<Mode::Down>
             : d.take(".bfly") ? shuffle<Mode::Butterfly>
             : d.take(".idx")  ? shuffle<Mode::Index>
                               : nullptr;
  if (!run)
    d.fail("no mode");
  if (Type type = d.takeType(); type != Type::B32)
    d.failType(type);
  if (d.operand(0).kind == Operand::Sink)
    d.fail("the destination is a sink");
  d.use(4, Type::B32);
  d.def(0, 32);
  d.defAlso(0, 1);
  d.use(1, Type::B32);
  d.use(2, Type::B32);
  d.use(3, Type::B32);
  std::int64_t by, clamp;
  bool up = run.run == shuffle<Mode::Up>, butterflies = run.run == shuffle<Mode::Butterfly>;
  if (d.isImmediate(3, clamp) && clamp == (up ? 0 : 31))
    run = up                               ? shuffleWhole<Mode::Up>
          : butterflies                    ? shuffleWhole<Mode::Butterfly>
          : run.run == shuffle<Mode::Down> ? shuffleWhole<Mode::Down>
                                           : shuffleWhole<Mode::Index>;
  if (butterflies && d.isImmediate(2, by) && d.isImmediate(3, clamp) && clamp == 31)
    run = by == 1    ? grouped<butterfly<1>>
          : by == 2  ? grouped<butterfly<2>>
          : by == 4  ? grouped<butterfly<4>>
          : by == 8  ? grouped<butterfly<8>>
          : by == 16 ? grouped<butterfly<16>>
                     : run;
  d.emit(run, 0, Inst::Sync);
}

// --- vote, match ------------------------------------------------------------

namespace {
enum class Vote { All, Any, Uni, Ballot };
} // namespace

/// Operands: members, destination, predicate. imm: all ones if the predicate is negated.
template <Vote K> static void vote(Warp &w, const Inst &i) {
  forGroups(w, i, [&](u32 mask) {
    u32 yes = (readMask(w, i.s[2]) ^ static_cast<u32>(i.imm)) & mask;
    if constexpr (K == Vote::Ballot) {
      u32 *d = at<u32>(w, i.s[1]);
      for (u32 left = mask; left; left &= left - 1)
        d[__builtin_ctz(left)] = yes;
    } else {
      bool result = K == Vote::All   ? yes == mask
                    : K == Vote::Any ? yes != 0
                                     : yes == mask || yes == 0;
      writeMask(w, i.s[1], result ? ~0u : 0, mask);
    }
  });
}

void selectVote(Decoder &d) {
  if (!d.take(".sync"))
    d.fail("only vote.sync is supported");
  bool ballot = d.take(".ballot");
  Exec run = ballot           ? vote<Vote::Ballot>
             : d.take(".all") ? vote<Vote::All>
             : d.take(".any") ? vote<Vote::Any>
             : d.take(".uni") ? vote<Vote::Uni>
                              : nullptr;
  if (!run)
    d.fail("no mode");
  if (Type type = d.takeType(); type != (ballot ? Type::B32 : Type::Pred))
    d.failType(type);
  d.use(2, Type::B32);
  d.def(0, ballot ? 32 : 1);
  std::int64_t constant;
  if (d.isImmediate(1, constant)) {
    d.operandUsed(1);
    d.useConstant(constant ? ~0u : 0, 32);
  } else {
    d.use(1, Type::Pred);
  }
  d.emit(run, d.operand(1).negated ? -1 : 0, Inst::Sync);
}

/// match.any: the lanes with the same value. match.all: all members if they agree, else none, and a
/// predicate.
template <class T, bool All> static void match(Warp &w, const Inst &i) {
  forGroups(w, i, [&](u32 mask) {
    const T *a = at<T>(w, i.s[3]);
    u32 *d = at<u32>(w, i.s[1]);
    u32 agree = 0;
    u32 result[32];
    for (u32 left = mask; left; left &= left - 1) {
      int lane = __builtin_ctz(left);
      u32 same = 0;
      for (u32 others = mask; others; others &= others - 1)
        same |= u32(a[__builtin_ctz(others)] == a[lane]) << __builtin_ctz(others);
      result[lane] = All ? (same == mask ? mask : 0) : same;
      agree |= u32(same == mask) << lane;
    }
    for (u32 left = mask; left; left &= left - 1)
      d[__builtin_ctz(left)] = result[__builtin_ctz(left)];
    writeMask(w, i.s[2], agree, mask);
  });
}

void selectMatch(Decoder &d) {
  bool all = d.take(".all");
  if (!all && !d.take(".any"))
    d.fail("neither .any nor .all");
  if (!d.take(".sync"))
    d.fail("only match.sync is supported");
  Type type = d.takeType();
  if (type != Type::B32 && type != Type::B64)
    d.failType(type);
  d.use(2, Type::B32);
  d.def(0, 32);
  if (all)
    d.defAlso(0, 1);
  else
    d.defUnused(1);
  d.use(1, type);
  if (type == Type::B32)
    d.emit(all ? match<u32, true> : match<u32, false>, 0, Inst::Sync);
  else
    d.emit(all ? match<u64, true> : match<u64, false>, 0, Inst::Sync);
}

void selectActivemask(Decoder &d) {
  if (Type type = d.takeType(); type != Type::B32)
    d.failType(type);
  d.def(0, 32);
  d.emit([](Warp &w, const Inst &i) {
    u32 mask = executing(w, i);
    for (u32 left = mask; left; left &= left - 1)
      at<u32>(w, i.s[0])[__builtin_ctz(left)] = mask;
  });
}

/// elect.sync d|p, members: the lowest member is elected.
void selectElect(Decoder &d) {
  if (!d.take(".sync"))
    d.fail("only elect.sync is supported");
  d.use(1, Type::B32);
  d.def(0, 32);
  d.defAlso(0, 1);
  d.emit(
      [](Warp &w, const Inst &i) {
        forGroups(w, i, [&](u32 mask) {
          u32 leader = static_cast<u32>(__builtin_ctz(mask));
          for (u32 left = mask; left; left &= left - 1)
            at<u32>(w, i.s[1])[__builtin_ctz(left)] = leader;
          writeMask(w, i.s[2], 1u << leader, mask);
        });
      },
      0, Inst::Sync);
}

// --- redux ------------------------------------------------------------------

/// Operands: members, destination, a.
template <class T, auto F> static void redux(Warp &w, const Inst &i) {
  forGroups(w, i, [&](u32 mask) {
    const T *a = at<T>(w, i.s[2]);
    T result = a[__builtin_ctz(mask)];
    for (u32 left = mask & (mask - 1); left; left &= left - 1)
      result = F(result, a[__builtin_ctz(left)]);
    for (u32 left = mask; left; left &= left - 1)
      at<T>(w, i.s[1])[__builtin_ctz(left)] = result;
  });
}

/// min and max on f32: +0 is above -0; NaNs do not count, or with Nan decide.
template <bool Max, bool Nan, bool Abs> static void reduxFloat(Warp &w, const Inst &i) {
  forGroups(w, i, [&](u32 mask) {
    f32 result = 0;
    bool any = false, sawNan = false;
    for (u32 left = mask; left; left &= left - 1) {
      u32 raw = at<u32>(w, i.s[2])[__builtin_ctz(left)];
      f32 value = bits<f32>(Abs ? raw & 0x7fffffff : raw);
      if (value != value) {
        sawNan = true;
        continue;
      }
      bool above = value > result || (value == result && !__builtin_signbit(value));
      if (!any || above == Max)
        result = value;
      any = true;
    }
    if (!any || (Nan && sawNan))
      result = bits<f32>(0x7fffffffu);
    for (u32 left = mask; left; left &= left - 1)
      at<f32>(w, i.s[1])[__builtin_ctz(left)] = result;
  });
}

static Exec reduxFloatOf(bool max, bool nan, bool abs) {
  auto choose = [&]<bool Max>() -> Exec {
    return nan   ? abs ? reduxFloat<Max, true, true> : reduxFloat<Max, true, false>
           : abs ? reduxFloat<Max, false, true>
                 : reduxFloat<Max, false, false>;
  };
  return max ? choose.template operator()<true>() : choose.template operator()<false>();
}

void selectRedux(Decoder &d) {
  if (!d.take(".sync"))
    d.fail("only redux.sync is supported");
  bool add = d.take(".add"), min = d.take(".min"), max = d.take(".max"), andAll = d.take(".and"),
       orAll = d.take(".or"), xorAll = d.take(".xor");
  Type type = d.takeType();
  Exec run = nullptr;
  if (type == Type::F32 && (min || max)) {
    bool abs = d.take(".abs"), nan = d.take(".NaN");
    run = reduxFloatOf(max, nan, abs);
  }
  bool isBitwise = type == Type::B32, isSigned32 = type == Type::S32,
       isNumber = isSigned32 || type == Type::U32;
  if (add && isNumber)
    run = redux<u32, [](u32 a, u32 b) { return a + b; }>;
  else if (min && isNumber)
    run = isSigned32 ? redux<s32, [](s32 a, s32 b) { return b < a ? b : a; }>
                     : redux<u32, [](u32 a, u32 b) { return b < a ? b : a; }>;
  else if (max && isNumber)
    run = isSigned32 ? redux<s32, [](s32 a, s32 b) { return a < b ? b : a; }>
                     : redux<u32, [](u32 a, u32 b) { return a < b ? b : a; }>;
  else if (andAll && isBitwise)
    run = redux<u32, [](u32 a, u32 b) { return a & b; }>;
  else if (orAll && isBitwise)
    run = redux<u32, [](u32 a, u32 b) { return a | b; }>;
  else if (xorAll && isBitwise)
    run = redux<u32, [](u32 a, u32 b) { return a ^ b; }>;
  if (!run)
    d.failType(type);
  d.use(2, Type::B32);
  d.def(0, 32);
  d.use(1, type);
  d.emit(run, 0, Inst::Sync);
}

} // namespace planemu::PLANEMU_ISA
