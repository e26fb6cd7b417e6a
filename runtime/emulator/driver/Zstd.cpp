//===- Zstd.cpp - decoder of Zstandard frames -----------------------------===//
//
// After RFC 8878; section numbers below are the RFC's. Made to be small and safe, not fast: one
// check per read, no dictionaries, the checksum is not verified (what comes out is parsed anyway).
// Errors are thrown inside and caught at the door.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Decompress.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

struct Damaged {};

void require(bool good) {
  if (!good)
    throw Damaged();
}

unsigned highBit(std::uint32_t value) { return 31 - static_cast<unsigned>(__builtin_clz(value)); }

/// Bytes from the front, and bits from the lowest of the first byte on.
class Forward {
public:
  explicit Forward(std::string_view bytes) : bytes(bytes) {}
  std::size_t left() const { return bytes.size() - at; }
  std::uint32_t byte() {
    require(at < bytes.size());
    return static_cast<unsigned char>(bytes[at++]);
  }
  std::uint64_t number(unsigned count) {
    std::uint64_t value = 0;
    for (unsigned n = 0; n < count; ++n)
      value |= std::uint64_t(byte()) << (8 * n);
    return value;
  }
  std::string_view take(std::size_t count) {
    require(count <= left());
    at += count;
    return bytes.substr(at - count, count);
  }
  std::uint32_t bits(unsigned count) {
    std::uint32_t value = 0;
    for (unsigned n = 0; n < count; ++n, ++bit) {
      require(at + bit / 8 < bytes.size());
      value |= static_cast<std::uint32_t>(
                   static_cast<unsigned char>(bytes[at + bit / 8]) >> (bit % 8) & 1)
               << n;
    }
    return value;
  }
  void back(unsigned count) { bit -= count; }
  void alignBits() {
    at += (bit + 7) / 8;
    bit = 0;
    require(at <= bytes.size());
  }

private:
  std::string_view bytes;
  std::size_t at = 0;
  std::size_t bit = 0; // from `at` on
};

/// Bits from the end; the highest set bit of the last byte only marks it.
class Backward {
public:
  explicit Backward(std::string_view bytes) : bytes(bytes) {
    require(!bytes.empty() && bytes.back() != 0);
    left = 8 * static_cast<std::ptrdiff_t>(bytes.size() - 1) +
           highBit(static_cast<unsigned char>(bytes.back()));
  }
  /// Beyond the beginning there are zeros; `left` is negative then.
  std::uint64_t bits(unsigned count) {
    std::uint64_t value = 0;
    for (unsigned n = 0; n < count; ++n) {
      --left;
      unsigned bit = left < 0 ? 0 : static_cast<unsigned char>(bytes[left / 8]) >> (left % 8) & 1;
      value = value << 1 | bit;
    }
    return value;
  }
  std::ptrdiff_t left;

private:
  std::string_view bytes;
};

/// 4.1: a finite state entropy table.
struct Fse {
  struct Entry {
    std::uint8_t symbol, bits;
    std::uint16_t base;
  };
  std::vector<Entry> entries;
  unsigned log = 0;

  bool empty() const { return entries.empty(); }

  void build(const std::vector<int> &counts, unsigned accuracy) {
    log = accuracy;
    std::uint32_t size = 1u << log, high = size;
    entries.assign(size, {});
    std::vector<std::uint32_t> next(counts.size());
    for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
      next[symbol] = counts[symbol] < 0 ? 1 : static_cast<std::uint32_t>(counts[symbol]);
      if (counts[symbol] < 0) { // less likely than one in `size`
        require(high > 0);
        entries[--high].symbol = static_cast<std::uint8_t>(symbol);
      }
    }
    std::uint32_t step = (size >> 1) + (size >> 3) + 3, position = 0;
    for (std::size_t symbol = 0; symbol < counts.size(); ++symbol)
      for (int n = 0; n < counts[symbol]; ++n) {
        entries[position].symbol = static_cast<std::uint8_t>(symbol);
        do
          position = (position + step) & (size - 1);
        while (position >= high && high != 0);
      }
    require(position == 0);
    for (Entry &entry : entries) {
      std::uint32_t state = next[entry.symbol]++;
      require(state != 0);
      entry.bits = static_cast<std::uint8_t>(log - highBit(state));
      entry.base = static_cast<std::uint16_t>((state << entry.bits) - size);
    }
  }

  /// 4.1.1: the table's description.
  void read(Forward &in, unsigned mostSymbol, unsigned mostLog) {
    unsigned accuracy = in.bits(4) + 5;
    require(accuracy <= mostLog);
    std::vector<int> counts;
    int remaining = 1 << accuracy;
    while (remaining > 0) {
      require(counts.size() <= mostSymbol);
      unsigned width = highBit(static_cast<std::uint32_t>(remaining) + 1) + 1;
      std::uint32_t value = in.bits(width), lower = (1u << (width - 1)) - 1;
      std::uint32_t threshold = (1u << width) - 1 - (static_cast<std::uint32_t>(remaining) + 1);
      if ((value & lower) < threshold) {
        in.back(1);
        value &= lower;
      } else if (value > lower) {
        value -= threshold;
      }
      int count = static_cast<int>(value) - 1;
      remaining -= count < 0 ? 1 : count;
      counts.push_back(count);
      if (count == 0)
        for (std::uint32_t repeat = 3; repeat == 3;) {
          repeat = in.bits(2);
          counts.insert(counts.end(), repeat, 0);
          require(counts.size() <= mostSymbol + 1);
        }
    }
    require(remaining == 0 && counts.size() <= mostSymbol + 1);
    in.alignBits();
    build(counts, accuracy);
  }

  void single(std::uint32_t symbol) {
    log = 0;
    entries = {{static_cast<std::uint8_t>(symbol), 0, 0}};
  }
};

