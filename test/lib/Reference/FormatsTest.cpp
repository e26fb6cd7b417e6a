//===- FormatsTest.cpp - stored numbers against a table of CUDA's own ------===//
//
// Of all 256 e4m3 codes the value, of all 65,536 bf16 codes what f32 numbers are rounded to: the
// code's own, the middle to the next one, and one unit of f32 to each side of it. Argument: the
// table, which FormatsTable.cpp prints.
//
//===----------------------------------------------------------------------===//

#include "lib/Reference/Formats/Scalar.h"
#include "test/unit/Check.h"

#include <algorithm>
#include <fstream>
#include <map>

using namespace planc::reference;

static std::map<std::string, std::vector<std::vector<std::string>>> table;

/// Any NaN is as good as another.
static bool isNan(uint16_t code) { return (code & 0x7FFF) > 0x7F80; }

static void checkRounding(uint32_t code, uint32_t offset, const std::string &expected) {
  uint16_t rounded = bf16FromDouble(std::bit_cast<float>(code << 16 | offset));
  bool holds = expected == "nan" ? isNan(rounded)
                                 : !isNan(rounded) && rounded == code + std::stoul(expected);
  if (!holds)
    check::fail(__FILE__, __LINE__,
                std::to_string(code << 16 | offset) + " is rounded to code " +
                    std::to_string(rounded) + ", expected " + std::to_string(code) + expected);
}

TEST(every_e4m3_code) {
  CHECK_EQ(table["e4m3"].size(), 256u);
  for (const auto &row : table["e4m3"]) {
    auto code = uint8_t(std::stoul(row.at(0), nullptr, 16));
    float value = e4m3Table()[code];
    if (row.at(1) == "nan")
      CHECK(std::isnan(value));
    else
      CHECK_EQ(std::bit_cast<uint32_t>(value), uint32_t(std::stoul(row.at(1), nullptr, 16)));
    if (!std::isnan(value)) // exact in bf16, so that no kernel rounds a weight
      CHECK_EQ(bf(value), double(value));
  }
}

TEST(every_bf16_code_and_every_tie) {
  static constexpr uint32_t kOffsets[] = {0, 0x7FFF, 0x8000, 0x8001};
  std::vector<bool> seen(0x10000);
  for (const auto &row : table["bf16"]) {
    uint32_t last = std::stoul(row.at(1), nullptr, 16);
    for (uint32_t code = std::stoul(row.at(0), nullptr, 16); code <= last; code += 2) {
      seen.at(code) = true;
      for (size_t i = 0; i < 4; ++i)
        checkRounding(code, kOffsets[i], row.at(2 + i));
    }
  }
  CHECK(std::ranges::count(seen, false) == 0);
}

int main(int argc, char **argv) {
  std::ifstream file(argc > 1 ? argv[1] : "");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    std::vector<std::string> row;
    words >> kind;
    for (std::string word; words >> word;)
      row.push_back(word);
    table[kind].push_back(row);
  }
  return check::main(1, argv);
}
