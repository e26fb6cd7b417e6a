//===- Keys.cpp - logits as integers that order like them --------------------===//

#include "lib/Schedule/Select/Keys.h"

using namespace mlir;
using namespace planc;
using namespace planc::select;

Value Keys::make(Value logit, Value index) {
  // -0 + 0 is 0. A set sign turns the order of the other bits around.
  Value bits = b.asI32(b.fadd(logit, b.f32(0.0f)));
  Value order = b.bitXor(bits, b.bitOr(b.ashr(bits, 31), int32_t(0x80000000)));
  order = b.select(b.ne(logit, logit), b.i32(0), order);
  if (!wide)
    return b.bitOr(b.bitAnd(order, int32_t(0xffff0000)), b.wrapSub(b.i32(0xffff), index));
  Value high = b.shl(b.zeroExtend(order), 32);
  return b.bitOr(high, b.zeroExtend(b.bitXor(index, -1)));
}

Value Keys::indexOf(Value key) {
  if (!wide)
    return b.wrapSub(b.i32(0xffff), b.bitAnd(key, 0xffff));
  return b.bitXor(b.toI32(key), -1);
}

Value Keys::logitOf(Value key) {
  Value order = wide ? b.toI32(b.shr(key, 32)) : b.bitAnd(key, int32_t(0xffff0000));
  // The way back: a positive number has the top bit set. NaN comes back as a NaN.
  Value bits = b.bitXor(order, b.bitOr(b.bitXor(b.ashr(order, 31), -1), int32_t(0x80000000)));
  return b.asF32(wide ? bits : b.bitAnd(bits, int32_t(0xffff0000)));
}

Value Keys::warpMax(Value key) {
  for (unsigned offset = 16; offset; offset /= 2)
    key = larger(key, b.shuffleXor(key, offset));
  return key;
}
