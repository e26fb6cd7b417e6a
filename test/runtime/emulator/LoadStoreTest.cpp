//===- LoadStoreTest.cpp - planemu-loadstore-test: ld and st, every form ---===//
//
// A kernel for each space, type, number of elements and width of registers, for ld and for st. Each
// CTA runs it with addresses of another shape (the emulator has a path of its own for several) and
// another mask, and is compared with what the host makes of the same bytes. Registers of lanes that do not load keep
// what they held; bytes that nobody stores keep what they were.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/Emulator.h"

#include <cstring>
#include <vector>

using namespace emutest;

namespace {
constexpr unsigned Bytes = 2304, Lanes = 32; // of one memory; threads of a CTA

struct Space {
  const char *name, *modifier;
  bool narrow;    // 32-bit addresses
  const char *to; // from an address of the space to a generic one, if addresses are generic
  bool writable;
};
constexpr Space Spaces[] = {
    {"global", ".global", false, "", true},
    {"generic_global", "", false, "cvta.global.u64", true},
    {"shared32", ".shared", true, "", true},
    {"shared64", ".shared", false, "", true},
    {"generic_shared", "", false, "cvta.shared.u64", true},
    {"local", ".local", false, "", true},
    {"generic_local", "", false, "cvta.local.u64", true},
    {"const", ".const", false, "", false},
    {"generic_const", "", false, "cvta.const.u64", false},
};

struct Type {
  const char *name;
  unsigned bytes;
  bool isSigned, isFloat;
};
constexpr Type Types[] = {
    {"b8", 1, false, false},  {"u8", 1, false, false},  {"s8", 1, true, false},
    {"b16", 2, false, false}, {"u16", 2, false, false}, {"s16", 2, true, false},
    {"b32", 4, false, false}, {"u32", 4, false, false}, {"s32", 4, true, false},
    {"f32", 4, false, true},  {"b64", 8, false, false}, {"u64", 8, false, false},
    {"s64", 8, true, false},  {"f64", 8, false, true},
};

struct Form {
  const Space *space;
  const Type *type;
  unsigned count, registerBytes;
  bool isStore;
  std::string name() const {
    return std::string(isStore ? "st_" : "ld_") + space->name + "_v" + std::to_string(count) + "_" +
           type->name + "_" + std::to_string(8 * registerBytes);
  }
  unsigned rowBytes() const { return count * type->bytes; }
  /// Local memory is slow to fill: only what the shapes reach.
  unsigned memoryBytes() const { return isIn("local") ? (72 * rowBytes() + 15) / 16 * 16 : Bytes; }
  unsigned resultBytes() const {
    return !isStore ? Lanes * 64 : isIn("local") ? Lanes * memoryBytes() : Bytes;
  }
  bool isIn(const char *what) const { return std::strstr(space->name, what) != nullptr; }
};

/// Where lane n accesses, in rows. All stay within memoryBytes().
struct Shape {
  const char *name;
  int first, step;
};
constexpr Shape Shapes[] = {{"one row", 5, 0},     {"side by side", 3, 1}, {"every second", 1, 2},
                            {"backwards", 40, -1}, {"irregular", 0, 0},    {"all but one", 7, 1},
                            {"far end", 0, 0}};
constexpr std::uint32_t Masks[] = {0xffffffff, 0x0ff0f00f, 0x80000000, 0};
constexpr unsigned Ctas = std::size(Shapes) * std::size(Masks);
} // namespace

static std::uint8_t pattern(unsigned at) {
  return static_cast<std::uint8_t>(at * 37 + at / 256 * 11 + 129);
}
static std::uint64_t preset(unsigned element) {
  return 0x9182736455463728u + element * 0x0101010101010101u;
}

static unsigned offsetOf(unsigned shape, unsigned lane, const Form &form) {
  unsigned rowBytes = form.rowBytes();
  const Shape &s = Shapes[shape];
  if (shape == 4)
    return (lane * 29 + 3) % 64 * rowBytes;
  if (shape == 5 && lane == 17)
    return 70 * rowBytes;
  if (shape == 6) // the last lane ends where memory does
    return form.memoryBytes() - (Lanes - lane) * rowBytes;
  return static_cast<unsigned>(s.first + s.step * static_cast<int>(lane)) * rowBytes;
}

