//===- StepInputs.h - what a step tells its kernels -------------------------===//
//
// The inputs of a program by name, found once. A program need not have every one; the manifest's
// check has held their shapes against the program.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_STEPINPUTS_H
#define PLANRT_STEPINPUTS_H

#include "runtime/Session.h"
#include "runtime/StepMemory.h"

namespace planrt {

class StepInputs {
public:
  StepInputs(const StepMemory &memory, uint32_t rows, const planc::bundle::Model &model);

  /// Writes the block for these rows; the program's other rows read zeros and write nothing.
  void fill(std::span<const Row> rows, const Session &session);

private:
  uint32_t programRows;
  int64_t blockSize;
  size_t tableWidth;
  std::span<int32_t> tokenIds, positions, seqLens, slotsIn, slotsOut, tables;
  std::span<int64_t> slotMapping;
};

} // namespace planrt

#endif // PLANRT_STEPINPUTS_H
