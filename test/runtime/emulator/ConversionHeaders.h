//===- ConversionHeaders.h - the door of ConversionHeaders.cpp ------------===//
//
// Apart from the test, because only one of its files may need CUDA's headers.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_TEST_CONVERSIONHEADERS_H
#define PLANEMU_TEST_CONVERSIONHEADERS_H

#include <cstdint>

/// Source and result are registers, their upper bits zero. Of two f32 the instruction's first one,
/// which goes to the upper half of the result, is the low half of the source.
struct HeaderConversion {
  const char *name;
  std::uint64_t (*convert)(std::uint64_t);
};

/// Null if the headers do not compute it on the host.
const HeaderConversion *findHeaderConversion(const char *name);

#endif // PLANEMU_TEST_CONVERSIONHEADERS_H
