//===- Keys.h - logits as integers that order like them ----------------------===//
//
// A key holds a logit and its index, so that the unsigned maximum of keys is the larger logit, and
// of equal logits the lower index. NaN lies below every number; -0 equals 0. The key 0 is below all
// others: it stands for nothing.
//
//   bf16   32 bits: the logit's 16 ordered bits, then 0xffff - index
//   f32    64 bits: the logit's 32 ordered bits, then 0xffffffff - index
//
// Indices up to 0xfffe fit the narrow form; wider ranges take the wide form for bf16, too.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_SELECT_KEYS_H
#define PLANC_LIB_SCHEDULE_SELECT_KEYS_H

#include "lib/Schedule/KernelBuilder.h"

namespace planc::select {

class Keys {
public:
  Keys(KernelBuilder &b, plan::Format logits, int64_t range)
      : b(b), wide(logits != plan::Format::BF16 || range > 0xfffe) {}

  Value make(Value logit, Value index); ///< of an f32 logit
  Value none() { return wide ? b.i64(0) : b.i32(0); }
  Value indexOf(Value key);
  Value logitOf(Value key);
  Value larger(Value a, Value c) { return b.maxUnsigned(a, c); }
  /// The largest key of the warp, in all lanes.
  Value warpMax(Value key);

private:
  KernelBuilder &b;
  bool wide;
};

void emitTopK(KernelBuilder &b, plan::TopKOp node, LaunchShape &shape);
void emitArgmax(KernelBuilder &b, plan::ArgmaxOp node, LaunchShape &shape);

} // namespace planc::select

#endif // PLANC_LIB_SCHEDULE_SELECT_KEYS_H
