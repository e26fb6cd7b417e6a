//===- JitTest.cpp - planemu-jit-test: calls in compiled blocks -----------===//
//
// Opens libplanemu-jit and compiles blocks of calls, without an emulator: their order, what they
// receive, exceptions on their way through, and what is refused. Prints `ok` or what is wrong.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/jit/Jit.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include <dlfcn.h>

static void expect(bool holds, const char *what) {
  if (holds)
    return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

static std::vector<int> called;
static void note(void *warp, const void *inst) {
  expect(warp == &called, "the warp that a call receives");
  called.push_back(*static_cast<const int *>(inst));
}
static void fail(void *, const void *) { throw std::bad_alloc(); }

int main() {
  void *library = dlopen(PLANEMU_JIT_PATH, RTLD_NOW | RTLD_LOCAL);
  expect(library, dlerror());
  auto get = reinterpret_cast<decltype(&planemu_jit)>(dlsym(library, "planemu_jit"));
  expect(get, "no planemu_jit");
  expect(!get(PLANEMU_JIT_VERSION + 1), "another version is refused");
  const planemu_jit_compiler *compiler = get(PLANEMU_JIT_VERSION);
  expect(compiler, "its own version is not");
  expect(compiler->knows("v3") && compiler->knows("v4") && !compiler->knows("base"),
         "the instruction sets it knows");

  const int numbers[] = {1, 2, 3};
  auto step = [](void (*run)(void *, const void *), const int *inst) {
    planemu_jit_step made{};
    made.run = reinterpret_cast<void (*)(void)>(run);
    made.inst = inst;
    return made;
  };
  std::vector<planemu_jit_step> steps = {step(note, &numbers[0]), step(note, &numbers[1]),
                                         step(note, &numbers[2]), step(fail, nullptr),
                                         step(note, &numbers[0])};
  const planemu_jit_block blocks[] = {{0, 3}, {3, 2}, {0, 0}};
  planemu_jit_kernel kernel{"v3", steps.data(), blocks, nullptr, 3, 0};
  planemu_jit_run entries[3] = {};
  char error[200] = "", *file = nullptr;
  void *code = compiler->compile(&kernel, entries, error, sizeof(error));
  expect(code && entries[0] && entries[1] && entries[2], error);
  entries[0](&called, file);
  entries[2](&called, file);
  expect(called == std::vector<int>({1, 2, 3}), "calls are made in order");
  bool caught = false;
  try {
    entries[1](&called, file);
  } catch (const std::bad_alloc &) {
    caught = true;
  }
  expect(caught && called.size() == 3, "an exception leaves the block");
  compiler->release(code);

  steps[0].lanes = "N7planemu9NoSuchOneE";
  expect(!compiler->compile(&kernel, entries, error, sizeof(error)), "an unknown function");
  std::printf("refused: %s\nok\n", error);
}
