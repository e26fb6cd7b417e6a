//===- Tier.cpp - hand blocks to the JIT compiler -------------------------===//
//
// What the compiler is told of a kernel is what groups of warps execute: see Code.h.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Tier.h"
#include "runtime/emulator/Machine.h"

#include <filesystem>

#include <dlfcn.h>

using namespace planemu;

static constexpr char LibraryName[] = "libplanemu-jit.so";

const planemu_jit_compiler *planemu::openCompiler(std::string &error) {
  // Beside this library, wherever that is and under whatever name it was opened.
  Dl_info self{};
  std::error_code problem;
  std::filesystem::path folder;
  if (dladdr(LibraryName, &self) && self.dli_fname)
    folder = std::filesystem::canonical(self.dli_fname, problem).parent_path();
  std::filesystem::path path = folder / LibraryName;
  // It is never closed: compiled code may live as long as the process.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    error = dlerror();
    return nullptr;
  }
  auto get = reinterpret_cast<decltype(&planemu_jit)>(dlsym(library, "planemu_jit"));
  const planemu_jit_compiler *compiler = get ? get(PLANEMU_JIT_VERSION) : nullptr;
  if (!compiler)
    error = path.string() + ": not the JIT compiler of this version of libplanemu";
  return compiler;
}

Tier::Tier(const Kernel &kernel, const planemu_jit_compiler &compiler, const char *isa)
    : kernel(kernel), compiler(compiler), isa(isa), states(kernel.blocks.size()) {}

Tier::~Tier() {
  for (void *code : compiled)
    compiler.release(code);
}

std::string Tier::failure() {
  std::lock_guard lock(mutex);
  return error;
}

static planemu_jit_step describe(const Inst &inst, const LaneNote &note) {
  planemu_jit_step step{};
  step.run = reinterpret_cast<void (*)(void)>(inst.run);
  step.inst = &inst;
  step.imm = inst.imm;
  step.operands = operandsOf(inst);
  step.count = note.operands;
  step.written = note.written;
  step.dying = note.dying;
  step.guard = inst.guard;
  step.guard_xor = inst.guardXor;
  if (note.lanes) {
    step.lanes = note.lanes->type->name();
    step.bytes = note.lanes->bytes;
  }
  return step;
}

/// Compiles `block` and what is nearly as hot, as starting a compilation costs something too. Threads
/// that come meanwhile go on interpreting.
planemu_jit_run Tier::compile(std::uint32_t block) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock || !error.empty())
    return nullptr;
  if (planemu_jit_run code = states[block].code)
    return code;
  std::vector<planemu_jit_step> steps;
  std::vector<planemu_jit_block> blocks;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t n = 0; n < states.size(); ++n) {
    if (states[n].code || states[n].entered < threshold / 4)
      continue;
    auto first = static_cast<std::uint32_t>(steps.size());
    for (std::uint32_t at = kernel.blocks[n].groupFirst; at < kernel.blocks[n].groupLast; ++at)
      steps.push_back(describe(kernel.groupInsts[at], kernel.notes[at]));
    blocks.push_back({first, static_cast<std::uint32_t>(steps.size()) - first});
    numbers.push_back(n);
  }
  std::vector<planemu_jit_constant> constants;
  for (const Constant &constant : kernel.constants)
    if (constant.kind == Constant::Bits)
      constants.push_back({constant.offset, constant.bytes, constant.value});

  planemu_jit_kernel description{isa,           steps.data(),    blocks.data(), constants.data(),
                                 blocks.size(), constants.size()};
  std::vector<planemu_jit_run> entries(blocks.size());
  char text[512] = "";
  void *code = compiler.compile(&description, entries.data(), text, sizeof(text));
  if (!code) {
    error = "compiling kernel '" + kernel.name + "': " + text;
    return nullptr;
  }
  compiled.push_back(code);
  for (std::size_t n = 0; n < entries.size(); ++n)
    states[numbers[n]].code.store(entries[n], std::memory_order_release);
  return states[block].code;
}
