//===- Mutators.h - mutations that keep an input well-formed --------------===//
//
// Flipped bytes die in a lexer or at a checksum. These change text in the pieces its grammar has, so
// that most mutants are read and the code behind the reader sees what nobody writes. A result that
// would exceed the limit is given up for the input itself: a text cut short is refused at its end.
//===----------------------------------------------------------------------===//
#ifndef PLANC_TEST_FUZZ_MUTATORS_H
#define PLANC_TEST_FUZZ_MUTATORS_H

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace fuzz {

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  /// Below `limit`, which is not 0.
  std::size_t below(std::size_t limit) { return engine() % limit; }
  bool oneIn(std::size_t n) { return below(n) == 0; }
  template <class List> auto &pick(List &list) { return list[below(std::size(list))]; }

private:
  std::minstd_rand engine;
};

/// libFuzzer's own mutation of bytes.
std::string mutateBytes(std::string_view text, std::size_t most);

/// One to four changes: operands, modifiers, numbers, mnemonics, whole statements.
std::string mutatePtx(std::string_view text, Random &random);
/// `text` with some statements of `other`, whose registers and labels become those of `text`.
std::string crossPtx(std::string_view text, std::string_view other, Random &random);

/// One to four changes of values, members and elements; also values beyond what a type holds, and
/// keys that occur twice. `text` need not be JSON.
std::string mutateJson(std::string_view text, Random &random);

/// Copies the result to where libFuzzer wants it.
std::size_t store(std::string_view result, std::uint8_t *data, std::size_t size, std::size_t most);

} // namespace fuzz

#endif // PLANC_TEST_FUZZ_MUTATORS_H
