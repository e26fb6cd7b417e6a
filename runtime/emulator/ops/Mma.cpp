//===- Mma.cpp - ldmatrix, stmatrix, mma.sync -----------------------------===//
//
// A register of fragment A, B (32 lanes of 32 bits) is an 8 x 16-byte tile, row by row: lane l
// holds bytes 4 (l % 4) ... of row l / 4 (PTX ISA, "Matrix Fragments for mma.m16n8k16"). So
// ldmatrix copies eight rows of 16 bytes, and mma reads
//
//        k 0..7   k 8..15 (fp8: 0..15, 16..31)          n 0..7
//   m 0..7   A0       A2                       C0,C1 interleaved: row m, columns 2 (l % 4) + {0, 1}
//   m 8..15  A1       A3                       C2,C3
//   B0: rows are n, columns k 0..7;  B1: k 8..15
//
// Products are accumulated in f32, one fused multiply-add after the other in the order of k,
// starting from C. Hardware adds in another order with other intermediate widths (and does not
// document which), so results of mma are compared with a tolerance.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Mma.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"

namespace planemu::PLANEMU_ISA {

bool partialWarp(Warp &w, const Inst &i, u32 mask, const char *what) {
  if (mask)
    reportFault(w, i.line, FaultKind::PartialWarp, static_cast<unsigned>(__builtin_ctz(mask)), 0, 0,
                what);
  return false;
}

// --- ldmatrix, stmatrix -----------------------------------------------------

/// Host addresses of the rows: lanes 8n ... 8n + 7 hold those of tile n.
template <class Base, int Tiles>
static bool resolveTiles(Warp &w, const Inst &i, u32 slot, AccessKind kind, const char *access,
                         Rows &rows) {
  if (!w.observer && scattered<Where::Shared, Base, 16, 8 * Tiles>(w, i, slot, i.imm, rows.host))
      [[likely]]
    return true;
  formAddresses<Base>(w, slot, i.imm, rows.host);
  u32 lanes = ~0u >> (32 - 8 * Tiles);
  resolve<Where::Shared, 16>(w, i, lanes, access, rows);
  if (w.cta->failed)
    return false;
  observe(w, i, kind, lanes, 16, rows);
  if (rows.whole)
    for (int lane = 0; lane < 8 * Tiles; ++lane)
      rows.host.of[lane] = reinterpret_cast<u64>(rows.whole) + static_cast<u64>(16 * lane);
  return true;
}

void transposeTile(u16 *tile) {
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < row; ++column)
      std::swap(tile[8 * row + column], tile[8 * column + row]);
}

/// Operands: members (all), destinations, address.
template <class Base, int Tiles, bool Transposed> static void loadMatrix(Warp &w, const Inst &i) {
  Rows rows;
  const u32 *ops = operandsOf(i);
  if (!wholeWarp(w, i, "ldmatrix") ||
      !resolveTiles<Base, Tiles>(w, i, ops[1 + Tiles], AccessKind::Load, "ldmatrix", rows))
    return;
  for (int tile = 0; tile < Tiles; ++tile) {
    char *d = w.file + ops[1 + tile];
    for (int row = 0; row < 8; ++row)
      std::memcpy(d + 16 * row, reinterpret_cast<const char *>(rows.host.of[8 * tile + row]), 16);
    if constexpr (Transposed)
      transposeTile(reinterpret_cast<u16 *>(d));
  }
}

/// Operands: members (all), address, sources.
template <class Base, int Tiles, bool Transposed> static void storeMatrix(Warp &w, const Inst &i) {
  Rows rows;
  const u32 *ops = operandsOf(i);
  if (!wholeWarp(w, i, "stmatrix") ||
      !resolveTiles<Base, Tiles>(w, i, ops[1], AccessKind::Store, "stmatrix", rows))
    return;
  for (int tile = 0; tile < Tiles; ++tile) {
    alignas(16) u16 copy[64];
    std::memcpy(copy, w.file + ops[2 + tile], sizeof(copy));
    if constexpr (Transposed)
      transposeTile(copy);
    for (int row = 0; row < 8; ++row)
      std::memcpy(reinterpret_cast<char *>(rows.host.of[8 * tile + row]), copy + 8 * row, 16);
  }
}