// --- PTX --------------------------------------------------------------------

static std::string registers(const Form &form) {
  const char *kind = form.registerBytes == 2 ? "%h" : form.registerBytes == 4 ? "%w" : "%q";
  std::string list;
  for (unsigned n = 0; n < form.count; ++n)
    list += (n ? ", " : "") + std::string(kind) + std::to_string(n);
  return form.count == 1 ? list : "{" + list + "}";
}

static std::string instruction(const Form &form) {
  std::string address = form.space->narrow ? "[%at32+512]" : "[%at+512]";
  std::string text = std::string(form.isStore ? "st" : "ld") + form.space->modifier;
  if (form.count > 1)
    text += ".v" + std::to_string(form.count);
  text += std::string(".") + form.type->name + " ";
  return "  @%p " + text +
         (form.isStore ? address + ", " + registers(form) : registers(form) + ", " + address) +
         ";\n";
}

/// Copies all of the memory under test from global memory or to it. Of shared memory each lane takes
/// a part, of local memory every lane has its own.
static std::string copyAll(const Form &form, bool in, const char *global) {
  bool isLocal = form.isIn("local");
  std::string label = in ? "FILL" : "DRAIN", space = isLocal ? ".local" : ".shared";
  std::string outer = "global.v4.b32 ", ours = space.substr(1) + ".v4.b32 ",
              four = "{%c0, %c1, %c2, %c3}";
  return "  mov.u32 %i, " + std::string(isLocal ? "0" : "%lane16") + ";\n" + label + ":\n" +
         "  cvt.u64.u32 %i64, %i;\n  add.u64 %glob, " + global + ", %i64;\n" +
         "  add.u64 %own, %memory, %i64;\n  ld." + (in ? outer : ours) + four + ", [" +
         (in ? "%glob" : "%own") + "];\n  st." + (in ? ours : outer) + "[" +
         (in ? "%own" : "%glob") + "], " + four + ";\n  add.u32 %i, %i, " +
         (isLocal ? "16" : "512") + ";\n  setp.lt.u32 %more, %i, " +
         std::to_string(form.memoryBytes()) + ";\n  @%more bra " + label + ";\n";
}

