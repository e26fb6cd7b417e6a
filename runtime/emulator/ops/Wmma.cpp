//===- Wmma.cpp - wmma.load, wmma.store, wmma.mma -------------------------===//
//
// PTX ISA, "Warp-level Matrix Load/Store/Multiply Instruction: wmma". Which lane holds which element
// of a fragment is left open there, so that programs must not know. Here a fragment is a matrix, row
// by row: lane l holds the elements l * n ... l * n + n - 1, where n is what one lane holds. Some
// fragments have more places than elements (f16: 16 in a lane whatever the shape); then the matrix
// is repeated. mma reads the first copy, so what a program does to all elements of a fragment alike
// has the effect it wants.
//
// As with mma, products are accumulated one after the other in the order of k: in f32 by fused
// multiply-adds for the 16-bit formats and tf32, in f64, in integers. A result in f16 is rounded
// once.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"
#include "runtime/emulator/ops/Mma.h"

#include <algorithm>
#include <vector>

namespace planemu::PLANEMU_ISA {

namespace {

enum class Element : u8 { F16, Bf16, Tf32, S8, U8, F64, F32, S32 };

struct ElementRow {
  std::string_view name;
  Element element;
  u8 bytes;
};
constexpr ElementRow Elements[] = {
    {".f16", Element::F16, 2}, {".bf16", Element::Bf16, 2}, {".tf32", Element::Tf32, 4},
    {".s8", Element::S8, 1},   {".u8", Element::U8, 1},     {".f64", Element::F64, 8},
    {".f32", Element::F32, 4}, {".s32", Element::S32, 4},
};

struct Shape {
  std::string_view name;
  u8 m, n, k;
};
constexpr Shape Shapes[] = {{".m16n16k16", 16, 16, 16},
                            {".m8n32k16", 8, 32, 16},
                            {".m32n8k16", 32, 8, 16},
                            {".m16n16k8", 16, 16, 8},
                            {".m8n8k4", 8, 8, 4}};

/// A matrix spread over the lanes; travels to the instruction as a constant.
struct Fragment {
  u8 rows, columns, perLane;
  bool rowMajor; // in memory

  unsigned elements() const { return unsigned(rows) * columns; }
};
static_assert(sizeof(Fragment) == 4);

struct Product {
  Element in, c, d;
  u8 shape; // of Shapes
};
static_assert(sizeof(Product) == 4);

} // namespace

/// True if the formats of A and B go with the shape.
static bool allowed(Element in, const Shape &shape) {
  if (in == Element::Tf32)
    return shape.k == 8;
  if (in == Element::F64)
    return shape.k == 4;
  return in < Element::F64 && shape.k == 16;
}

static Fragment fragmentOf(char role, Element element, const Shape &shape, bool rowMajor) {
  Fragment f{role == 'b' ? shape.k : shape.m, role == 'a' ? shape.k : shape.n, 0, rowMajor};
  bool factor = role == 'a' || role == 'b';
  f.perLane = factor && element == Element::F16 ? 16 : static_cast<u8>(f.elements() / 32);
  return f;
}

/// Where the lane keeps its element `j`: elements narrower than a register share it.
template <int Bytes>
static char *elementAt(Warp &w, const u32 *registers, unsigned lane, unsigned j) {
  constexpr unsigned Register = Bytes < 4 ? 4 : Bytes, PerRegister = Register / Bytes;
  return w.file + registers[j / PerRegister] + lane * Register + j % PerRegister * Bytes;
}

// --- Load and store ---------------------------------------------------------

/// The value all lanes must agree on.
template <class T>
static bool uniform(Warp &w, const Inst &i, u32 slot, const char *what, T &value) {
  const T *values = at<T>(w, slot);
  value = values[0];
  for (unsigned lane = 1; lane < 32; ++lane)
    if (values[lane] != value) {
      reportFault(w, i.line, FaultKind::BadOperand, lane, values[lane], 0, what);
      return false;
    }
  return true;
}

/// Operands: members (all), Fragment, address, stride, registers.
template <Where Space, class Base, int Bytes, bool Store>
static void moveFragment(Warp &w, const Inst &i) {
  const char *what = Store ? "wmma.store" : "wmma.load";
  const u32 *ops = operandsOf(i);
  Base base;
  u32 stride;
  if (!wholeWarp(w, i, what) || !uniform(w, i, ops[2], what, base) ||
      !uniform(w, i, ops[3], what, stride))
    return;
  Fragment f = bits<Fragment>(*at<u32>(w, ops[1]));
  for (unsigned j = 0; j < f.perLane; ++j) {
    Rows rows;
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned element = (lane * f.perLane + j) % f.elements();
      unsigned row = element / f.columns, column = element % f.columns;
      u64 offset = f.rowMajor ? u64(row) * stride + column : u64(column) * stride + row;
      rows.host.of[lane] = static_cast<Base>(base + static_cast<u64>(i.imm) + offset * Bytes);
    }
    resolve<Space, Bytes>(w, i, ~0u, what, rows);
    if (w.cta->failed)
      return;
    observe(w, i, Store ? AccessKind::Store : AccessKind::Load, ~0u, Bytes, rows);
    for (unsigned lane = 0; lane < 32; ++lane) {
      char *host =
          rows.whole ? rows.whole + lane * Bytes : reinterpret_cast<char *>(rows.host.of[lane]);
      char *here = elementAt<Bytes>(w, ops + 4, lane, j);
      std::memcpy(Store ? host : here, Store ? here : host, Bytes);
    }
  }
}