template <bool Store> static void selectMatrix(Decoder &d) {
  if (!d.take(".sync") || !d.take(".aligned") || !d.take(".m8n8"))
    d.fail("only .sync.aligned.m8n8 is supported");
  int tiles = d.take(".x1") ? 1 : d.take(".x2") ? 2 : d.take(".x4") ? 4 : 0;
  if (!tiles)
    d.fail("none of .x1 .x2 .x4");
  bool transposed = d.take(".trans");
  Space space = takeSpace(d);
  if (space != Space::Shared && space != Space::Generic)
    d.fail("the address is not .shared");
  if (Type type = d.takeType(); type != Type::B16)
    d.failType(type);
  const Operand &registers = d.operand(Store ? 1 : 0);
  if (registers.kind != Operand::Vector || static_cast<int>(registers.parts.size()) != tiles)
    d.fail("the vector does not have " + std::to_string(tiles) + " elements");
  d.useConstant(~0u, 32);
  Decoder::Address address{};
  if (Store)
    address = d.useAddress(0, space);
  for (const Operand &part : registers.parts)
    Store ? d.use(part, Type::B32) : d.def(part, 32);
  if (!Store)
    address = d.useAddress(1, space);
  // What is not in shared memory's window of the generic space lies beyond shared memory.
  if (address.space == Space::Generic && address.baseBits != 64)
    d.fail("a generic address has 64 bits");
  if (address.space == Space::Generic)
    address.offset -= static_cast<s64>(SharedWindow);
  else if (address.space != Space::Shared)
    d.fail("the address is not .shared");
  auto choose = [&]<class Base, bool Transposed>() -> Exec {
    if constexpr (Store)
      return tiles == 1   ? storeMatrix<Base, 1, Transposed>
             : tiles == 2 ? storeMatrix<Base, 2, Transposed>
                          : storeMatrix<Base, 4, Transposed>;
    else
      return tiles == 1   ? grouped<loadMatrix<Base, 1, Transposed>>
             : tiles == 2 ? grouped<loadMatrix<Base, 2, Transposed>>
                          : grouped<loadMatrix<Base, 4, Transposed>>;
  };
  Exec run = address.baseBits == 32 ? (transposed ? choose.template operator()<u32, true>()
                                                  : choose.template operator()<u32, false>())
                                    : (transposed ? choose.template operator()<u64, true>()
                                                  : choose.template operator()<u64, false>());
  d.emitList(run, address.offset, Inst::Sync);
}
void selectLdmatrix(Decoder &d) { selectMatrix<false>(d); }
void selectStmatrix(Decoder &d) { selectMatrix<true>(d); }

// --- mma --------------------------------------------------------------------

namespace {

struct Bf16Format {
  static constexpr int Bytes = 2;
  static Vf32 widen(const char *from) {
    Vu16 raw;
    std::memcpy(&raw, from, sizeof(raw));
    return fromBf16(raw);
  }
};
struct F16Format {
  static constexpr int Bytes = 2;
  static Vf32 widen(const char *from) {
    Vu16 raw;
    std::memcpy(&raw, from, sizeof(raw));
    return fromF16(raw);
  }
};
struct E4m3Format {
  static constexpr int Bytes = 1;
  static Vf32 widen(const char *from) {
    u64 raw;
    std::memcpy(&raw, from, sizeof(raw));
    Vu32 codes = to<u32>(bits<Vu8>(raw));
    // A byte is a NaN if its low seven bits are all ones, that is if one more carries into the
    // eighth.
    bool anyNan = ((raw & 0x7f7f7f7f7f7f7f7f) + 0x0101010101010101) & 0x8080808080808080;
    return anyNan ? e4m3ToF32(codes) : e4m3NumberToF32(codes);
  }
};
struct E5m2Format {
  static constexpr int Bytes = 1;
  static Vf32 widen(const char *from) {
    Vu8 raw;
    std::memcpy(&raw, from, sizeof(raw));
    return fromF16(e5m2ToF16(to<u16>(raw)));
  }
};

} // namespace

