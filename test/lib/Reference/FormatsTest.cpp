//===- FormatsTest.cpp - stored numbers against CUDA's own headers ---------===//

#include "lib/Reference/Formats/Scalar.h"
#include "test/unit/Check.h"

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <random>

using namespace planc::reference;

TEST(every_e4m3_code) {
  for (unsigned code = 0; code < 256; ++code) {
    __half_raw raw = __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(code), __NV_E4M3);
    float theirs = __half2float(__half(raw)), ours = e4m3Table()[code];
    if (std::isnan(theirs))
      CHECK(std::isnan(ours));
    else
      CHECK_EQ(ours, theirs);
    CHECK_EQ(std::signbit(ours), std::signbit(theirs) || std::isnan(theirs) * std::signbit(ours));
  }
}

TEST(bf16_of_any_double) {
  std::mt19937_64 random(1);
  auto compare = [](double value) {
    __nv_bfloat16_raw theirs = __double2bfloat16(value);
    CHECK_EQ(bf16FromDouble(value), theirs.x);
  };
  for (int i = 0; i < 200000; ++i)
    compare(std::ldexp(double(int64_t(random())), int(random() % 300) - 230));
  // Ties, and values beside them that f32 cannot tell from a tie.
  for (uint32_t code = 0; code < 0x7F80; ++code) {
    double low = bf16ToFloat(uint16_t(code)), high = bf16ToFloat(uint16_t(code + 1));
    if (code == 0x7F7F)
      high = 2 * low - bf16ToFloat(0x7F7E);
    double tie = (low + high) / 2;
    for (double value : {low, tie, std::nextafter(tie, 0), std::nextafter(tie, INFINITY)}) {
      compare(value);
      compare(-value);
    }
  }
  compare(INFINITY);
  compare(1e300);
}

CHECK_MAIN
