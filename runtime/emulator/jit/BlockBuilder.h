//===- BlockBuilder.h - the straight part of a block as LLVM IR -----------===//
//
// Used by Compiler.cpp for each block of a kernel that is to be compiled.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_JIT_BLOCKBUILDER_H
#define PLANEMU_JIT_BLOCKBUILDER_H

#include "runtime/emulator/jit/Jit.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace planemu::jit {

/// Builds functions for blocks of one kernel in a module that has the functions of lanes.
class BlockBuilder {
public:
  BlockBuilder(llvm::Module &lanes, const planemu_jit_kernel &kernel);
  /// A function `name`, which is a planemu_jit_run.
  llvm::Expected<llvm::Function *> build(const planemu_jit_block &block, const llvm::Twine &name);

private:
  using Steps = llvm::ArrayRef<planemu_jit_step>;
  /// Calls, and behind them instructions that work on lanes.
  struct Segment {
    llvm::SmallVector<const planemu_jit_step *> calls, lanes;
    llvm::SetVector<uint32_t> stored; // what somebody reads behind the segment
  };
  /// Where an operand is within a segment.
  struct Place {
    llvm::AllocaInst *at; // eight lanes; of a predicate all 32
    unsigned bytes;       // of a lane; 0: a predicate
  };

  llvm::SmallVector<Segment> segmentsOf(Steps steps) const;
  void findStored(llvm::MutableArrayRef<Segment> segments) const;
  void emitCall(const planemu_jit_step &step);
  llvm::Error emitLanes(const Segment &segment);
  llvm::SetVector<uint32_t> makePlaces(const Segment &segment);
  void loadPlaces(llvm::ArrayRef<uint32_t> offsets);
  llvm::Error emitStep(const planemu_jit_step &step);
  void keepResult(const planemu_jit_step &step, unsigned n, llvm::AllocaInst *result,
                  llvm::Value *guard);
  llvm::Value *predicateByte(uint32_t offset);
  llvm::Value *fileAddress(uint32_t offset);
  llvm::Value *chunkAddress(uint32_t offset, unsigned bytes);
  llvm::AllocaInst *allocate(llvm::Type *type);
  llvm::Type *vectorOf(unsigned bytes);
  llvm::Error inlineLanes();

  llvm::Module &module;
  const planemu_jit_kernel &kernel;
  llvm::IRBuilder<> ir;
  llvm::DenseMap<uint32_t, const planemu_jit_constant *> constants;
  llvm::Function *function = nullptr;             // the block's
  llvm::MapVector<uint32_t, Place> places;        // of a segment, by offset in the file
  llvm::Value *chunk = nullptr, *shift = nullptr; // the first lane of eight, as i64 and i32
  llvm::SmallVector<llvm::CallInst *> laneCalls;
};

} // namespace planemu::jit

#endif // PLANEMU_JIT_BLOCKBUILDER_H