/// A state that walks through a table.
struct Walker {
  const Fse &table;
  std::uint32_t state;
  Walker(const Fse &table, Backward &in)
      : table(table), state(static_cast<std::uint32_t>(in.bits(table.log))) {}
  std::uint8_t symbol() const { return table.entries[state].symbol; }
  void next(Backward &in) {
    const Fse::Entry &entry = table.entries[state];
    state = entry.base + static_cast<std::uint32_t>(in.bits(entry.bits));
  }
};

/// 4.2: a table of prefix codes, indexed by the next `log` bits.
struct Huffman {
  struct Entry {
    std::uint8_t symbol, bits;
  };
  std::vector<Entry> entries;
  unsigned log = 0;

  void read(Forward &in) {
    std::vector<std::uint8_t> weights;
    std::uint32_t header = in.byte();
    if (header >= 128) {
      std::uint32_t count = header - 127;
      std::string_view packed = in.take((count + 1) / 2);
      for (std::uint32_t n = 0; n < count; ++n) {
        unsigned char pair = static_cast<unsigned char>(packed[n / 2]);
        weights.push_back(n % 2 ? pair & 15 : pair >> 4);
      }
    } else {
      Forward description(in.take(header));
      Fse table;
      table.read(description, 255, 6);
      Backward stream(description.take(description.left()));
      // Two states take turns until the bits are used up.
      Walker walkers[2] = {{table, stream}, {table, stream}};
      for (unsigned turn = 0;; turn ^= 1) {
        weights.push_back(walkers[turn].symbol());
        require(weights.size() < 256);
        walkers[turn].next(stream);
        if (stream.left < 0) {
          weights.push_back(walkers[turn ^ 1].symbol());
          break;
        }
      }
    }
    build(weights);
  }

  void build(std::vector<std::uint8_t> &weights) {
    std::uint32_t total = 0;
    for (std::uint8_t weight : weights) {
      require(weight <= 11);
      total += weight ? 1u << (weight - 1) : 0;
    }
    require(total != 0 && weights.size() < 256);
    log = highBit(total) + 1;
    require(log <= 11);
    std::uint32_t rest = (1u << log) - total; // the last weight is what is left
    require((rest & (rest - 1)) == 0);
    weights.push_back(static_cast<std::uint8_t>(highBit(rest) + 1));
    entries.clear();
    for (unsigned weight = 1; weight <= log; ++weight)
      for (std::size_t symbol = 0; symbol < weights.size(); ++symbol)
        if (weights[symbol] == weight)
          entries.insert(
              entries.end(), std::size_t(1) << (weight - 1),
              {static_cast<std::uint8_t>(symbol), static_cast<std::uint8_t>(log + 1 - weight)});
    require(entries.size() == std::size_t(1) << log);
  }

  void decode(std::string_view bytes, std::size_t count, std::string &out) const {
    Backward in(bytes);
    std::uint32_t mask = (1u << log) - 1;
    std::uint32_t window = static_cast<std::uint32_t>(in.bits(log));
    std::ptrdiff_t used = static_cast<std::ptrdiff_t>(log); // bits in the window
    std::ptrdiff_t total = in.left + used;
    for (std::size_t n = 0; n < count; ++n) {
      Entry entry = entries[window];
      out += static_cast<char>(entry.symbol);
      total -= entry.bits;
      require(total >= 0);
      window = (window << entry.bits | static_cast<std::uint32_t>(in.bits(entry.bits))) & mask;
    }
    require(total == 0);
  }
};