template <int Bytes, bool Store> static Exec chooseMove(Where space, unsigned baseBits) {
  if (space == Where::Shared)
    return baseBits == 32 ? moveFragment<Where::Shared, u32, Bytes, Store>
                          : moveFragment<Where::Shared, u64, Bytes, Store>;
  return space == Where::Global && baseBits == 64 ? moveFragment<Where::Global, u64, Bytes, Store>
                                                  : nullptr;
}

template <bool Store> static Exec chooseMove(unsigned bytes, Where space, unsigned baseBits) {
  return bytes == 1   ? chooseMove<1, Store>(space, baseBits)
         : bytes == 2 ? chooseMove<2, Store>(space, baseBits)
         : bytes == 4 ? chooseMove<4, Store>(space, baseBits)
                      : chooseMove<8, Store>(space, baseBits);
}

// --- Multiply ---------------------------------------------------------------

/// The matrix as T, row by row; Read makes one of the bytes of an element.
template <class T, int Bytes, class Read>
static void unpack(Warp &w, const u32 *registers, const Fragment &f, T *matrix, Read read) {
  for (unsigned element = 0; element < f.elements(); ++element)
    matrix[element] =
        read(elementAt<Bytes>(w, registers, element / f.perLane, element % f.perLane));
}
template <int Bytes, class T, class Write>
static void pack(Warp &w, const u32 *registers, const Fragment &f, const T *matrix, Write write) {
  for (unsigned element = 0; element < f.elements(); ++element)
    write(elementAt<Bytes>(w, registers, element / f.perLane, element % f.perLane),
          matrix[element]);
}

template <class T> static T loadAs(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T> static void storeAs(char *to, T value) { std::memcpy(to, &value, sizeof(T)); }

static f32 f16At(const char *from) { return fromF16(splat(loadAs<u16>(from)))[0]; }
static f32 bf16At(const char *from) { return bits<f32>(u32(loadAs<u16>(from)) << 16); }
/// The thirteen bits that tf32 does not have are not looked at.
static f32 tf32At(const char *from) { return bits<f32>(loadAs<u32>(from) & 0xffffe000); }

namespace {
/// The largest matrices of any shape.
template <class T> struct Matrices {
  alignas(64) T a[512], b[512], c[256];
};
} // namespace

/// c += a * b by fused multiply-adds, eight columns at a time.
template <class T> static void multiply(const Shape &shape, Matrices<T> &m) {
  for (unsigned row = 0; row < shape.m; ++row)
    for (unsigned column = 0; column < shape.n; column += Chunk) {
      V<T> *to = reinterpret_cast<V<T> *>(&m.c[row * shape.n + column]), sum = *to;
      for (unsigned depth = 0; depth < shape.k; ++depth)
        sum = fma(splat<T>(m.a[row * shape.k + depth]),
                  *reinterpret_cast<const V<T> *>(&m.b[depth * shape.n + column]), sum);
      *to = canonical(sum);
    }
}

namespace {
/// Registers and shapes of the operands of one wmma.mma.
struct Operands {
  Product product;
  const Shape &shape;
  Fragment a, b, c;
  const u32 *dRegisters, *aRegisters, *bRegisters, *cRegisters;
};
} // namespace

static unsigned registersOf(const Fragment &f, unsigned bytes) {
  return bytes == 8 ? f.perLane : f.perLane * bytes / 4;
}
static unsigned bytesOf(Element element) {
  for (const ElementRow &row : Elements)
    if (row.element == element)
      return row.bytes;
  return 0;
}

/// Operands: members (all), Product, D, A, B, C.
static Operands operandsOf(Warp &w, const u32 *ops) {
  Product product = bits<Product>(*at<u32>(w, ops[1]));
  const Shape &shape = Shapes[product.shape];
  Operands o{product,
             shape,
             fragmentOf('a', product.in, shape, true),
             fragmentOf('b', product.in, shape, true),
             fragmentOf('c', product.c, shape, true),
             ops + 2,
             nullptr,
             nullptr,
             nullptr};
  o.aRegisters = o.dRegisters + registersOf(o.c, bytesOf(product.d));
  o.bRegisters = o.aRegisters + registersOf(o.a, bytesOf(product.in));
  o.cRegisters = o.bRegisters + registersOf(o.b, bytesOf(product.in));
  return o;
}

static void multiplyFloats(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i, "wmma.mma"))
    return;
  Operands o = operandsOf(w, planemu::operandsOf(i));
  Matrices<f32> m;
  auto factors = [&]<int Bytes>(f32 (*read)(const char *)) {
    unpack<f32, Bytes>(w, o.aRegisters, o.a, m.a, read);
    unpack<f32, Bytes>(w, o.bRegisters, o.b, m.b, read);
  };
  if (o.product.in == Element::Tf32)
    factors.template operator()<4>(tf32At);
  else
    factors.template operator()<2>(o.product.in == Element::F16 ? f16At : bf16At);
  if (o.product.c == Element::F16)
    unpack<f32, 2>(w, o.cRegisters, o.c, m.c, f16At);
  else
    unpack<f32, 4>(w, o.cRegisters, o.c, m.c, loadAs<f32>);
  multiply(o.shape, m);
  if (o.product.d == Element::F16)
    pack<2>(w, o.dRegisters, o.c, m.c,
            [](char *to, f32 value) { storeAs<u16>(to, toF16(splat(value))[0]); });
  else
    pack<4>(w, o.dRegisters, o.c, m.c, storeAs<f32>);
}

