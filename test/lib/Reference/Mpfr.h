//===- Mpfr.h - real numbers by MPFR ---------------------------------------===//
//
// Enough arithmetic on 256-bit numbers to write a formula down.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_TEST_LIB_REFERENCE_MPFR_H
#define PLANC_TEST_LIB_REFERENCE_MPFR_H

#include <mpfr.h>

namespace planc::reference {

class Real {
public:
  Real(double value = 0) {
    mpfr_init2(number, 256);
    mpfr_set_d(number, value, MPFR_RNDN);
  }
  Real(const Real &other) : Real() { mpfr_set(number, other.number, MPFR_RNDN); }
  Real &operator=(const Real &other) {
    mpfr_set(number, other.number, MPFR_RNDN);
    return *this;
  }
  ~Real() { mpfr_clear(number); }

  double nearest() const { return mpfr_get_d(number, MPFR_RNDN); }

  /// |this - value|, NaN if that is one.
  double distance(double value) const {
    Real other(value), difference;
    mpfr_sub(difference.number, number, other.number, MPFR_RNDN);
    mpfr_abs(difference.number, difference.number, MPFR_RNDN);
    return mpfr_get_d(difference.number, MPFR_RNDU);
  }

  friend Real operator-(const Real &x) { return Real(0) - x; }
#define PLANC_REAL_BINARY(name, function)                                                          \
  friend Real name(const Real &x, const Real &y) {                                                 \
    Real made;                                                                                     \
    function(made.number, x.number, y.number, MPFR_RNDN);                                          \
    return made;                                                                                   \
  }
  PLANC_REAL_BINARY(operator+, mpfr_add)
  PLANC_REAL_BINARY(operator-, mpfr_sub)
  PLANC_REAL_BINARY(operator*, mpfr_mul)
  PLANC_REAL_BINARY(operator/, mpfr_div)
  PLANC_REAL_BINARY(min, mpfr_min)
  PLANC_REAL_BINARY(pow, mpfr_pow)
#undef PLANC_REAL_BINARY
#define PLANC_REAL_UNARY(name, function)                                                           \
  friend Real name(const Real &x) {                                                                \
    Real made;                                                                                     \
    function(made.number, x.number, MPFR_RNDN);                                                    \
    return made;                                                                                   \
  }
  PLANC_REAL_UNARY(exp, mpfr_exp)
  PLANC_REAL_UNARY(log1p, mpfr_log1p)
  PLANC_REAL_UNARY(sqrt, mpfr_sqrt)
  PLANC_REAL_UNARY(sin, mpfr_sin)
  PLANC_REAL_UNARY(cos, mpfr_cos)
#undef PLANC_REAL_UNARY

private:
  mpfr_t number;
};

/// `value` in a format of `precision` bits whose smallest number is 2^lowest and whose numbers are
/// below 2^highest, to nearest, ties to even.
inline double roundedTo(double value, int precision, int lowest, int highest) {
  mpfr_exp_t low = mpfr_get_emin(), high = mpfr_get_emax();
  mpfr_t number;
  mpfr_init2(number, precision);
  // MPFR's numbers are in [1/2, 1) times a power of two.
  mpfr_set_emin(lowest + 1);
  mpfr_set_emax(highest);
  int inexact = mpfr_set_d(number, value, MPFR_RNDN);
  mpfr_subnormalize(number, inexact, MPFR_RNDN);
  double made = mpfr_get_d(number, MPFR_RNDN);
  mpfr_clear(number);
  mpfr_set_emin(low);
  mpfr_set_emax(high);
  return made;
}

} // namespace planc::reference

#endif // PLANC_TEST_LIB_REFERENCE_MPFR_H
