//===- FormatsTable.cpp - what CUDA's headers make of fp8 and bf16 ---------===//
//
// Prints test/Inputs/formats.txt, the table that FormatsTest.cpp holds the reference against. Built
// where CUDA's headers are, so that a test sees that the table is still theirs; the reference has no
// part in it.
//
//===----------------------------------------------------------------------===//

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>

using Row = std::array<std::string, 4>;

/// What the f32 numbers `exact`, below, at and above the middle to the next code are rounded to.
static Row roundingsOf(uint32_t code) {
  static constexpr uint32_t kOffsets[] = {0, 0x7FFF, 0x8000, 0x8001};
  Row row;
  for (size_t i = 0; i < row.size(); ++i) {
    __nv_bfloat16_raw rounded = __float2bfloat16(std::bit_cast<float>(code << 16 | kOffsets[i]));
    bool isNan = (rounded.x & 0x7FFF) > 0x7F80;
    row[i] = isNan ? "nan" : "+" + std::to_string(int(rounded.x) - int(code));
  }
  return row;
}

int main() {
  std::printf("# What CUDA's cuda_fp8.h and cuda_bf16.h compute on the host; printed by\n"
              "# planc-reference-formats-table.\n"
              "# e4m3 CODE, the bits of its value as f32, or nan\n");
  for (unsigned code = 0; code < 256; ++code) {
    __half_raw raw = __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(code), __NV_E4M3);
    float value = __half2float(__half(raw));
    if (value != value)
      std::printf("e4m3 %02x nan\n", code);
    else
      std::printf("e4m3 %02x %08x\n", code, std::bit_cast<uint32_t>(value));
  }
  std::printf(
      "# bf16 FIRST LAST: of every other code in between, how many codes further is what these\n"
      "# f32 numbers are rounded to: CODE 0000, CODE 7fff, CODE 8000 (a tie), CODE 8001\n");
  for (uint32_t parity : {0, 1})
    for (uint32_t first = parity; first < 0x10000;) {
      Row row = roundingsOf(first);
      uint32_t last = first;
      while (last + 2 < 0x10000 && roundingsOf(last + 2) == row)
        last += 2;
      std::printf("bf16 %04x %04x %s %s %s %s\n", first, last, row[0].c_str(), row[1].c_str(),
                  row[2].c_str(), row[3].c_str());
      first = last + 2;
    }
}
