//===- PathsTest.cpp - planemu-paths-test: fast paths against the general one ---===//
//
// planemu-paths-test PROGRAMS. A whole warp that nobody watches takes paths of its own: chains, in
// which moves and conversions are joined, and addresses formed all at once. With checks on every
// instruction takes the general path. Random programs have to end the same way both times: same
// memory, same fault. They have few registers, so that every way of overlap occurs, guards, branches
// and loops that lanes leave one by one, and addresses of every shape.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/Emulator.h"

#include <initializer_list>

using namespace emutest;

namespace {
constexpr unsigned Ctas = 6, Words = 26,
                   SharedBytes = 4096; // words a lane starts with and ends with
constexpr unsigned CtaWords = 32 * Words + SharedBytes / 4;
enum { AllChecks = 15 };

class Program {
public:
  explicit Program(std::uint64_t seed) : state(seed * 2654435761 + 88172645463325252) {}
  std::string text();

private:
  unsigned below(unsigned bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<unsigned>((state >> 20) % bound);
  }
  std::string word() { return "%r" + std::to_string(below(6)); }
  std::string source() { return below(5) ? word() : std::to_string(below(1000)); }
  std::string wide() { return "%d" + std::to_string(below(4)); }
  std::string half() { return "%h" + std::to_string(below(5)); }
  std::string flag() { return "%p" + std::to_string(below(3)); }
  std::string pick(std::initializer_list<const char *> of) { return of.begin()[below(of.size())]; }
  std::string sharedAddress(unsigned rowBytes);
  std::string memory();
  std::string arithmetic();
  std::string widening();
  static std::string prologue();
  static std::string epilogue();

  std::uint64_t state;
  bool fails = false;
  unsigned labels = 0;
};
} // namespace

/// [address] of rows in shared memory, aligned and inside unless the program is to fail.
std::string Program::sharedAddress(unsigned rowBytes) {
  unsigned offset = below(64) * rowBytes, base = below(5);
  if (fails && below(12) == 0)
    offset = below(2) ? SharedBytes - 512 : offset + rowBytes / 2;
  else if (base == 1 && rowBytes > 4) // which is 4 bytes a lane
    base = 2;
  return "[%at" + std::to_string(base) + "+" + std::to_string(offset) + "]";
}

std::string Program::memory() {
  switch (below(9)) {
  case 0:
    return "ld.shared.b32 " + word() + ", " + sharedAddress(4);
  case 1:
    return "ld.shared." + pick({"u16", "b16"}) + " " + half() + ", " + sharedAddress(2);
  case 2:
    return "ld.shared.v2.b32 {%r0, " + word() + "}, " + sharedAddress(8);
  case 3:
    return "ld.shared.v4.b32 {%r3, %r1, %r2, %r4}, " + sharedAddress(16);
  case 4:
    return "st.shared.b32 " + sharedAddress(4) + ", " + word();
  case 5:
    return "st.shared.v2.b16 " + sharedAddress(4) + ", {" + half() + ", " + half() + "}";
  case 6:
    return "st.shared.v4.b32 " + sharedAddress(16) + ", {%r1, " + word() + ", %r5, %r0}";
  case 7: {
    std::string bytes = pick({"4", "8", "16"});
    return "cp.async.ca.shared.global " + sharedAddress(16) + ", [%g" + std::to_string(below(4)) +
           "], " + bytes + (below(3) ? "" : ", " + pick({"%few", bytes.c_str()}));
  }
  default:
    return "ld.global.b32 " + word() + ", [%g" + std::to_string(below(4)) + "+" +
           std::to_string(4 * below(8)) + "]";
  }
}

std::string Program::arithmetic() {
  switch (below(24)) {
  case 0:
  case 1:
  case 2:
    return "mov.b32 " + word() + ", " + source();
  case 3:
    return "mov.b64 " + wide() + ", " + wide();
  case 4:
    return "mov.b16 " + half() + ", " + half();
  case 5:
    return "mov.b32 {%h0, " + half() + "}, " + word();
  case 6:
    return "mov.b32 " + word() + ", {" + half() + ", " + half() + "}";
  case 7:
    return "mov.b64 {%r2, %r4}, " + wide();
  case 8:
    return "mov.b64 " + wide() + ", {" + word() + ", " + word() + "}";
  case 9:
    return pick({"add.s32 ", "sub.s32 ", "mul.lo.s32 ", "and.b32 ", "or.b32 ", "xor.b32 "}) +
           word() + ", " + word() + ", " + source();
  case 10:
    return pick({"shl.b32 ", "shr.u32 ", "shr.s32 "}) + word() + ", " + word() + ", " +
           (below(2) ? std::to_string(below(32)) : word());
  case 11:
    return pick({"add.s64 ", "sub.s64 ", "and.b64 "}) + wide() + ", " + wide() + ", " + wide();
  case 12:
    return "mul.wide.u32 " + wide() + ", " + word() + ", " + source();
  case 13:
    return "mad.lo.s32 " + word() + ", " + word() + ", " + source() + ", " + word();
  case 14:
    return "fma.rn.f32 " + word() + ", " + word() + ", " + word() + ", " + word();
  case 15:
    return pick({"add.rn.f32 ", "mul.rn.f32 ", "max.f32 "}) + word() + ", " + word() + ", " +
           word();
  case 16:
    return pick({"cvt.f32.bf16 ", "cvt.f32.f16 "}) + word() + ", " + half();
  case 17:
    return "cvt.rn.f16x2.e4m3x2 " + word() + ", " + half();
  case 18:
    return "cvt.rn.bf16x2.f32 " + word() + ", " + word() + ", " + word();
  case 19:
    return pick({"setp.lt.s32 ", "setp.ge.u32 ", "setp.eq.f32 "}) + flag() + ", " + word() + ", " +
           word();
  case 20:
    return "selp.b32 " + word() + ", " + word() + ", " + source() + ", " + flag();
  case 21:
    return "fma.rn.bf16x2 " + word() + ", " + word() + ", " + word() + ", " + word();
  case 22:
    return pick({"cvt.u64.u32 ", "cvt.s64.s32 "}) + wide() + ", " + word();
  default:
    return "cvta.to.global.u64 " + wide() + ", " + wide();
  }
}