// 3.1.1.3.2.1.1: lengths by code.
struct Length {
  std::uint32_t base;
  unsigned bits;
};
constexpr Length LiteralLengths[] = {
    {0, 0},     {1, 0},      {2, 0},      {3, 0},     {4, 0},   {5, 0},     {6, 0},     {7, 0},
    {8, 0},     {9, 0},      {10, 0},     {11, 0},    {12, 0},  {13, 0},    {14, 0},    {15, 0},
    {16, 1},    {18, 1},     {20, 1},     {22, 1},    {24, 2},  {28, 2},    {32, 3},    {40, 3},
    {48, 4},    {64, 6},     {128, 7},    {256, 8},   {512, 9}, {1024, 10}, {2048, 11}, {4096, 12},
    {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16}};
constexpr Length MatchLengths[] = {
    {3, 0},     {4, 0},     {5, 0},      {6, 0},      {7, 0},     {8, 0},   {9, 0},     {10, 0},
    {11, 0},    {12, 0},    {13, 0},     {14, 0},     {15, 0},    {16, 0},  {17, 0},    {18, 0},
    {19, 0},    {20, 0},    {21, 0},     {22, 0},     {23, 0},    {24, 0},  {25, 0},    {26, 0},
    {27, 0},    {28, 0},    {29, 0},     {30, 0},     {31, 0},    {32, 0},  {33, 0},    {34, 0},
    {35, 1},    {37, 1},    {39, 1},     {41, 1},     {43, 2},    {47, 2},  {51, 3},    {59, 3},
    {67, 4},    {83, 4},    {99, 5},     {131, 7},    {259, 8},   {515, 9}, {1027, 10}, {2051, 11},
    {4099, 12}, {8195, 13}, {16387, 14}, {32771, 15}, {65539, 16}};

// 3.1.1.3.2.2: the distributions that need no description.
const std::vector<int> LiteralDefault = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                         2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
const std::vector<int> MatchDefault = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
const std::vector<int> OffsetDefault = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                        1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};

class Decoder {
public:
  Decoder(std::string_view in, std::string &out) : in(in), out(out) {}

  /// 3.1.1: frames until the input ends.
  void run() {
    do
      frame();
    while (in.left());
    require(to == out.size());
  }

private:
  void frame() {
    require(in.number(4) == 0xfd2fb528);
    std::uint32_t descriptor = in.byte();
    require(!(descriptor & 8));
    bool single = descriptor & 32, checksum = descriptor & 4;
    if (!single)
      in.byte(); // the window: all of `out` is kept
    static constexpr unsigned IdBytes[] = {0, 1, 2, 4}, SizeBytes[] = {0, 2, 4, 8};
    require(in.number(IdBytes[descriptor & 3]) == 0);
    in.number(descriptor >> 6 ? SizeBytes[descriptor >> 6] : single ? 1 : 0);
    begin = to;
    huffman = {};
    tables[0] = tables[1] = tables[2] = {};
    repeats = {1, 4, 8};
    for (bool last = false; !last;) {
      std::uint32_t header = static_cast<std::uint32_t>(in.number(3));
      last = header & 1;
      std::uint32_t bytes = header >> 3;
      switch (header >> 1 & 3) {
      case 0:
        append(in.take(bytes));
        break;
      case 1:
        append(std::string(checked(bytes), static_cast<char>(in.byte())));
        break;
      case 2:
        block(in.take(bytes));
        break;
      default:
        throw Damaged();
      }
    }
    if (checksum)
      in.number(4);
  }

  std::size_t checked(std::size_t bytes) const {
    require(bytes <= out.size() - to);
    return bytes;
  }
  void append(std::string_view bytes) {
    bytes.copy(out.data() + to, checked(bytes.size()));
    to += bytes.size();
  }

