//===- Video.cpp - vadd2/4, vsub, vavrg, vabsdiff, vmin, vmax, vset -------===//
//
// PTX ISA, "SIMD Video Instructions": a register holds two or four narrow integers. GPUs have long
// had only some of these in hardware, but clang's headers still write them for __vadd4 and its kin,
// and nvcc writes vabsdiff4. Without element selectors and masks, which no compiler prints.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/Lanes.h"

#include <algorithm>

namespace planemu::PLANEMU_ISA {

namespace {

enum class Video : u8 { Add, Sub, Average, Difference, Min, Max, Eq, Ne, Lt, Le, Gt, Ge };

/// Inst::imm.
struct Spec {
  Video op;
  u8 width; // of an element: 8 or 16
  bool signedA, signedB, signedD, saturate, accumulate;
  u8 unused = 0;
};
static_assert(sizeof(Spec) == 8);

struct Comparison {
  std::string_view name;
  Video op;
};

} // namespace

static constexpr Comparison Comparisons[] = {{".eq", Video::Eq}, {".ne", Video::Ne},
                                             {".lt", Video::Lt}, {".le", Video::Le},
                                             {".gt", Video::Gt}, {".ge", Video::Ge}};

static s32 element(u32 word, int at, int width, bool isSigned) {
  u32 top = word << (32 - width - at);
  return isSigned ? static_cast<s32>(top) >> (32 - width) : static_cast<s32>(top >> (32 - width));
}

static s32 apply(Video op, s32 a, s32 b) {
  switch (op) {
  case Video::Add:
    return a + b;
  case Video::Sub:
    return a - b;
  case Video::Average: // rounds away from minus infinity where the sum is not negative
    return (a + b + (a + b >= 0)) >> 1;
  case Video::Difference:
    return a > b ? a - b : b - a;
  case Video::Min:
    return std::min(a, b);
  case Video::Max:
    return std::max(a, b);
  case Video::Eq:
    return a == b;
  case Video::Ne:
    return a != b;
  case Video::Lt:
    return a < b;
  case Video::Le:
    return a <= b;
  case Video::Gt:
    return a > b;
  case Video::Ge:
    return a >= b;
  }
  return 0;
}

static u32 compute(const Spec &spec, u32 a, u32 b, u32 c) {
  int width = spec.width;
  s32 most = spec.signedD ? (1 << (width - 1)) - 1 : (1 << width) - 1;
  s32 least = spec.signedD ? -(1 << (width - 1)) : 0;
  u32 result = spec.accumulate ? c : 0;
  for (int at = 0; at < 32; at += width) {
    s32 value =
        apply(spec.op, element(a, at, width, spec.signedA), element(b, at, width, spec.signedB));
    if (spec.saturate)
      value = std::clamp(value, least, most);
    if (spec.accumulate) // all of it: the difference of two signed bytes may be 255
      result += static_cast<u32>(value);
    else
      result |= (static_cast<u32>(value) & ((1u << width) - 1)) << at;
  }
  return result;
}

static void video(Warp &w, const Inst &i) {
  Spec spec = bits<Spec>(i.imm);
  u32 *d = at<u32>(w, i.s[0]);
  const u32 *a = at<u32>(w, i.s[1]), *b = at<u32>(w, i.s[2]), *c = at<u32>(w, i.s[3]);
  for (u32 left = executing(w, i); left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    d[lane] = compute(spec, a[lane], b[lane], c[lane]);
  }
}

static bool takeSign(Decoder &d) {
  Type type = d.takeType();
  if (type != Type::U32 && type != Type::S32)
    d.failType(type);
  return type == Type::S32;
}

/// vop.dtype.atype.btype{.sat}{.add} d, a, b, c; vset has no dtype, but a comparison.
static void select(Decoder &d, Video op, u8 width) {
  Spec spec{op, width, false, false, false, false, false};
  bool set = op == Video::Eq;
  if (!set)
    spec.signedD = takeSign(d);
  spec.signedA = takeSign(d);
  spec.signedB = takeSign(d);
  if (set) {
    auto found = std::ranges::find_if(Comparisons, [&](auto &row) { return d.take(row.name); });
    if (found == std::end(Comparisons))
      d.fail("no comparison");
    spec.op = found->op;
  }
  spec.saturate = !set && d.take(".sat");
  spec.accumulate = d.take(".add");
  if (spec.saturate && spec.accumulate)
    d.fail("both .sat and .add");
  d.def(0, 32);
  for (unsigned n = 1; n < 4; ++n)
    d.use(n, Type::B32);
  d.emit(video, bits<s64>(spec));
}

#define VIDEO(Name, Op)                                                                            \
  void select##Name##2(Decoder & d) { select(d, Video::Op, 16); }                                  \
  void select##Name##4(Decoder & d) { select(d, Video::Op, 8); }
VIDEO(Vadd, Add)
VIDEO(Vsub, Sub)
VIDEO(Vavrg, Average)
VIDEO(Vabsdiff, Difference)
VIDEO(Vmin, Min)
VIDEO(Vmax, Max)
VIDEO(Vset, Eq)
#undef VIDEO

} // namespace planemu::PLANEMU_ISA
