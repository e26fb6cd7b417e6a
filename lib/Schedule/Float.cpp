//===- Float.cpp - f32 arithmetic and conversions between formats ----------===//
//
// bf16 is widened by moving its bits: one integer operation a value, the same on all targets. e4m3
// is converted by the hardware where it can (Feature::CvtE4m3), else by moving the bits into a
// wider format and multiplying by a power of two, which is exact:
//
//   byte seee emmm in the high half of a 16-bit lane, magnitude shifted right by 1 is an f16 with
//   value * 2^(7-15), by 4 a bf16 with value * 2^(7-127).
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/KernelBuilder.h"
#include "lib/Target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace planc;
using plan::Format;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value KernelBuilder::fadd(Value a, Value c) { return arith::AddFOp::create(b, loc, a, c); }
Value KernelBuilder::fsub(Value a, Value c) { return arith::SubFOp::create(b, loc, a, c); }
Value KernelBuilder::fmul(Value a, Value c) { return arith::MulFOp::create(b, loc, a, c); }
Value KernelBuilder::fma(Value a, Value c, Value d) { return LLVM::FMAOp::create(b, loc, a, c, d); }
Value KernelBuilder::fneg(Value a) { return arith::NegFOp::create(b, loc, a); }
Value KernelBuilder::fabs(Value a) { return asF32(bitAnd(asI32(a), 0x7fffffff)); }
Value KernelBuilder::fmin(Value a, Value c) { return arith::MinimumFOp::create(b, loc, a, c); }
Value KernelBuilder::fmax(Value a, Value c) { return arith::MaximumFOp::create(b, loc, a, c); }
Value KernelBuilder::toF32(Value value) {
  return arith::SIToFPOp::create(b, loc, b.getF32Type(), value);
}

//===----------------------------------------------------------------------===//
// bf16
//===----------------------------------------------------------------------===//

Value KernelBuilder::packBf16(Value low, Value high) {
  auto f32x2 = VectorType::get({2}, b.getF32Type());
  Value pair = LLVM::PoisonOp::create(b, loc, f32x2);
  pair = LLVM::InsertElementOp::create(b, loc, pair, low, i32(0));
  pair = LLVM::InsertElementOp::create(b, loc, pair, high, i32(1));
  Value narrow = LLVM::FPTruncOp::create(b, loc, VectorType::get({2}, b.getBF16Type()), pair);
  return asI32(narrow);
}

Value KernelBuilder::lowBf16(Value word) { return asF32(shl(word, 16)); }
Value KernelBuilder::highBf16(Value word) { return asF32(bitAnd(word, int32_t(0xffff0000))); }

Values KernelBuilder::rounded(Format format, ValueRange values) {
  if (format != Format::BF16)
    return Values(values);
  Values result;
  for (unsigned i = 0; i < values.size(); i += 2) {
    bool pair = i + 1 < values.size();
    Value word = packBf16(values[i], pair ? values[i + 1] : f32(0));
    result.push_back(lowBf16(word));
    if (pair)
      result.push_back(highBf16(word));
  }
  return result;
}

Value KernelBuilder::rounded(Format format, Value value) {
  return rounded(format, ValueRange{value}).front();
}

//===----------------------------------------------------------------------===//
// e4m3
//===----------------------------------------------------------------------===//

/// Two codes in the high bytes of a word's halves.
static Value spread(KernelBuilder &b, Value word, unsigned half) {
  return b.prmt(word, b.i32(0), half ? 0x3424 : 0x1404);
}

/// Sign kept, magnitude moved right by `shift`.
static Value shiftMagnitude(KernelBuilder &b, Value codes, unsigned shift) {
  Value magnitude = b.shr(b.bitAnd(codes, 0x7f007f00), shift);
  return b.bitOr(b.bitAnd(codes, int32_t(0x80008000)), magnitude);
}

std::array<Value, 2> KernelBuilder::e4m3ToF16x2(Value word) {
  auto f16x2 = VectorType::get({2}, b.getF16Type());
  std::array<Value, 2> result;
  for (unsigned half = 0; half < 2; ++half) {
    if (target().has(Feature::CvtE4m3)) {
      Value codes = arith::TruncIOp::create(b, loc, b.getI16Type(), shr(word, 16 * half));
      result[half] = asI32(intrinsic("llvm.nvvm.e4m3x2.to.f16x2.rn", f16x2, {codes}));
      continue;
    }
    Value scaled = bitcast(shiftMagnitude(*this, spread(*this, word, half), 1), f16x2);
    Value scale = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(f16x2, b.getF16FloatAttr(0x1p8).getValue()));
    result[half] = asI32(arith::MulFOp::create(b, loc, scaled, scale));
  }
  return result;
}

std::array<Value, 2> KernelBuilder::f16x2ToF32(Value word) {
  // Not an fpext: on sm_100 and up LLVM folds one into an add or fma of mixed formats, and the
  // instructions would differ between targets.
  std::array<Value, 2> result;
  for (unsigned i = 0; i < 2; ++i) {
    Value half = arith::TruncIOp::create(b, loc, b.getI16Type(), shr(word, 16 * i));
    result[i] = LLVM::InlineAsmOp::create(b, loc, b.getF32Type(), ValueRange{half},
                                          "cvt.f32.f16 $0, $1;", "=f,h", /*has_side_effects=*/false,
                                          /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                          LLVM::AsmDialectAttr(), ArrayAttr())
                    .getRes();
  }
  return result;
}

Values KernelBuilder::e4m3ToF32(Value word) {
  Values result;
  for (Value halves : e4m3ToF16x2(word))
    llvm::append_range(result, f16x2ToF32(halves));
  return result;
}

std::array<Value, 2> KernelBuilder::e4m3ToBf16x2(Value word) {
  std::array<Value, 2> result;
  if (target().has(Feature::CvtE4m3)) {
    auto halves = e4m3ToF16x2(word);
    for (unsigned half = 0; half < 2; ++half) {
      auto [low, high] = f16x2ToF32(halves[half]);
      result[half] = packBf16(low, high);
    }
    return result;
  }
  auto bf16x2 = VectorType::get({2}, b.getBF16Type());
  auto constant = [&](double value) -> Value {
    APFloat bf16(value);
    bool loses;
    bf16.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &loses);
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(bf16x2, bf16));
  };
  for (unsigned half = 0; half < 2; ++half) {
    Value scaled = bitcast(shiftMagnitude(*this, spread(*this, word, half), 4), bf16x2);
    // A multiplication is an fma with -0 here: the targets without e4m3 conversions have no bf16
    // mul.
    result[half] = asI32(LLVM::FMAOp::create(b, loc, scaled, constant(0x1p120), constant(-0.0)));
  }
  return result;
}