/// From packed formats to f32, in several statements that chains join unless something comes between.
std::string Program::widening() {
  std::string text;
  auto add = [&](const std::string &statement) {
    text += "  " + statement + ";\n";
    if (below(6) == 0)
      text += "  " + arithmetic() + ";\n";
  };
  std::string low = half(), high = half(), codes = half(), pair = word();
  if (below(2))
    add("mov.b32 {" + codes + ", " + half() + "}, " + word());
  if (below(3))
    add("cvt.rn.f16x2.e4m3x2 " + pair + ", " + codes);
  add("mov.b32 {" + low + ", " + high + "}, " + pair);
  for (const std::string &from : {low, high})
    add(pick({"cvt.f32.f16 ", "cvt.f32.f16 ", "cvt.f32.bf16 "}) + word() + ", " + from);
  return text;
}

std::string Program::text() {
  fails = below(4) == 0;
  std::string body;
  auto statements = [&](unsigned count, bool whole) {
    for (unsigned n = 0; n < count; ++n) {
      unsigned kind = below(20);
      if (whole && kind == 0)
        body += "  shfl.sync.bfly.b32 " + word() + ", " + word() + ", 1, 31, -1;\n";
      else if (whole && kind == 1)
        body += "  ldmatrix.sync.aligned.m8n8" +
                pick({".x4.shared.b16 {%r1, %r0, %r4, %r2}, ", ".x2.shared.b16 {%r5, %r3}, ",
                      ".x1.trans.shared.b16 {%r4}, "}) +
                sharedAddress(16) + ";\n";
      else if (kind == 2)
        body += widening();
      else
        body += std::string("  ") + (below(8) ? "" : pick({"@%p0 ", "@!%p1 ", "@%p2 "})) +
                (kind < 6 ? memory() : arithmetic()) + ";\n";
    }
  };
  for (unsigned part = 0; part < 6; ++part) {
    statements(4 + below(12), true);
    std::string label = "L" + std::to_string(labels++);
    if (below(2)) {
      body += "  @" + flag() + " bra " + label + ";\n";
      statements(1 + below(8), false);
    } else {
      // Lanes leave in turn.
      body += "  and.b32 %times, " + word() + ", 3;\n" + label + "B:\n";
      statements(1 + below(8), false);
      body += "  sub.s32 %times, %times, 1;\n  setp.ge.s32 %again, %times, 0;\n  @%again bra " +
              label + "B;\n";
    }
    body += label + ":\n  bar.warp.sync -1;\n";
  }
  return header() + prologue() + body + epilogue();
}

/// Registers come from the lane's words, 128 bytes apart, and go back there.
static std::string slot(unsigned n) { return "[%mine+" + std::to_string(128 * n) + "]"; }
static std::string numbered(const char *name, unsigned n) { return name + std::to_string(n); }

