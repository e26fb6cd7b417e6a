//===- KernelBuilder.h - emission of one GPU kernel in direct style -------===//
//
// Builds a gpu.func over global pointers with i32 indices, in the arith, scf, llvm and nvvm
// dialects; no memref. Schedules call nothing else to make IR, so that what all kernels must hold
// is held here: the parameters of the kernel ABI, explicit alignment of every access, f32
// arithmetic that is never contracted, one order of reduction, math without libdevice.
//
// Words used below
//   index    i32, never negative and never overflowing (the flags say so to LLVM); i64 where a pool
//   may be large word     i32 that holds bytes: two bf16, two f16 or four e4m3 values, the first in
//   the low bits f32      a scalar value; vectors of values are SmallVector<Value>, ordered by
//   element
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_KERNELBUILDER_H
#define PLANC_LIB_SCHEDULE_KERNELBUILDER_H

#include "lib/Numerics/Numerics.h"
#include "lib/Schedule/Schedule.h"

#include "mlir/IR/Builders.h"

namespace planc {

using mlir::Value;
using Values = llvm::SmallVector<Value>;

class KernelBuilder {
public:
  KernelBuilder(plan::KernelOp kernel, const ScheduleContext &context);

  /// Creates the kernel with its parameters and moves to its body. Once, before anything below.
  void begin(const LaunchShape &shape);
  /// Ends the kernel; the module is complete then.
  mlir::OwningOpRef<mlir::ModuleOp> finish();
  llvm::StringRef entry() const { return entryName; }
  const Target &target() const { return context.target; }
  mlir::OpBuilder &raw() { return b; }

  //===--- parameters ------------------------------------------------------===//

  /// Global pointer of an argument of the kernel region: an edge, step input, weight (its data) or
  /// state.
  Value pointer(Value argument) const;
  /// Global pointer of the f32 scales of a weight with block scales.
  Value scales(Value weight) const;
  /// Global pointer that the value is stored to; null if it is not yielded.
  Value outputPointer(Value yielded) const;
  Value scratch() const { return scratchPointer; }
  Value counters() const { return countersPointer; }

  //===--- arithmetic (Arithmetic.cpp) ---------------------------------------===//
  // What the bounds of the results follow from: said where it is emitted.

  /// Says how a part of a member's arithmetic rounds. Said again, the worse counts.
  void note(mlir::Operation *member, numerics::Part part);
  /// The same for a function of Math.cpp, with the error that is stated there; `part`: its name in
  /// the member, if it is not the function's own.
  enum class Function { Exp, Log1p, Sigmoid, Rcp, Rsqrt, SinCos };
  void note(mlir::Operation *member, Function function, llvm::StringRef part = "");
  /// All members, in their order.
  std::vector<numerics::Node> arithmetic() const;

  //===--- indices and integers (KernelBuilder.cpp) --------------------------===//

  Value i32(int64_t value);
  Value i64(int64_t value);
  Value i1(bool value);
  Value f32(float value);

  Value threadId(unsigned dim = 0);
  Value blockId(unsigned dim = 0);
  Value laneId(); ///< thread x modulo 32
  Value warpId(); ///< thread x divided by 32, the same in all lanes of a warp

  // Index arithmetic: no overflow, nothing negative. Constants fold.
  Value add(Value a, Value c);
  Value sub(Value a, Value c);
  Value mul(Value a, Value c);
  Value div(Value a, Value c);
  Value rem(Value a, Value c);
  Value add(Value a, int64_t c) { return add(a, constantLike(a, c)); }
  Value sub(Value a, int64_t c) { return sub(a, constantLike(a, c)); }
  Value mul(Value a, int64_t c) { return mul(a, constantLike(a, c)); }
  Value div(Value a, int64_t c) { return div(a, constantLike(a, c)); }
  Value rem(Value a, int64_t c) { return rem(a, constantLike(a, c)); }
  Value min(Value a, Value c); ///< signed
  Value max(Value a, Value c);
  Value maxUnsigned(Value a, Value c);
  Value zeroExtend(Value i32); ///< to i64
  Value toI64(Value index);    ///< sign extends
  Value toI32(Value i64);      ///< truncates