/// Parameters: the bytes of memory; where results go, resultBytes() a CTA; the offsets of lanes, a row
/// for each CTA; masks of CTAs; 64 bytes a lane that st stores.
static std::string kernel(const Form &form) {
  bool isLocal = form.isIn("local"), isShared = form.isIn("shared"), own = isLocal || isShared;
  std::string text =
      ".visible .entry " + form.name() +
      "(.param .u64 in, .param .u64 out, .param .u64 offsets, .param .u64 masks, "
      ".param .u64 values) {\n"
      "  .reg .pred %p, %more; .reg .b16 %h<8>; .reg .b32 %w<8>, %lane, %lane16, %i, "
      "%c<4>, %bits, %at32, %cta;\n"
      "  .reg .b64 %q<8>, %in, %out, %offsets, %masks, %values, %i64, %glob, %own, "
      "%memory, %at, %row, %wide;\n";
  if (isShared)
    text += "  .shared .align 32 .b8 memory[" + std::to_string(Bytes) + "];\n";
  if (isLocal)
    text += "  .local .align 32 .b8 memory[" + std::to_string(form.memoryBytes()) + "];\n";
  text += "  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u64 %offsets, [offsets];\n"
          "  ld.param.u64 %masks, [masks]; ld.param.u64 %values, [values];\n"
          "  mov.u32 %lane, %tid.x; shl.b32 %lane16, %lane, 4; mov.u32 %cta, %ctaid.x;\n"
          "  mad.wide.u32 %out, %cta, " +
          std::to_string(form.resultBytes()) + ", %out;\n";
  text += own                  ? "  mov.u64 %memory, memory;\n"
          : form.isIn("const") ? "  mov.u64 %memory, constants;\n"
          : form.isStore       ? "  mov.u64 %memory, %out;\n"
                               : "  mov.u64 %memory, %in;\n";
  if (own)
    text += copyAll(form, true, "%in");
  text += "  bar.sync 0;\n  mad.lo.u32 %i, %cta, 32, %lane;\n"
          "  mad.wide.u32 %glob, %i, 4, %offsets;\n  ld.global.u32 %i, [%glob];\n"
          "  cvt.u64.u32 %at, %i;\n  add.u64 %at, %at, %memory;\n";
  if (*form.space->to)
    text += std::string("  ") + form.space->to + " %at, %at;\n";
  // The register plus 512 is the address, so that small ones wrap.
  text +=
      "  sub.u64 %at, %at, 512;\n  cvt.u32.u64 %at32, %at;\n  mad.wide.u32 %glob, %cta, 4, "
      "%masks;\n  ld.global.u32 %bits, [%glob];\n"
      "  shr.u32 %bits, %bits, %lane;\n  and.b32 %bits, %bits, 1;\n  setp.ne.u32 %p, %bits, 0;\n"
      "  mad.wide.u32 %row, %lane, 64, " +
      std::string(form.isStore ? "%values" : "%out") + ";\n";
  const char *kind = form.registerBytes == 2 ? "%h" : form.registerBytes == 4 ? "%w" : "%q";
  std::string bits = std::to_string(8 * form.registerBytes);
  for (unsigned n = 0; n < form.count; ++n) {
    std::string reg = kind + std::to_string(n), at = "[%row+" + std::to_string(8 * n) + "]";
    text += form.isStore
                ? "  ld.global.b" + bits + " " + reg + ", " + at + ";\n"
                : "  mov.b" + bits + " " + reg + ", " +
                      std::to_string(preset(n) & (~0ull >> (64 - 8 * form.registerBytes))) +
                      (form.registerBytes == 8 ? "U;\n" : ";\n");
  }
  text += instruction(form);
  if (!form.isStore) {
    for (unsigned n = 0; n < form.count; ++n) {
      std::string reg = kind + std::to_string(n), at = "[%row+" + std::to_string(8 * n) + "]";
      if (form.registerBytes != 8)
        text += "  cvt.u64.u" + bits + " %wide, " + reg + ";\n";
      else
        text += "  mov.b64 %wide, " + reg + ";\n";
      text += "  st.global.b64 " + at + ", %wide;\n";
    }
  } else if (own) {
    text += "  bar.sync 0;\n";
    if (isLocal)
      text += "  mad.wide.u32 %out, %lane, " + std::to_string(form.memoryBytes()) + ", %out;\n";
    text += copyAll(form, false, "%out");
  }
  return text + "  ret;\n}\n";
}

static std::vector<Form> allForms() {
  std::vector<Form> forms;
  for (const Space &space : Spaces)
    for (const Type &type : Types)
      for (unsigned count : {1u, 2u, 4u, 8u})
        for (unsigned registerBytes : {2u, 4u, 8u})
          for (bool isStore : {false, true}) {
            Form form{&space, &type, count, registerBytes, isStore};
            bool wide = form.rowBytes() > 16;
            if (registerBytes < type.bytes || (isStore && !space.writable) ||
                (type.isFloat && registerBytes != type.bytes))
              continue;
            if (wide && (form.rowBytes() > 32 || !form.isIn("global")))
              continue;
            if (count == 8 && type.bytes != 4)
              continue;
            // Local memory is slow to look at, and unsigned types are as .b here.
            if (form.isIn("local") && type.name[0] == 'u')
              continue;
            // Of vectors the registers are as wide as the elements, or the narrowest there are.
            if (count > 1 && registerBytes != std::max(2u, type.bytes))
              continue;
            forms.push_back(form);
          }
  return forms;
}

// --- Comparison -------------------------------------------------------------

static std::uint64_t extended(const std::uint8_t *from, const Form &form) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, form.type->bytes);
  unsigned unused = 64 - 8 * form.type->bytes;
  if (form.type->isSigned)
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
  return value & (~0ull >> (64 - 8 * form.registerBytes));
}

namespace {
struct Contents {
  const std::vector<std::uint8_t> &memory, &values;
  CUdeviceptr memoryAt, valuesAt;
};
} // namespace