std::string Program::prologue() {
  std::string text = R"(
.visible .entry k(.param .u64 data, .param .u64 table) {
  .reg .b16 %h<5>;
  .reg .b32 %r<6>, %at<5>, %t, %u, %few, %times, %lane, %i;
  .reg .b64 %d<4>, %g<4>, %mine, %memory;
  .reg .pred %p<3>, %again;
  .shared .align 16 .b8 sh[4096];
  mov.u32 %lane, %tid.x;
  ld.param.u64 %memory, [data];
  mov.u32 %t, %ctaid.x;
  mad.wide.u32 %memory, %t, )" +
                     std::to_string(4 * CtaWords) + R"(, %memory;
  mad.wide.u32 %mine, %lane, 4, %memory;
)";
  unsigned next = 0;
  for (unsigned n = 0; n < 6; ++n)
    text += "  ld.global.b32 " + numbered("%r", n) + ", " + slot(next++) + ";\n";
  for (unsigned n = 0; n < 5; ++n)
    text += "  ld.global.b16 " + numbered("%h", n) + ", " + slot(next++) + ";\n";
  for (unsigned n = 0; n < 4; ++n, next += 2)
    text += "  ld.global.b32 %t, " + slot(next) + ";\n  ld.global.b32 %u, " + slot(next + 1) +
            ";\n  mov.b64 " + numbered("%d", n) + ", {%t, %u};\n";
  for (unsigned n = 0; n < 3; ++n)
    text += "  ld.global.b32 %t, " + slot(next++) + ";\n  setp.lt.s32 " + numbered("%p", n) +
            ", %t, 0;\n";
  // One row for all lanes, side by side, side by side for wide rows, with gaps, irregular.
  text += "  ld.global.b32 %t, " + slot(next) + R"(;
  and.b32 %few, %t, 4; and.b32 %t, %t, 0x7f0; cvt.u64.u32 %g3, %t;
  mov.u32 %at0, sh; mad.lo.u32 %at1, %lane, 4, %at0; mad.lo.u32 %at2, %lane, 16, %at0;
  mad.lo.u32 %at3, %lane, 48, %at0; add.u32 %at4, %t, %at0;
  ld.param.u64 %g0, [table]; mad.wide.u32 %g1, %lane, 16, %g0; mad.wide.u32 %g2, %lane, 64, %g0;
  add.u64 %g3, %g3, %g0;
  mov.u32 %i, 0;
FILL:
  mad.wide.u32 %memory, %i, 128, %mine; ld.global.b32 %t, [%memory+)" +
          std::to_string(128 * Words) + R"(];
  mad.lo.u32 %u, %i, 128, %at1; st.shared.b32 [%u], %t;
  add.u32 %i, %i, 1; setp.lt.u32 %again, %i, 32; @%again bra FILL;
  bar.warp.sync -1;
)";
  return text;
}

std::string Program::epilogue() {
  std::string text;
  unsigned next = 0;
  for (unsigned n = 0; n < 6; ++n)
    text += "  st.global.b32 " + slot(next++) + ", " + numbered("%r", n) + ";\n";
  for (unsigned n = 0; n < 5; ++n)
    text += "  st.global.b16 " + slot(next++) + ", " + numbered("%h", n) + ";\n";
  for (unsigned n = 0; n < 4; ++n, next += 2)
    text += "  mov.b64 {%t, %u}, " + numbered("%d", n) + ";\n  st.global.b32 " + slot(next) +
            ", %t;\n  st.global.b32 " + slot(next + 1) + ", %u;\n";
  for (unsigned n = 0; n < 3; ++n)
    text += "  selp.b32 %t, 1, 2, " + numbered("%p", n) + ";\n  st.global.b32 " + slot(next++) +
            ", %t;\n";
  return text + R"(  mov.u32 %i, 0;
DRAIN:
  mad.lo.u32 %u, %i, 128, %at1; ld.shared.b32 %t, [%u];
  mad.wide.u32 %memory, %i, 128, %mine; st.global.b32 [%memory+)" +
         std::to_string(128 * Words) + R"(], %t;
  add.u32 %i, %i, 1; setp.lt.u32 %again, %i, 32; @%again bra DRAIN;
  ret;
}
)";
}

namespace {
struct Ending {
  std::string fault;
  std::vector<std::uint32_t> memory;
};
} // namespace

static Ending run(const std::string &ptx, unsigned checks, const std::vector<std::uint32_t> &data) {
  open();
  api().setChecks(checks);
  CUdeviceptr memory = upload(data), table = upload(data);
  CUfunction function = load(ptx, "k");
  Ending ending;
  if (CUresult result = launch(function, Ctas, 32, {memory, table}); result != CUDA_SUCCESS)
    ending.fault = nameOf(result) + ": " + api().lastError();
  else
    ending.memory = download<std::uint32_t>(memory, Ctas * CtaWords);
  CU(cuDevicePrimaryCtxRelease_v2, 0); // a fault stays with its context
  return ending;
}

int main(int argc, char **argv) {
  unsigned programs = argc == 2 ? static_cast<unsigned>(std::stoul(argv[1])) : 0, faults = 0;
  if (!programs)
    die("usage: planemu-paths-test PROGRAMS");
  api().setThreads(1);
  for (unsigned seed = 1; seed <= programs; ++seed) {
    std::vector<std::uint32_t> data(Ctas * CtaWords);
    for (std::size_t n = 0; n < data.size(); ++n)
      data[n] = static_cast<std::uint32_t>((n + 1) * (2 * seed + 1) * 2654435761u >> (n % 3));
    std::string ptx = Program(seed).text();
    Ending plain = run(ptx, 0, data), watched = run(ptx, AllChecks, data);
    faults += !plain.fault.empty();
    if (plain.fault == watched.fault && plain.memory == watched.memory)
      continue;
    std::size_t word = 0;
    while (word < plain.memory.size() && word < watched.memory.size() &&
           plain.memory[word] == watched.memory[word])
      ++word;
    die("program " + std::to_string(seed) + " ends in two ways, word " + std::to_string(word) +
        "\nplain:   " + plain.fault + "\nwatched: " + watched.fault + "\n" + ptx);
  }
  std::printf("%u programs end in one way, some of them with a fault: %s\n", programs,
              faults && faults < programs ? "yes" : "no");
}
