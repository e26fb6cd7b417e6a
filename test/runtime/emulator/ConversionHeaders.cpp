//===- ConversionHeaders.cpp - conversions as CUDA's headers compute them --===//
//
// The host functions of cuda_fp16.hpp, cuda_bf16.hpp, cuda_fp8.hpp, cuda_fp6.hpp and cuda_fp4.hpp,
// by the text of the instruction that the same headers use on a device. Built where they are.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/ConversionHeaders.h"

#include <bit>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace {
float low(u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); }
float high(u64 x) { return std::bit_cast<float>(static_cast<u32>(x >> 32)); }
double wide(u64 x) { return std::bit_cast<double>(x); }
__half half(u64 x) { return __ushort_as_half(static_cast<unsigned short>(x)); }
__nv_bfloat16 bfloat(u64 x) { return __ushort_as_bfloat16(static_cast<unsigned short>(x)); }
u64 raw(float v) { return std::bit_cast<u32>(v); }
u64 raw(__half v) { return __half_as_ushort(v); }
u64 raw(__nv_bfloat16 v) { return __bfloat16_as_ushort(v); }
__half2_raw halves(u64 x) {
  __half2_raw pair;
  pair.x = static_cast<unsigned short>(x);
  pair.y = static_cast<unsigned short>(x >> 16);
  return pair;
}
u64 raw(__half2_raw v) { return v.x | static_cast<u64>(v.y) << 16; }

template <__nv_fp8_interpretation_t Kind> u64 fp8FromFloats(u64 x) {
  return __nv_cvt_float2_to_fp8x2(make_float2(high(x), low(x)), __NV_SATFINITE, Kind);
}
template <__nv_fp8_interpretation_t Kind> u64 fp8FromHalves(u64 x) {
  return __nv_cvt_halfraw2_to_fp8x2(halves(x), __NV_SATFINITE, Kind);
}
template <__nv_fp8_interpretation_t Kind> u64 halvesFromFp8(u64 x) {
  return raw(__nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(x), Kind));
}
template <__nv_fp6_interpretation_t Kind> u64 fp6FromFloats(u64 x) {
  return __nv_cvt_float2_to_fp6x2(make_float2(high(x), low(x)), Kind, cudaRoundNearest);
}
template <__nv_fp6_interpretation_t Kind> u64 halvesFromFp6(u64 x) {
  return raw(__nv_cvt_fp6x2_to_halfraw2(static_cast<__nv_fp6x2_storage_t>(x & 0x3f3f), Kind));
}
template <cudaRoundMode Mode, __nv_saturation_t Saturation> u64 exponentsFromFloats(u64 x) {
  return __nv_cvt_float2_to_e8m0x2(make_float2(high(x), low(x)), Saturation, Mode);
}
template <cudaRoundMode Mode, __nv_saturation_t Saturation> u64 exponentsFromHalves(u64 x) {
  __nv_bfloat162_raw pair;
  pair.x = static_cast<unsigned short>(x);
  pair.y = static_cast<unsigned short>(x >> 16);
  return __nv_cvt_bfloat162raw_to_e8m0x2(pair, Saturation, Mode);
}