/// What one CTA makes of what was there before.
static void expect(std::uint8_t *expected, const Form &form, const std::uint32_t *offsets,
                   std::uint32_t mask, const Contents &contents) {
  for (unsigned lane = 0; lane < Lanes; ++lane) {
    bool active = mask >> lane & 1;
    for (unsigned n = 0; n < form.count; ++n) {
      unsigned at = offsets[lane] + n * form.type->bytes;
      if (form.isStore) {
        if (active)
          std::memcpy(expected + (form.isIn("local") ? lane * form.memoryBytes() : 0) + at,
                      &contents.values[lane * 64 + n * 8], form.type->bytes);
        continue;
      }
      std::uint64_t value = active ? extended(&contents.memory[at], form)
                                   : preset(n) & (~0ull >> (64 - 8 * form.registerBytes));
      std::memcpy(expected + lane * 64 + n * 8, &value, 8);
    }
  }
}

/// Runs all shapes and masks; the number of CTAs that did something else.
static unsigned compare(CUmodule module, const Form &form, const Contents &contents) {
  std::vector<std::uint32_t> offsets, masks;
  for (unsigned shape = 0; shape < std::size(Shapes); ++shape)
    for (std::uint32_t mask : Masks) {
      masks.push_back(mask);
      for (unsigned lane = 0; lane < Lanes; ++lane)
        offsets.push_back(offsetOf(shape, lane, form));
    }
  std::vector<std::uint8_t> expected(Ctas * form.resultBytes(), 0xee);
  for (unsigned n = 0; form.isStore && n < expected.size(); ++n)
    expected[n] = contents.memory[n % form.resultBytes() % form.memoryBytes()];
  CUdeviceptr out = upload(expected), offsetsAt = upload(offsets), masksAt = upload(masks);
  CUfunction function;
  CU(cuModuleGetFunction, &function, module, form.name().c_str());
  check(launch(function, Ctas, Lanes,
               {contents.memoryAt, out, offsetsAt, masksAt, contents.valuesAt}),
        form.name().c_str());
  std::vector<std::uint8_t> got = download<std::uint8_t>(out, expected.size());
  for (CUdeviceptr at : {out, offsetsAt, masksAt})
    CU(cuMemFree_v2, at);
  unsigned wrong = 0;
  for (unsigned cta = 0; cta < Ctas; ++cta) {
    std::uint8_t *want = &expected[cta * form.resultBytes()],
                 *have = &got[cta * form.resultBytes()];
    expect(want, form, &offsets[cta * Lanes], masks[cta], contents);
    for (unsigned n = 0; n < form.resultBytes(); ++n)
      if (have[n] != want[n]) {
        std::printf("%s, %s, mask 0x%08x: byte %u is 0x%02x, not 0x%02x\n", form.name().c_str(),
                    Shapes[cta / std::size(Masks)].name, masks[cta], n, have[n], want[n]);
        ++wrong;
        break;
      }
  }
  return wrong;
}

int main() {
  std::vector<Form> forms = allForms();
  std::string ptx =
      ".version 9.0\n.target sm_121a\n.address_size 64\n.const .align 32 .b8 constants[" +
      std::to_string(Bytes) + "] = {";
  std::vector<std::uint8_t> memory(Bytes), values(Lanes * 64);
  for (unsigned n = 0; n < Bytes; ++n) {
    memory[n] = pattern(n);
    ptx += (n ? "," : "") + std::to_string(memory[n]);
  }
  for (unsigned n = 0; n < values.size(); ++n)
    values[n] = static_cast<std::uint8_t>(n * 73 + n / 64 * 5 + 1);
  ptx += "};\n";
  for (const Form &form : forms)
    ptx += kernel(form);
  open();
  CUmodule module;
  CU(cuModuleLoadDataEx, &module, ptx.c_str(), 0, nullptr, nullptr);
  CUdeviceptr in = upload(memory), stored = upload(values);
  unsigned wrong = 0;
  for (const Form &form : forms)
    wrong += compare(module, form, {memory, values, in, stored});
  std::printf("%zu forms, %zu warps, %u wrong\n", forms.size(), forms.size() * Ctas, wrong);
  return wrong != 0;
}
