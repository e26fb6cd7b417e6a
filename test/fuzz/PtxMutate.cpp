//===- PtxMutate.cpp - libFuzzer's mutator of the targets that read PTX ---===//
//
// See Mutators.h. One mutation of eight is libFuzzer's own, for the lexer.
//===----------------------------------------------------------------------===//

#include "test/fuzz/Mutators.h"

using namespace fuzz;

static std::string_view textOf(const std::uint8_t *data, std::size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  Random random(seed);
  std::string text(textOf(data, size));
  return store(random.oneIn(8) ? mutateBytes(text, most) : mutatePtx(text, random), data, size,
               most);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t *data, std::size_t size,
                                                 const std::uint8_t *other, std::size_t otherSize,
                                                 std::uint8_t *out, std::size_t most,
                                                 unsigned seed) {
  Random random(seed);
  return store(crossPtx(textOf(data, size), textOf(other, otherSize), random), out, 0, most);
}