  // Bits: wrap around, shifts are logical.
  Value wrapAdd(Value a, Value c);
  Value wrapSub(Value a, Value c);
  Value bitAnd(Value a, Value c);
  Value bitOr(Value a, Value c);
  Value bitXor(Value a, Value c);
  Value shl(Value a, Value c);
  Value shr(Value a, Value c);
  Value ashr(Value a, Value c);
  Value wrapAdd(Value a, int64_t c) { return wrapAdd(a, constantLike(a, c)); }
  Value bitAnd(Value a, int64_t c) { return bitAnd(a, constantLike(a, c)); }
  Value bitOr(Value a, int64_t c) { return bitOr(a, constantLike(a, c)); }
  Value bitXor(Value a, int64_t c) { return bitXor(a, constantLike(a, c)); }
  Value shl(Value a, int64_t c) { return shl(a, constantLike(a, c)); }
  Value shr(Value a, int64_t c) { return shr(a, constantLike(a, c)); }
  Value ashr(Value a, int64_t c) { return ashr(a, constantLike(a, c)); }
  /// Bytes of (high:low) picked by the nibbles of `selector`, the lowest first.
  Value prmt(Value low, Value high, unsigned selector);
  Value bitcast(Value value, mlir::Type type);
  Value asF32(Value i32);
  Value asI32(Value f32);

  // Comparisons give i1; signed on integers, ordered on floats (false on NaN; ne: true on NaN).
  Value eq(Value a, Value c);
  Value ne(Value a, Value c);
  Value lt(Value a, Value c);
  Value le(Value a, Value c);
  Value gt(Value a, Value c) { return lt(c, a); }
  Value ge(Value a, Value c) { return le(c, a); }
  Value eq(Value a, int64_t c) { return eq(a, constantLike(a, c)); }
  Value ne(Value a, int64_t c) { return ne(a, constantLike(a, c)); }
  Value lt(Value a, int64_t c) { return lt(a, constantLike(a, c)); }
  Value le(Value a, int64_t c) { return le(a, constantLike(a, c)); }
  Value gt(Value a, int64_t c) { return lt(constantLike(a, c), a); }
  Value ge(Value a, int64_t c) { return le(constantLike(a, c), a); }
  Value select(Value condition, Value a, Value c);

  //===--- control flow (KernelBuilder.cpp) ----------------------------------===//

  using Body = llvm::function_ref<void()>;
  using LoopBody = llvm::function_ref<void(Value)>;
  using CarriedBody = llvm::function_ref<Values(Value, mlir::ValueRange)>;
  using Producer = llvm::function_ref<Values()>;
  void forLoop(Value from, Value to, Value step, LoopBody body);
  /// `body` takes the index and the carried values and returns their next.
  Values forLoop(Value from, Value to, Value step, mlir::ValueRange init, CarriedBody body);
  void ifThen(Value condition, Body then);
  void ifElse(Value condition, Body then, Body otherwise);
  Values ifValues(Value condition, Producer then, Producer otherwise);

  //===--- memory (Memory.cpp) -----------------------------------------------===//

  static unsigned bytesOf(plan::Format format); ///< of an element; 1 for e4m3 codes
  /// `base + index` elements of `elementBytes` (a power of two up to 16), in any address space.
  Value at(Value base, Value index, unsigned elementBytes);
  Value at(Value base, Value index, plan::Format format) {
    return at(base, index, bytesOf(format));
  }

  /// `count` i32 words (1, 2 or 4: one access) at an address aligned to as many bytes.
  Values loadWords(Value pointer, unsigned count);
  void storeWords(Value pointer, mlir::ValueRange words);
  /// 16 bytes of a weight stream: not kept in the first-level cache.
  Values loadStream16(Value pointer);
  Value loadI32(Value pointer);
  Value loadI64(Value pointer);
  void storeI32(Value pointer, Value value);
  void storeI64(Value pointer, Value value);

  /// `count` consecutive bf16 or f32 values as f32, in the widest accesses; `pointer` is aligned to
  /// min(16, size) bytes.
  Values loadF32(Value pointer, plan::Format format, unsigned count);
  /// Rounds to the format and stores, with the same alignment.
  void storeF32(Value pointer, plan::Format format, mlir::ValueRange values);

  /// A static array in shared memory, 16-byte aligned. All of a kernel's are at most 48 KiB.
  Value staticShared(uint64_t bytes);
  /// The launch's dynamic shared memory, 16-byte aligned.
  Value dynamicShared();

  /// 16 bytes from global to shared memory, past the first-level cache.
  void cpAsync16(Value shared, Value global);
  void cpAsyncCommit();
  void cpAsyncWait(unsigned pendingGroups);