constexpr HeaderConversion Rows[] = {
    {"cvt.rn.f16.f32", [](u64 x) { return raw(__float2half_rn(low(x))); }},
    {"cvt.rz.f16.f32", [](u64 x) { return raw(__float2half_rz(low(x))); }},
    {"cvt.rm.f16.f32", [](u64 x) { return raw(__float2half_rd(low(x))); }},
    {"cvt.rp.f16.f32", [](u64 x) { return raw(__float2half_ru(low(x))); }},
    {"cvt.rn.bf16.f32", [](u64 x) { return raw(__float2bfloat16_rn(low(x))); }},
    {"cvt.rz.bf16.f32", [](u64 x) { return raw(__float2bfloat16_rz(low(x))); }},
    {"cvt.rm.bf16.f32", [](u64 x) { return raw(__float2bfloat16_rd(low(x))); }},
    {"cvt.rp.bf16.f32", [](u64 x) { return raw(__float2bfloat16_ru(low(x))); }},
    {"cvt.rn.f16x2.f32",
     [](u64 x) { return raw(__float2half_rn(high(x))) | raw(__float2half_rn(low(x))) << 16; }},
    {"cvt.rn.bf16x2.f32",
     [](u64 x) {
       return raw(__float2bfloat16_rn(high(x))) | raw(__float2bfloat16_rn(low(x))) << 16;
     }},
    {"cvt.rn.f16.f64", [](u64 x) { return raw(__double2half(wide(x))); }},
    {"cvt.rn.bf16.f64", [](u64 x) { return raw(__double2bfloat16(wide(x))); }},
    {"cvt.f32.f16", [](u64 x) { return raw(__half2float(half(x))); }},
    {"cvt.rzi.s32.f16", [](u64 x) { return u64(u32(__half2int_rz(half(x)))); }},
    {"cvt.rzi.u32.f16", [](u64 x) { return u64(__half2uint_rz(half(x))); }},
    {"cvt.rzi.s64.f16", [](u64 x) { return u64(__half2ll_rz(half(x))); }},
    {"cvt.rzi.u64.f16", [](u64 x) { return u64(__half2ull_rz(half(x))); }},
    {"cvt.rzi.s32.bf16", [](u64 x) { return u64(u32(__bfloat162int_rz(bfloat(x)))); }},
    {"cvt.rzi.u32.bf16", [](u64 x) { return u64(__bfloat162uint_rz(bfloat(x))); }},
    {"cvt.rzi.s64.bf16", [](u64 x) { return u64(__bfloat162ll_rz(bfloat(x))); }},
    {"cvt.rzi.u64.bf16", [](u64 x) { return u64(__bfloat162ull_rz(bfloat(x))); }},
    {"cvt.rn.f16.s32", [](u64 x) { return raw(__int2half_rn(static_cast<int>(x))); }},
    {"cvt.rn.f16.u32", [](u64 x) { return raw(__uint2half_rn(static_cast<unsigned>(x))); }},
    {"cvt.rn.f16.s64", [](u64 x) { return raw(__ll2half_rn(static_cast<long long>(x))); }},
    {"cvt.rn.f16.u64", [](u64 x) { return raw(__ull2half_rn(x)); }},
    {"cvt.rn.bf16.s32", [](u64 x) { return raw(__int2bfloat16_rn(static_cast<int>(x))); }},
    {"cvt.rn.bf16.u32", [](u64 x) { return raw(__uint2bfloat16_rn(static_cast<unsigned>(x))); }},
    {"cvt.rn.bf16.s64", [](u64 x) { return raw(__ll2bfloat16_rn(static_cast<long long>(x))); }},
    {"cvt.rn.bf16.u64", [](u64 x) { return raw(__ull2bfloat16_rn(x)); }},
    {"cvt.rn.satfinite.e4m3x2.f32", fp8FromFloats<__NV_E4M3>},
    {"cvt.rn.satfinite.e5m2x2.f32", fp8FromFloats<__NV_E5M2>},
    {"cvt.rn.satfinite.e4m3x2.f16x2", fp8FromHalves<__NV_E4M3>},
    {"cvt.rn.satfinite.e5m2x2.f16x2", fp8FromHalves<__NV_E5M2>},
    {"cvt.rn.f16x2.e4m3x2", halvesFromFp8<__NV_E4M3>},
    {"cvt.rn.f16x2.e5m2x2", halvesFromFp8<__NV_E5M2>},
    {"cvt.rn.satfinite.e3m2x2.f32", fp6FromFloats<__NV_E3M2>},
    {"cvt.rn.satfinite.e2m3x2.f32", fp6FromFloats<__NV_E2M3>},
    {"cvt.rn.f16x2.e3m2x2", halvesFromFp6<__NV_E3M2>},
    {"cvt.rn.f16x2.e2m3x2", halvesFromFp6<__NV_E2M3>},
    {"cvt.rn.satfinite.e2m1x2.f32",
     [](u64 x) -> u64 {
       return __nv_cvt_float2_to_fp4x2(make_float2(high(x), low(x)), __NV_E2M1, cudaRoundNearest);
     }},
    {"cvt.rn.f16x2.e2m1x2",
     [](u64 x) {
       return raw(__nv_cvt_fp4x2_to_halfraw2(static_cast<__nv_fp4x2_storage_t>(x), __NV_E2M1));
     }},
    {"cvt.rz.ue8m0x2.f32", exponentsFromFloats<cudaRoundZero, __NV_NOSAT>},
    {"cvt.rz.satfinite.ue8m0x2.f32", exponentsFromFloats<cudaRoundZero, __NV_SATFINITE>},
    {"cvt.rp.ue8m0x2.f32", exponentsFromFloats<cudaRoundPosInf, __NV_NOSAT>},
    {"cvt.rp.satfinite.ue8m0x2.f32", exponentsFromFloats<cudaRoundPosInf, __NV_SATFINITE>},
    {"cvt.rz.ue8m0x2.bf16x2", exponentsFromHalves<cudaRoundZero, __NV_NOSAT>},
    {"cvt.rz.satfinite.ue8m0x2.bf16x2", exponentsFromHalves<cudaRoundZero, __NV_SATFINITE>},
    {"cvt.rp.ue8m0x2.bf16x2", exponentsFromHalves<cudaRoundPosInf, __NV_NOSAT>},
    {"cvt.rp.satfinite.ue8m0x2.bf16x2", exponentsFromHalves<cudaRoundPosInf, __NV_SATFINITE>},
    {"cvt.rn.bf16x2.ue8m0x2",
     [](u64 x) {
       __nv_bfloat162_raw pair = __nv_cvt_e8m0x2_to_bf162raw(static_cast<unsigned short>(x));
       return pair.x | static_cast<u64>(pair.y) << 16;
     }},
};
} // namespace

const HeaderConversion *findHeaderConversion(const char *name) {
  for (const HeaderConversion &row : Rows)
    if (std::strcmp(row.name, name) == 0)
      return &row;
  return nullptr;
}
