//===- Limits.h - how far from exact a device may be -----------------------===//
//
// Private to lib/Reference. The limits of the numerical semantics, section 9, in one place. All are
// for the value before it is rounded to its stored format.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_REFERENCE_LIMITS_H
#define PLANC_LIB_REFERENCE_LIMITS_H

#include <cmath>

namespace planc::reference {

/// Dot products, per sum of |terms|. c = 8 for sums in f32 of any order in use here; tensor cores
/// round inside an instruction as well, c = 32.
inline constexpr double kDot = 8 * 0x1p-24;
inline constexpr double kDotTensorCore = 32 * 0x1p-24;

/// Elementwise operations, per sum of |terms|.
inline constexpr double kElementwise = 0x1p-20;

/// sin and cos of an f32 angle, absolute.
inline constexpr double kSinCos = 0x1p-22;

/// The decay factor, absolute.
inline constexpr double kDecay = 2e-6;

/// Recurrent states and what is read from them, per largest magnitude of the row.
inline constexpr double kState = 0x1p-18;

/// Below this f32 has no relative precision to speak of.
inline constexpr double kTiny = 0x1p-130;

/// exp(x) in f32, relative: the argument carries a rounding of its own.
inline double expError(double x) { return kElementwise + 0x1p-23 * std::fabs(x); }

} // namespace planc::reference

#endif // PLANC_LIB_REFERENCE_LIMITS_H