  void barrier();
  /// Waits for the warp's other lanes; what they wrote before is visible then.
  void warpSync();
  /// Orders this thread's accesses to global memory for the whole GPU.
  void fence();
  /// All threads of the CTA call it, after their last store to scratch. True in all threads of the
  /// CTA that comes last of `expected`; what the others stored is visible then, and the counter is
  /// zero again.
  Value lastCtaArrives(Value counterIndex, unsigned expected);

  //===--- f32 (Float.cpp) ---------------------------------------------------===//
  // Each is rounded by itself; nothing contracts. Subnormals are kept.

  Value fadd(Value a, Value c);
  Value fsub(Value a, Value c);
  Value fmul(Value a, Value c);
  Value fma(Value a, Value c, Value d);
  Value fneg(Value a);
  Value fabs(Value a);
  Value fmin(Value a, Value c); ///< NaN if either is
  Value fmax(Value a, Value c);
  Value toF32(Value i32); ///< signed, nearest even

  /// Two f32 rounded to bf16: one word.
  Value packBf16(Value low, Value high);
  Value lowBf16(Value word); ///< as f32
  Value highBf16(Value word);
  /// The values as they are once stored: rounded to bf16 and widened again, or unchanged for f32.
  Values rounded(plan::Format format, mlir::ValueRange values);
  Value rounded(plan::Format format, Value value);

  /// The four e4m3 values of a word, in order. NaN codes give anything.
  Values e4m3ToF32(Value word);
  /// Words of two values: bytes 0 and 1, bytes 2 and 3.
  std::array<Value, 2> e4m3ToF16x2(Value word);
  std::array<Value, 2> e4m3ToBf16x2(Value word);
  std::array<Value, 2> f16x2ToF32(Value word);

  //===--- math (Math.cpp) ---------------------------------------------------===//
  // ulp: of the result, in f32. No libdevice, no slow paths.

  Value exp2(Value x);        ///< 2 ulp (ex2.approx)
  Value exp(Value x);         ///< 3 ulp for x <= 88.7, saturates above; 0 below -104; exp(-inf) = 0
  Value expNegative(Value x); ///< as `exp`, for x <= 0
  Value rcp(Value x);         ///< 1 ulp for 2^-126 <= |x| <= 2^126; 0 above
  Value rsqrt(Value x);       ///< 2 ulp
  Value log1p(Value x);       ///< 3 ulp for x >= 0
  Value sigmoid(Value x);     ///< 5 ulp
  Value silu(Value x);        ///< 6 ulp
  /// {sin, cos}, each within 2^-23 for |x| <= 2^19.
  std::array<Value, 2> sinCos(Value x);

  //===--- warps (Warp.cpp) --------------------------------------------------===//

  Value shuffleXor(Value value, unsigned mask); ///< f32, i32 or i64
  Value shuffleIndex(Value value, Value lane);
  /// Sum over 2^k lanes that differ in the bits of `width - 1`: xor by width/2, ..., 2, 1. All
  /// lanes end equal.
  Value warpSum(Value value, unsigned width = 32);
  Value warpMax(Value value, unsigned width = 32);

  //===--- tensor cores (Mma.cpp) --------------------------------------------===//

  /// mma.sync.m16n8k16 row.col f32.bf16.bf16.f32: a has 4 words, bw 2, c 4 f32.
  Values mmaBf16(mlir::ValueRange a, mlir::ValueRange bw, mlir::ValueRange c);

private:
  Value constantLike(Value like, int64_t value);
  Value intrinsic(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands);
  mlir::Type pointerType(unsigned space);
  Value sharedGlobal(llvm::StringRef name, uint64_t bytes, bool external);
  void addParameters(llvm::SmallVectorImpl<mlir::Type> &types,
                     llvm::SmallVectorImpl<mlir::DictionaryAttr> &attrs, const LaunchShape &shape);

  plan::KernelOp kernel;
  const ScheduleContext context;
  mlir::OpBuilder b;
  mlir::Location loc;
  std::string entryName;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Operation *gpuModule = nullptr, *function = nullptr;
  llvm::DenseMap<Value, Value> pointers, scalePointers;
  llvm::DenseMap<Value, Value> outputs;
  Value scratchPointer, countersPointer, dynamicSharedPointer;
  unsigned sharedCount = 0;
  llvm::DenseMap<mlir::Operation *, std::vector<numerics::Part>> notes;
};

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_KERNELBUILDER_H