static void multiplyDoubles(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i, "wmma.mma"))
    return;
  Operands o = operandsOf(w, planemu::operandsOf(i));
  Matrices<f64> m;
  unpack<f64, 8>(w, o.aRegisters, o.a, m.a, loadAs<f64>);
  unpack<f64, 8>(w, o.bRegisters, o.b, m.b, loadAs<f64>);
  unpack<f64, 8>(w, o.cRegisters, o.c, m.c, loadAs<f64>);
  multiply(o.shape, m);
  pack<8>(w, o.dRegisters, o.c, m.c, storeAs<f64>);
}

/// In: s8 or u8. Saturate: the sum stops at the ends of s32 instead of wrapping.
template <class In, bool Saturate> static void multiplyIntegers(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i, "wmma.mma"))
    return;
  Operands o = operandsOf(w, planemu::operandsOf(i));
  Matrices<s32> m;
  unpack<s32, 1>(w, o.aRegisters, o.a, m.a, loadAs<In>);
  unpack<s32, 1>(w, o.bRegisters, o.b, m.b, loadAs<In>);
  unpack<s32, 4>(w, o.cRegisters, o.c, m.c, loadAs<s32>);
  for (unsigned row = 0; row < o.shape.m; ++row)
    for (unsigned column = 0; column < o.shape.n; ++column) {
      s32 &to = m.c[row * o.shape.n + column];
      s64 sum = to;
      for (unsigned depth = 0; depth < o.shape.k; ++depth)
        sum += m.a[row * o.shape.k + depth] * m.b[depth * o.shape.n + column];
      to = static_cast<s32>(Saturate ? std::clamp<s64>(sum, INT32_MIN, INT32_MAX) : sum);
    }
  pack<4>(w, o.dRegisters, o.c, m.c, storeAs<s32>);
}

// --- Select -----------------------------------------------------------------

static const ElementRow &takeElement(Decoder &d) {
  for (const ElementRow &row : Elements)
    if (d.take(row.name))
      return row;
  d.fail("no element type, or one that is not supported");
}

static u8 takeShape(Decoder &d) {
  for (u8 n = 0; n < std::size(Shapes); ++n)
    if (d.take(Shapes[n].name))
      return n;
  d.fail("no shape, or one that is not supported");
}

static bool takeLayout(Decoder &d) {
  bool row = d.take(".row");
  if (!row && !d.take(".col"))
    d.fail("neither .row nor .col");
  return row;
}

/// The registers of a fragment, appended.
static void useFragment(Decoder &d, unsigned n, const Fragment &f, const ElementRow &element,
                        bool defines) {
  unsigned count = registersOf(f, element.bytes);
  const Operand &op = d.operand(n);
  if (op.kind != Operand::Vector || op.parts.size() != count)
    d.fail("operand " + std::to_string(n + 1) + " does not have " + std::to_string(count) +
           " elements");
  for (const Operand &part : op.parts)
    if (defines)
      d.def(part, element.bytes == 8 ? 64 : 32);
    else
      d.use(part, element.bytes == 8 ? Type::F64 : Type::B32);
}

