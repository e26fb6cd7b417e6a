//===- Undefined.h - registers that hold bytes nobody wrote ---------------===//
//
// To load what nobody wrote is no fault yet: compilers copy structs with their padding, load a word
// to set a field of bits in it, and load ahead of the test whether a place is theirs. So the initcheck
// follows such values, bit by bit, through what only moves, masks, selects or compares, and reports
// them where they count:
//
//   arithmetic, conversions of floats, shuffles, atomics    whatever is not listed in `Flow`; but
//                                                           arithmetic on a thread's own variables is
//                                                           followed too: optimised, they are registers
//   addresses, guards, branches                             of lanes that execute them
//   a store to global or shared memory of a row that is undefined as a whole
//
// A row that is so in part, as a struct is with its padding, leaves the undefined bytes unwritten where
// it is stored, and who reads those is followed in turn. In local memory all is kept, to the bit.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_UNDEFINED_H
#define PLANEMU_OBSERVE_UNDEFINED_H

#include "runtime/emulator/Machine.h"

#include <functional>
#include <unordered_map>

namespace planemu {

/// Which load an undefined value comes from.
struct Origin {
  std::uint32_t line = 0;
  std::uint32_t lane = 0;
  std::uint64_t host = 0;
  std::uint32_t bytes = 0;
};

/// The undefined values of one warp.
class Undefined {
public:
  using Report = std::function<void(const Origin &)>;

  bool any() const { return !values.empty(); }
  void clear() { values.clear(); }
  /// A load has put undefined `bits` into the register at `offset`.
  void set(std::uint32_t offset, unsigned lane, std::uint64_t bits, const Origin &origin);
  /// `inst` is about to run: what it makes of undefined values. Reports those that it uses.
  void follow(const Warp &warp, const Inst &inst, const Report &report);
  /// `lanes` are about to branch as the predicate or index at `offset` says.
  void use(std::uint32_t offset, std::uint32_t lanes, const Report &report);
  /// Undefined bits of the register, and where they come from.
  std::uint64_t bitsOf(std::uint32_t offset, unsigned lane, const Origin *&origin) const;

private:
  struct Value {
    std::uint32_t lanes = 0;
    std::uint64_t bits[32];
    Origin origins[32];
  };
  void forget(std::uint32_t offset, std::uint32_t lanes);
  std::uint32_t localLanes(const Warp &warp, std::uint32_t offset) const;
  std::uint64_t flow(const Warp &warp, const Inst &inst, const InstFlow &how, unsigned result,
                     unsigned lane, const Origin *&origin) const;

  std::unordered_map<std::uint32_t, Value> values; // by offset in the warp's file
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_UNDEFINED_H
