//===- Oracle.h - what PTX's number formats say, for tests ----------------===//
//
// Rounding as a definition and not as a trick: divide by the weight of the result's last digit,
// which is exact, and decide on the integer and the rest that come out. In double for what came
// from f32, in long double (64 bits or more) for the rest.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_TEST_ORACLE_H
#define PLANEMU_TEST_ORACLE_H

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace emutest {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

enum class Mode { Nearest, Zero, Down, Up, Away }; // Away: nearest, ties away from zero

/// A float format; the specials are codes without sign.
struct Format {
  int exponent, fraction; // bits
  u64 largest, infinity, nan;

  u64 sign() const { return 1ull << (exponent + fraction); }
  int least() const { return 2 - (1 << (exponent - 1)) - fraction; } // exponent of the last digit
};
inline constexpr Format F64{11, 52, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000};
inline constexpr Format F32{8, 23, 0x7f7fffff, 0x7f800000, 0x7fffffff};
inline constexpr Format BF16{8, 7, 0x7f7f, 0x7f80, 0x7fff};
inline constexpr Format F16{5, 10, 0x7bff, 0x7c00, 0x7fff};
inline constexpr Format TF32{8, 10, 0x7f7fe000 >> 13, 0x7f800000 >> 13, 0x7fffffff};
// Without infinities; the last three without NaN, which becomes the largest number.
inline constexpr Format E4M3{4, 3, 0x7e, 0x7e, 0x7f};
inline constexpr Format E5M2{5, 2, 0x7b, 0x7c, 0x7f};
inline constexpr Format E3M2{3, 2, 0x1f, 0x1f, 0x1f};
inline constexpr Format E2M3{2, 3, 0x1f, 0x1f, 0x1f};
inline constexpr Format E2M1{2, 1, 0x07, 0x07, 0x07};

inline double scale(double value, int exponent) {
  return exponent >= -1022 && exponent <= 1023
             ? value * std::bit_cast<double>(static_cast<u64>(exponent + 1023) << 52)
             : std::ldexp(value, exponent);
}
inline long double scale(long double value, int exponent) { return std::ldexp(value, exponent); }
/// Of the leading digit; value is finite and positive.
inline int exponentOf(double value) {
  int raw = static_cast<int>(std::bit_cast<u64>(value) >> 52);
  return raw ? raw - 1023 : std::ilogb(value);
}
inline int exponentOf(long double value) { return std::ilogb(value); }

/// Whether an integer with a rest in [0, 1) goes to the next one.
template <class Real> bool stepsUp(Mode mode, bool negative, bool odd, Real rest) {
  switch (mode) {
  case Mode::Nearest:
    return rest > Real(0.5) || (rest == Real(0.5) && odd);
  case Mode::Away:
    return rest >= Real(0.5);
  case Mode::Down:
    return negative && rest > 0;
  case Mode::Up:
    return !negative && rest > 0;
  default:
    return false;
  }
}

/// The code of `value` in a format.
template <class Real>
u64 encode(const Format &format, Mode mode, Real value, bool satfinite = false) {
  if (value != value)
    return format.nan;
  bool negative = std::signbit(value);
  u64 sign = negative ? format.sign() : 0, overflow = satfinite ? format.largest : format.infinity;
  Real magnitude = negative ? -value : value;
  if (magnitude == 0)
    return sign;
  if (magnitude > std::numeric_limits<Real>::max())
    return sign | overflow;
  int top = exponentOf(magnitude), last = top - format.fraction;
  if (last < format.least())
    last = format.least();
  Real digits = scale(magnitude, -last);
  u64 kept = static_cast<u64>(digits);
  kept += stepsUp<Real>(mode, negative, kept & 1, digits - static_cast<Real>(kept));
  // Codes are in the order of their magnitudes, so a carry is a step to the next code.
  u64 code = kept + (static_cast<u64>(last - format.least()) << format.fraction);
  if (code <= format.largest)
    return sign | code;
  bool reached =
      mode == Mode::Nearest || mode == Mode::Away || mode == (negative ? Mode::Down : Mode::Up);
  return sign | (reached ? overflow : format.largest);
}

/// The value of a code; exact in long double for all formats but f64's smallest on hosts without
/// 15 bits of exponent, in double for all but f64.
template <class Real> Real decode(const Format &format, u64 code) {
  u64 magnitude = code & (format.sign() - 1);
  Real value;
  // In e4m3 only the last code is no number, in the smaller formats none is.
  if (magnitude > format.largest) {
    value = magnitude == format.infinity ? std::numeric_limits<Real>::infinity()
                                         : std::numeric_limits<Real>::quiet_NaN();
  } else {
    u64 fraction = magnitude & ((1ull << format.fraction) - 1),
        field = magnitude >> format.fraction;
    value = field ? scale(static_cast<Real>(fraction + (1ull << format.fraction)),
                          static_cast<int>(field) - 1 + format.least())
                  : scale(static_cast<Real>(fraction), format.least());
  }
  return code & format.sign() ? -value : value;
}

/// To an integer as a number of the same kind; keeps the sign of zero.
template <class Real> Real toIntegral(Mode mode, Real value) {
  Real magnitude = std::fabs(value);
  if (!(magnitude < Real(9223372036854775808.0)))
    return value; // no fraction there in either type, as far as this is used; also inf and NaN
  u64 kept = static_cast<u64>(magnitude);
  kept += stepsUp<Real>(mode, std::signbit(value), kept & 1, magnitude - static_cast<Real>(kept));
  return std::copysign(static_cast<Real>(kept), value);
}

} // namespace emutest

#endif // PLANEMU_TEST_ORACLE_H