static void selectMove(Decoder &d, bool store) {
  char role = store && d.take(".d") ? 'c' : d.take(".a") ? 'a' : d.take(".b") ? 'b' : 'c';
  if (role == 'c' && !store && !d.take(".c"))
    d.fail("no matrix");
  bool rowMajor = takeLayout(d);
  const Shape &shape = Shapes[takeShape(d)];
  Space space = takeSpace(d);
  const ElementRow &element = takeElement(d);
  bool fits = role != 'c'                       ? allowed(element.element, shape)
              : element.element == Element::F64 ? shape.k == 4
              : element.element == Element::F32 ? shape.k != 4
              : element.element == Element::F16 || element.element == Element::S32 ? shape.k == 16
                                                                                   : false;
  if (!fits)
    d.fail("this matrix does not come in this shape and type");
  Fragment f = fragmentOf(role, element.element, shape, rowMajor);
  d.useConstant(~0u, 32);
  d.useConstant(bits<u32>(f), 32);
  Decoder::Address address = d.useAddress(store ? 0 : 1, space);
  if (d.operandCount() == 3)
    d.use(2, Type::U32);
  else
    d.useConstant(rowMajor ? f.columns : f.rows, 32);
  useFragment(d, store ? 1 : 0, f, element, !store);
  Where where = whereOf(d, address.space);
  Exec run = store ? chooseMove<true>(element.bytes, where, address.baseBits)
                   : chooseMove<false>(element.bytes, where, address.baseBits);
  if (!run)
    d.fail("this address is not supported");
  d.emitList(run, address.offset, Inst::Sync);
  d.needsRegionCache();
}

static void selectMultiply(Decoder &d) {
  takeLayout(d);
  takeLayout(d);
  Product product{};
  product.shape = takeShape(d);
  const Shape &shape = Shapes[product.shape];
  // D and C in f16 or f32 without a type of A and B: those are f16.
  bool saturate = d.take(".satfinite");
  d.take(".rn");
  std::vector<const ElementRow *> types;
  for (std::string_view modifier : d.takeAll()) {
    auto row = std::ranges::find(Elements, modifier, &ElementRow::name);
    if (row == std::end(Elements))
      d.fail("modifier '" + std::string(modifier) + "' is not supported");
    types.push_back(row);
  }
  std::size_t count = types.size();
  if (count != 2 && count != 4)
    d.fail("neither two nor four types");
  const ElementRow &to = *types[0], &from = *types[count - 1],
                   &in = count == 4 ? *types[1] : Elements[0];
  if (count == 4 && types[1] != types[2])
    d.fail("A and B have different types");
  bool floats = in.element <= Element::Tf32;
  auto sums = [&](Element e) {
    return floats ? e == Element::F32 || (count == 2 && e == Element::F16)
                  : e == (in.element == Element::F64 ? Element::F64 : Element::S32);
  };
  if (!allowed(in.element, shape) || !sums(to.element) || !sums(from.element) ||
      (saturate && in.element != Element::S8 && in.element != Element::U8))
    d.fail("this shape and these types are not supported");
  product.in = in.element;
  product.c = from.element;
  product.d = to.element;
  d.useConstant(~0u, 32);
  d.useConstant(bits<u32>(product), 32);
  useFragment(d, 0, fragmentOf('c', to.element, shape, true), to, true);
  useFragment(d, 1, fragmentOf('a', in.element, shape, true), in, false);
  useFragment(d, 2, fragmentOf('b', in.element, shape, true), in, false);
  useFragment(d, 3, fragmentOf('c', from.element, shape, true), from, false);
  Exec run = floats                       ? multiplyFloats
             : in.element == Element::F64 ? multiplyDoubles
             : in.element == Element::S8
                 ? (saturate ? multiplyIntegers<s8, true> : multiplyIntegers<s8, false>)
                 : (saturate ? multiplyIntegers<u8, true> : multiplyIntegers<u8, false>);
  d.emitList(run, 0, Inst::Sync);
}

/// wmma.load.a|b|c, wmma.store.d, wmma.mma, each .sync.aligned.
void selectWmma(Decoder &d) {
  bool load = d.take(".load"), store = !load && d.take(".store");
  if (!load && !store && !d.take(".mma"))
    d.fail("none of .load .store .mma");
  if (!d.take(".sync") || !d.take(".aligned"))
    d.fail("only .sync.aligned is supported");
  if (load || store)
    selectMove(d, store);
  else
    selectMultiply(d);
}

} // namespace planemu::PLANEMU_ISA