  /// 3.1.1.3.1: literals.
  std::string literals(Forward &block) {
    std::uint32_t first = block.byte(), kind = first & 3, format = first >> 2 & 3;
    if (kind < 2) {
      std::size_t count = first >> 3;
      if (format & 1)
        count = first >> 4 | block.number(format == 3 ? 2 : 1) << 4;
      checked(count);
      return kind == 0 ? std::string(block.take(count))
                       : std::string(count, static_cast<char>(block.byte()));
    }
    static constexpr unsigned More[] = {2, 2, 3, 4}, Width[] = {10, 10, 14, 18};
    std::uint64_t sizes = first >> 4 | block.number(More[format]) << 4;
    unsigned width = Width[format];
    std::size_t count = sizes & ((1u << width) - 1), packed = sizes >> width;
    checked(count);
    Forward content(block.take(packed));
    if (kind == 2)
      huffman.read(content);
    require(!huffman.entries.empty());
    std::string result;
    if (format == 0) {
      huffman.decode(content.take(content.left()), count, result);
      return result;
    }
    std::size_t streams[4], quarter = (count + 3) / 4;
    for (unsigned n = 0; n < 3; ++n)
      streams[n] = content.number(2);
    require(streams[0] + streams[1] + streams[2] <= content.left() && 3 * quarter <= count);
    streams[3] = content.left() - streams[0] - streams[1] - streams[2];
    for (unsigned n = 0; n < 4; ++n)
      huffman.decode(content.take(streams[n]), n < 3 ? quarter : count - 3 * quarter, result);
    return result;
  }

  void table(Forward &block, unsigned which, unsigned mode) {
    static constexpr unsigned MostSymbol[] = {35, 31, 52}, MostLog[] = {9, 8, 9};
    Fse &table = tables[which];
    if (mode == 0) {
      const std::vector<int> *defaults[] = {&LiteralDefault, &OffsetDefault, &MatchDefault};
      table.build(*defaults[which], which == 1 ? 5 : 6);
    } else if (mode == 1) {
      std::uint32_t symbol = block.byte();
      require(symbol <= MostSymbol[which]);
      table.single(symbol);
    } else if (mode == 2) {
      table.read(block, MostSymbol[which], MostLog[which]);
    }
    require(!table.empty());
  }

  /// 3.1.1.5: offsets 1 to 3 repeat earlier ones.
  std::uint64_t offset(std::uint64_t value, bool noLiterals) {
    if (value > 3) {
      repeats = {value - 3, repeats[0], repeats[1]};
      return repeats[0];
    }
    unsigned which = static_cast<unsigned>(value) - 1 + noLiterals;
    std::uint64_t result = which < 3 ? repeats[which] : repeats[0] - 1;
    if (which == 1)
      repeats = {result, repeats[0], repeats[2]};
    else if (which > 1)
      repeats = {result, repeats[0], repeats[1]};
    return result;
  }

  /// 3.1.1.3: literals, then sequences of literals and a match.
  void block(std::string_view bytes) {
    Forward block(bytes);
    std::string literal = literals(block);
    std::size_t literalsUsed = 0;
    std::uint32_t count = block.byte();
    if (count == 255)
      count = static_cast<std::uint32_t>(block.number(2)) + 0x7f00;
    else if (count >= 128)
      count = (count - 128) << 8 | block.byte();
    if (count) {
      std::uint32_t modes = block.byte();
      require(!(modes & 3));
      for (unsigned which = 0; which < 3; ++which)
        table(block, which, modes >> (6 - 2 * which) & 3);
      Backward stream(block.take(block.left()));
      Walker length(tables[0], stream), distance(tables[1], stream), match(tables[2], stream);
      for (std::uint32_t n = 0; n < count; ++n) {
        unsigned code = distance.symbol();
        std::uint64_t value = (std::uint64_t(1) << code) + stream.bits(code);
        Length matchCode = MatchLengths[match.symbol()],
               literalCode = LiteralLengths[length.symbol()];
        std::size_t matched = matchCode.base + stream.bits(matchCode.bits);
        std::size_t copied = literalCode.base + stream.bits(literalCode.bits);
        require(stream.left >= 0 && copied <= literal.size() - literalsUsed);
        append(std::string_view(literal).substr(literalsUsed, copied));
        literalsUsed += copied;
        std::uint64_t back = offset(value, copied == 0);
        require(back != 0 && back <= to - begin);
        checked(matched);
        for (; matched; --matched, ++to) // may overlap itself
          out[to] = out[to - back];
        if (n + 1 < count) {
          length.next(stream);
          match.next(stream);
          distance.next(stream);
          require(stream.left >= 0);
        }
      }
      require(stream.left == 0);
    } else {
      require(block.left() == 0);
    }
    append(std::string_view(literal).substr(literalsUsed));
  }

  Forward in;
  std::string &out;
  std::size_t to = 0, begin = 0; // written; of the frame
  Huffman huffman;
  Fse tables[3]; // literal lengths, offsets, match lengths
  std::array<std::uint64_t, 3> repeats{};
};

} // namespace

bool planemu::decompressZstd(std::string_view in, std::string &out) {
  try {
    Decoder(in, out).run();
    return true;
  } catch (const Damaged &) {
    return false;
  }
}
