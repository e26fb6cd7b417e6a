//===- GpuFinder.h - places for faults in an emitted kernel -----------------===//
//
// Private to lib/Verify/Mutations.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_MUTATIONS_GPUFINDER_H
#define PLANC_LIB_VERIFY_MUTATIONS_GPUFINDER_H

#include "lib/Verify/Mutations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace planc::verify {

/// What a pointer leads to.
struct Memory {
  enum class Kind { Argument, Scales, Output, Scratch, Counters, Shared } kind;
  unsigned number;              ///< of the argument, output or shared array
  mlir::BlockArgument argument; ///< of the plan.kernel; null if it is none
  mlir::Value root;             ///< parameter of the function, or address of a shared array

  std::string text() const;
  /// Ids, tables, slots, lengths, positions.
  bool isIntegerEdge() const;
};

/// An operand through which memory is accessed.
struct Access {
  mlir::OpOperand *pointer;
  Memory memory;
  bool isStore;
  unsigned bytes;
};

/// Collects the places of one kind.
class GpuFinder {
public:
  GpuFinder(plan::KernelOp kernel, EmittedKernel &emitted);

#define PLANC_GPU_MUTATION(Name, text, likely, description) void find##Name();
#include "lib/Verify/Mutations.def"

  Sites sites;

private:
  void add(std::string where, std::function<void()> plant) {
    sites.push_back({std::move(where), std::move(plant)});
  }
  /// "scf.if #3": the operation and which of its kind in the kernel.
  std::string name(mlir::Operation *op);
  template <class Op> void walk(llvm::function_ref<void(Op)> body) {
    function.walk<mlir::WalkOrder::PreOrder>(body);
  }
  template <class... Ops> void eraseEach();

  std::optional<Memory> memoryOf(mlir::Value pointer);
  bool dependsOnData(mlir::Value condition);
  /// All accesses to memory whose root is known, in program order.
  std::vector<Access> accesses();

  mlir::gpu::GPUFuncOp function;
  int64_t ctas;                                        ///< of the grid's first dimension
  std::vector<Memory> parameters;                      ///< of the function, in order
  llvm::DenseMap<mlir::Operation *, unsigned> numbers; ///< of operations, by kind
};

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_MUTATIONS_GPUFINDER_H
