//===- BuilderTest.cpp - one kernel with every operation of KernelBuilder ---===//
//
// Prints a gpu.module for a target, to be compiled by planc-codegen-test: what the builder emits
// must be what the backend selects, on every target.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/KernelBuilder.h"
#include "lib/Target/Target.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace planc;
using plan::Format;

static const char *const kKernel = R"mlir(
plan.kernel @builder rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %u: tensor<1x256xbf16>):
  %y = plan.residual_add %x, %u precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  plan.yield %y : tensor<1x256xbf16>
}
)mlir";

/// Sums all of `values` into one f32, so that none is dead.
static Value fold(KernelBuilder &b, mlir::ValueRange values) {
  Value sum = values.front();
  for (Value value : values.drop_front())
    sum = b.fadd(sum, value);
  return sum;
}

static Values mathOf(KernelBuilder &b, Value x) {
  Values all = {b.exp(x),
                b.exp2(x),
                b.log1p(x),
                b.sigmoid(x),
                b.silu(x),
                b.rsqrt(x),
                b.rcp(x),
                b.fmin(x, b.fneg(b.fabs(x))),
                b.rounded(Format::BF16, x)};
  auto [sine, cosine] = b.sinCos(x);
  all.append({sine, cosine, b.warpSum(x), b.warpMax(x, 8), b.shuffleIndex(x, b.i32(3))});
  return all;
}

static void build(KernelBuilder &b, plan::KernelOp kernel) {
  Value thread = b.threadId();
  Value x = b.pointer(kernel.getBody().getArgument(0));
  Value out = b.outputPointer(kernel.getBody().front().getTerminator()->getOperand(0));
  Value mine = b.at(x, b.mul(thread, 8), Format::BF16);
  Values values = b.loadF32(mine, Format::BF16, 8);
  values.append(b.ifValues(
      b.lt(thread, 7), [&] { return b.loadF32(mine, Format::F32, 4); },
      [&] { return Values(4, b.f32(0)); }));
  Value sum = fold(b, mathOf(b, fold(b, values)));

  // Dequantisation and tensor cores over copied tiles.
  Value shared = b.staticShared(4096), dynamic = b.dynamicShared();
  b.cpAsync16(b.at(shared, thread, 16), mine);
  b.cpAsync16(b.at(dynamic, thread, 16), mine);
  b.cpAsyncCommit();
  b.cpAsyncWait(0);
  b.barrier();
  Values a = b.loadWords(b.at(shared, thread, 16), 4), words = b.loadStream16(mine);
  auto bf16 = b.e4m3ToBf16x2(words[0]);
  Values c(4, b.f32(0));
  c = b.forLoop(b.i32(0), b.i32(4), b.i32(1), c, [&](Value, mlir::ValueRange carried) {
    return b.mmaBf16(a, {bf16[0], bf16[1]}, carried);
  });
  sum = b.fadd(sum, fold(b, c));
  sum = b.fadd(sum, fold(b, b.e4m3ToF32(words[1])));
  sum = b.fadd(sum, fold(b, b.loadF32(b.dynamicShared(), Format::BF16, 1)));

  Value last = b.lastCtaArrives(b.blockId(), 4);
  b.ifElse(
      last, [&] { b.storeF32(b.at(b.scratch(), thread, 4), Format::F32, {sum}); },
      [&] { b.storeF32(b.at(out, b.mul(thread, 8), 2), Format::BF16, Values(8, sum)); });
}

int main(int argc, char **argv) {
  const Target *target = lookupTarget(argc > 1 ? argv[1] : "gb10");
  if (!target)
    return 2;
  mlir::DialectRegistry registry;
  registry.insert<plan::PlanDialect>();
  registerScheduleDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto source = mlir::parseSourceString<mlir::ModuleOp>(kKernel, &context);
  auto kernel = *source->getOps<plan::KernelOp>().begin();
  KernelBuilder builder(kernel, {*target, 16});
  LaunchShape shape;
  shape.block = {128, 1, 1};
  shape.scratchBytes = 512;
  shape.counters = 4;
  builder.begin(shape);
  build(builder, kernel);
  auto module = builder.finish();
  if (mlir::failed(mlir::verify(*module)))
    return 1;
  module->print(llvm::outs());
  return 0;
}
