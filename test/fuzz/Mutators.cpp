//===- Mutators.cpp - what all mutators need ------------------------------===//
//
// libFuzzer's own mutation on a string, and the way back into its buffer.
//===----------------------------------------------------------------------===//

#include "test/fuzz/Mutators.h"

#include <algorithm>
#include <cstring>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t *data, std::size_t size, std::size_t most);

std::string fuzz::mutateBytes(std::string_view text, std::size_t most) {
  std::string bytes(text);
  bytes.resize(std::max(most, text.size()));
  bytes.resize(
      LLVMFuzzerMutate(reinterpret_cast<std::uint8_t *>(bytes.data()), text.size(), bytes.size()));
  return bytes;
}

std::size_t fuzz::store(std::string_view result, std::uint8_t *data, std::size_t size,
                        std::size_t most) {
  if (result.size() > most)
    return size;
  std::memcpy(data, result.data(), result.size());
  return result.size();
}
