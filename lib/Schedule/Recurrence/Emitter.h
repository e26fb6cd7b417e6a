//===- Emitter.h - the body of a recurrence kernel ------------------------===//
//
// Private to lib/Schedule/Recurrence. Emit.cpp has the state's step, Neighbours.cpp the members
// around it.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_RECURRENCE_EMITTER_H
#define PLANC_LIB_SCHEDULE_RECURRENCE_EMITTER_H

#include "lib/Schedule/Elementwise.h"
#include "lib/Schedule/Recurrence/Recurrence.h"

namespace planc {

class RecurrenceEmitter {
public:
  RecurrenceEmitter(KernelBuilder &builder, const RecurrenceKernel &parts)
      : b(builder), eval(builder), parts(parts), laneRows(parts.keyDim / kRowGroups) {}

  static LaunchShape shape(const RecurrenceKernel &parts);
  void emit();

private:
  using Tile = llvm::SmallVector<Values>; ///< [row of the lane][4 columns]

  // Emit.cpp
  Tile loadTile(Value column);
  void storeTile(const Tile &tile, Value column);
  Values sumOverRows(const Tile &tile, const Values &vector);
  Values step(Value column, const Values &v);
  void column(Value column);

  // Neighbours.cpp
  void loadGates();
  void loadKeys();
  Values loadValues(Value column);
  void emitNorm();

  KernelBuilder &b;
  Evaluator eval;
  RecurrenceKernel parts;
  int64_t laneRows; ///< rows of the state that a lane holds

  Value row, head, keyHead;
  Value quad;  ///< which 4 of the warp's columns are the lane's
  Value group; ///< which sixteenth of the rows is the lane's
  Value slotIn, slotOut;
  Value decay, beta; ///< as the step uses them
  Values q, k;       ///< at the lane's rows
  Value headFactor;  ///< of the l2_norm of the head that is being loaded
  /// What the CTAs and warps of a head (of a key head) all compute, this one stores.
  Value storesHead, storesKeyHead;
  Value sharedCore; ///< f32 [Vd], unrounded, for the norm
};

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_RECURRENCE_EMITTER_H