/// Eight rows of eight to eight columns.
static void transpose8(const Vf32 *rows, Vf32 *columns) {
  Vf32 a[8], b[8];
  for (int n = 0; n < 4; ++n) {
    a[2 * n] = __builtin_shufflevector(rows[2 * n], rows[2 * n + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[2 * n + 1] =
        __builtin_shufflevector(rows[2 * n], rows[2 * n + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int half = 0; half < 2; ++half)
    for (int n = 0; n < 2; ++n) {
      b[4 * half + 2 * n] =
          __builtin_shufflevector(a[4 * half + n], a[4 * half + n + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[4 * half + 2 * n + 1] =
          __builtin_shufflevector(a[4 * half + n], a[4 * half + n + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int n = 0; n < 4; ++n) {
    columns[n] = __builtin_shufflevector(b[n], b[n + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    columns[n + 4] = __builtin_shufflevector(b[n], b[n + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// C and D as f32 pairs or as f16 pairs in one register: rows 8 half ... + 7, even and odd columns.
template <bool HalfC>
static void loadPair(Warp &w, const u32 *registers, int half, int chunk, Vf32 &even, Vf32 &odd) {
  if constexpr (HalfC) {
    Vu32 both = load<u32>(w.file + registers[half], chunk);
    even = fromF16(to<u16>(both));
    odd = fromF16(to<u16>(both >> 16));
  } else {
    even = load<f32>(w.file + registers[2 * half], chunk);
    odd = load<f32>(w.file + registers[2 * half + 1], chunk);
  }
}
template <bool HalfC>
static void storePair(Warp &w, const u32 *registers, int half, int chunk, Vf32 even, Vf32 odd) {
  if constexpr (HalfC) {
    store<u32>(w.file + registers[half], chunk, to<u32>(toF16(even)) | to<u32>(toF16(odd)) << 16);
  } else {
    store<f32>(w.file + registers[2 * half], chunk, canonical(even));
    store<f32>(w.file + registers[2 * half + 1], chunk, canonical(odd));
  }
}

/// Operands: members (all), D, A, B, C. Blocks: of 16 bytes of k, 1 or 2; A has 2 registers for
/// each, B one. f16 sums are kept in f32 and rounded once.
template <class FormatA, class FormatB, int Blocks, bool HalfC>
static void multiply(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i, "mma"))
    return;
  constexpr int Half = 16 / FormatA::Bytes, K = Blocks * Half; // a tile has Half columns
  constexpr int Sums = HalfC ? 2 : 4;
  const u32 *d = i.ops + 1, *aRegisters = d + Sums, *bRegisters = aRegisters + 2 * Blocks,
            *c = bRegisters + Blocks;
  alignas(64) f32 a[16][K];
  for (int tile = 0; tile < 2 * Blocks; ++tile)
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < Half; column += 8)
        *reinterpret_cast<Vf32 *>(&a[row + 8 * (tile & 1)][Half * (tile >> 1) + column]) =
            FormatA::widen(w.file + aRegisters[tile] + 16 * row + column * FormatA::Bytes);
  Vf32 b[K]; // b[k]: all n
  for (int tile = 0; tile < Blocks; ++tile)
    for (int column = 0; column < Half; column += 8) {
      Vf32 rows[8];
      for (int n = 0; n < 8; ++n)
        rows[n] = FormatB::widen(w.file + bRegisters[tile] + 16 * n + column * FormatB::Bytes);
      transpose8(rows, b + Half * tile + column);
    }
  for (int half = 0; half < 2; ++half) {
    // Rows 8 half ... + 7 of C: two registers interleave to 8 x 8.
    Vf32 sum[8];
    for (int pair = 0; pair < 4; ++pair) {
      Vf32 even, odd;
      loadPair<HalfC>(w, c, half, pair, even, odd);
      sum[2 * pair] = __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
      sum[2 * pair + 1] = __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int k = 0; k < K; ++k)
      for (int row = 0; row < 8; ++row)
        sum[row] = fma(splat<f32>(a[8 * half + row][k]), b[k], sum[row]);
    for (int pair = 0; pair < 4; ++pair) {
      Vf32 first = sum[2 * pair], second = sum[2 * pair + 1];
      storePair<HalfC>(w, d, half, pair,
                       __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14),
                       __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15));
    }
  }
}

template <class FormatA, class FormatB> static MmaForm floats(int blocks, bool halfC) {
  return {blocks == 1 ? halfC ? grouped<multiply<FormatA, FormatB, 1, true>>
                              : grouped<multiply<FormatA, FormatB, 1, false>>
          : halfC     ? grouped<multiply<FormatA, FormatB, 2, true>>
                      : grouped<multiply<FormatA, FormatB, 2, false>>,
          halfC ? 2u : 4u, 2u * static_cast<unsigned>(blocks), static_cast<unsigned>(blocks),
          Type::F32};
}

/// 16 x 8 times k elements of `bytes` bytes, in one or two blocks; 0: another shape.
static int blocksOf(std::string_view shape, int bytes) {
  return shape == (bytes == 2 ? ".m16n8k8" : ".m16n8k16")    ? 1
         : shape == (bytes == 2 ? ".m16n8k16" : ".m16n8k32") ? 2
                                                             : 0;
}

static MmaForm find(std::string_view shape, std::string_view a, std::string_view b, bool halfC) {
  if (a == ".bf16" && b == ".bf16" && !halfC && blocksOf(shape, 2))
    return floats<Bf16Format, Bf16Format>(blocksOf(shape, 2), false);
  if (a == ".f16" && b == ".f16" && blocksOf(shape, 2))
    return floats<F16Format, F16Format>(blocksOf(shape, 2), halfC);
  int blocks = blocksOf(shape, 1);
  if (blocks && a == ".e4m3" && b == ".e4m3")
    return floats<E4m3Format, E4m3Format>(blocks, halfC);
  if (blocks && a == ".e4m3" && b == ".e5m2")
    return floats<E4m3Format, E5m2Format>(blocks, halfC);
  if (blocks && a == ".e5m2" && b == ".e4m3")
    return floats<E5m2Format, E4m3Format>(blocks, halfC);
  if (blocks && a == ".e5m2" && b == ".e5m2")
    return floats<E5m2Format, E5m2Format>(blocks, halfC);
  return {};
}

/// mma.sync.aligned.shape.row.col{.kind::f8f6f4}{.satfinite}.D.A.B.C d, a, b, c.
void selectMma(Decoder &d) {
  for (const char *sparse : {".sp", ".sp::ordered_metadata"})
    if (d.take(sparse))
      d.fail("sparse matrices are not supported");
  if (!d.take(".sync") || !d.take(".aligned"))
    d.fail("only .sync.aligned is supported");
  if (d.operandCount() > 4)
    d.fail("sparse matrices and scales of blocks are not supported");
  bool kind = d.take(".kind::f8f6f4"), saturate = d.take(".satfinite");
  std::vector<std::string_view> rest = d.takeAll(); // shape, .row, .col, D, A, B, C
  if (rest.size() < 3 || rest[1] != ".row" || rest[2] != ".col")
    d.fail("only .row.col is supported");
  rest.erase(rest.begin() + 1, rest.begin() + 3);
  if (rest.size() == 5 && rest[1] == ".f64" && !kind && !saturate)
    return selectDoubleMma(d, rest);
  MmaForm form;
  if (rest.size() == 7 && rest[1] == ".s32" && rest[2] == ".b1" && rest[3] == ".b1" &&
      rest[4] == ".s32" && (rest[5] == ".and" || rest[5] == ".xor") && rest[6] == ".popc" &&
      !kind && !saturate)
    form = findBits(rest[0], rest[5] == ".xor");
  else if (rest.size() == 5 && rest[1] == rest[4]) {
    if (rest[1] == ".f32" && rest[2] == ".tf32" && rest[3] == ".tf32" && !kind && !saturate)
      form = findTf32(rest[0]);
    else if (rest[1] == ".s32" && !kind)
      form = findIntegers(rest[0], rest[2], rest[3], saturate);
    else if ((rest[1] == ".f32" || rest[1] == ".f16") && !saturate &&
             (!kind || rest[0] == ".m16n8k32"))
      form = find(rest[0], rest[2], rest[3], rest[1] == ".f16");
  }
  if (!form.run)
    d.fail("this shape and these types are not supported");
  const unsigned sizes[] = {form.sums, form.a, form.b, form.sums};
  for (unsigned n = 0; n < 4; ++n)
    if (d.operand(n).kind != Operand::Vector || d.elements(n) != sizes[n])
      d.fail("operand " + std::to_string(n + 1) + " does not have " + std::to_string(sizes[n]) +
             " elements");
  d.useConstant(~0u, 32);
  for (const Operand &part : d.operand(0).parts)
    d.def(part, 32);
  for (unsigned n = 1; n < 4; ++n)
    for (const Operand &part : d.operand(n).parts)
      d.use(part, n == 3 ? form.sumType : Type::B32);
  d.emitList(form.run, 0, Inst::Sync);
}

} // namespace planemu::PLANEMU_ISA
