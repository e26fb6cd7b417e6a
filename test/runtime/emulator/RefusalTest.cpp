//===- RefusalTest.cpp - planemu-refusal-test: what a module may not say ---===//
//
// planemu-refusal-test FILE: every line of FILE is `STATEMENT => REASON`, or `STATEMENT => loads`. Each
// statement is put into a kernel of its own and loaded; the error has to be the one for an invalid
// module, and to name the kernel, the line, the statement as written and the reason.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/Emulator.h"

#include <fstream>

using namespace emutest;

/// The statement is on line 21: registers of each width, memory of each space, and a label.
static constexpr const char *Before = R"(.version 9.0
.target sm_121a
.address_size 64
.extern .shared .align 16 .b8 dyn[];
.global .align 32 .b8 gv[256];
.const .align 16 .b8 cv[64];
.visible .entry k(.param .u64 pp, .param .align 16 .b8 st[32]) {
  .reg .pred %p<8>;
  .reg .b16 %h<16>;
  .reg .b32 %r<64>;
  .reg .f32 %f<32>;
  .reg .b64 %d<32>;
  .reg .f64 %fd<8>;
  .shared .align 32 .b8 sm[1024];
  .local .align 16 .b8 lv[64];
  ld.param.u64 %d9, [pp];
  cvta.to.global.u64 %d8, %d9;
  mov.u32 %r9, sm;
  setp.ne.s32 %p2, %r9, 7;
  bar.sync 0;
)";
static constexpr const char *After = R"(;
L:
  ret;
}
)";

int main(int argc, char **argv) {
  std::ifstream file(argc == 2 ? argv[1] : "");
  if (!file)
    die("usage: planemu-refusal-test FILE");
  open();
  unsigned number = 0, statements = 0, wrong = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#')
      continue;
    std::size_t arrow = line.find(" => ");
    if (arrow == std::string::npos)
      die("line " + std::to_string(number) + " has no ' => '");
    std::string statement = line.substr(0, arrow), reason = line.substr(arrow + 4);
    ++statements;
    CUmodule module;
    CUresult result = api().cuModuleLoadDataEx(&module, (Before + statement + After).c_str(), 0,
                                               nullptr, nullptr);
    std::string got = result == CUDA_SUCCESS ? "CUDA_SUCCESS: " : nameOf(result) + ": ";
    if (result != CUDA_SUCCESS)
      got += api().lastError();
    std::string expected = reason == "loads"
                               ? "CUDA_SUCCESS: "
                               : "CUDA_ERROR_INVALID_PTX: ptx: error: line 21: kernel 'k': '" +
                                     statement + "': " + reason;
    if (got != expected) {
      ++wrong;
      std::printf("line %u:\n  expected %s\n  got      %s\n", number, expected.c_str(),
                  got.c_str());
    }
    if (result == CUDA_SUCCESS)
      CU(cuModuleUnload, module);
  }
  std::printf("%u statements, %u not as expected\n", statements, wrong);
  return wrong != 0;
}
