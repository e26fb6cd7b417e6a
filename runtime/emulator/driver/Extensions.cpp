//===- Extensions.cpp - the functions of planemu.h ------------------------===//
//
// What the emulator offers beyond the driver API.
//===----------------------------------------------------------------------===//

#include "planemu/planemu.h"
#include "runtime/emulator/driver/Driver.h"
#include "runtime/emulator/driver/GraphWork.h"

#include <algorithm>
#include <sstream>

using namespace planemu;

/// A string to return: it lives until the calling thread's next call of the same function.
template <int Function> static const char *lend(std::string text) {
  static thread_local std::string copy;
  copy = std::move(text);
  return copy.c_str();
}

CUresult Driver::setChecks(const std::string &list) {
  static constexpr struct {
    const char *name;
    unsigned check;
  } Names[] = {
      {"mem", PLANEMU_CHECK_MEM},
      {"init", PLANEMU_CHECK_INIT},
      {"race", PLANEMU_CHECK_RACE},
      {"sync", PLANEMU_CHECK_SYNC},
      {"reads", PLANEMU_CHECK_INIT | PLANEMU_CHECK_READS},
      {"all", PLANEMU_CHECK_MEM | PLANEMU_CHECK_INIT | PLANEMU_CHECK_RACE | PLANEMU_CHECK_SYNC}};
  std::stringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    auto found = std::find_if(std::begin(Names), std::end(Names),
                              [&](const auto &row) { return word == row.name; });
    if (found == std::end(Names))
      return failWith(CUDA_ERROR_NOT_INITIALIZED,
                      "PLANEMU_CHECKS has '" + word +
                          "', known are mem, init, race, sync, reads, all");
    checks |= found->check;
  }
  findings.print();
  return CUDA_SUCCESS;
}

void Driver::observeMemory() {
  for (auto &[handle, context] : contexts)
    if (context->alive)
      context->memory->observe(checks & PLANEMU_CHECK_INIT, checks & PLANEMU_CHECK_MEM);
}

CUresult Driver::setJit(unsigned mode) {
  auto refuse = [](const std::string &why) {
    return failWith(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "the JIT compiler cannot be used: " + why);
  };
  std::string error;
  if (mode != PLANEMU_JIT_OFF && !compiler)
    compiler = openCompiler(error);
  if (mode != PLANEMU_JIT_OFF && !compiler)
    return refuse(error);
  if (mode != PLANEMU_JIT_OFF && instructions && !compiler->knows(instructions->name))
    return refuse("it has no code for the host's instruction set '" +
                  std::string(instructions->name) + "'");
  jit = mode;
  return CUDA_SUCCESS;
}

int planemu_set_jit(unsigned mode) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  if (mode > PLANEMU_JIT_ALWAYS)
    return failWith(CUDA_ERROR_INVALID_VALUE, "planemu_set_jit: mode " + std::to_string(mode) +
                                                  " is none of planemu_jit_mode");
  return driver.jitFromEnvironment ? CUDA_SUCCESS : driver.setJit(mode);
}

const char *planemu_last_error(void) { return lend<0>(lastMessage()); }

void planemu_set_threads(unsigned threads) { Driver::get().pool.setThreads(threads); }

void planemu_set_max_steps(uint64_t steps) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  if (!driver.maxStepsFromEnvironment)
    driver.maxSteps = steps;
}

void planemu_set_schedule_seed(uint64_t seed) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  driver.scheduleSeed = seed;
}

static thread_local struct {
  int (*asked)(void *user);
  void *user;
} interrupt;

void planemu_set_interrupt(int (*asked)(void *user), void *user) { interrupt = {asked, user}; }

bool planemu::isInterrupted() { return interrupt.asked && interrupt.asked(interrupt.user); }

void planemu_label_launch(const char *label) { setLaunchLabel(label ? label : ""); }

void planemu_name_range(uint64_t address, size_t bytes, const char *name) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  // Any thread may name a range: it goes to the context that has it, or will have it.
  Context *context = driver.ownerOf(address);
  if (!context)
    context = Driver::current();
  if (!context || !context->alive)
    context = driver.retained ? driver.primary.get() : nullptr;
  if (context && name && bytes)
    context->memory->name(address, bytes, name);
}

int planemu_set_target(const char *target) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  if (!target || !findDeviceModel(target))
    return failWith(CUDA_ERROR_INVALID_VALUE, std::string("target '") + (target ? target : "") +
                                                  "' is not known, known are " +
                                                  knownDeviceModels());
  // Asking again for what was asked for, or is reported, changes nothing.
  if (driver.initialized() && driver.chosenTarget != target &&
      findDeviceModel(target) != driver.model)
    return failWith(
        CUDA_ERROR_ILLEGAL_STATE,
        std::string("planemu_set_target must come before the first cuInit; the device is '") +
            driver.model->key + "'");
  driver.chosenTarget = target;
  return CUDA_SUCCESS;
}

void planemu_set_checks(unsigned checks) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  driver.checks = checks | (checks & PLANEMU_CHECK_READS ? unsigned(PLANEMU_CHECK_INIT) : 0);
  driver.observeMemory();
}

size_t planemu_finding_count(void) { return Driver::get().findings.size(); }

const char *planemu_finding(size_t index) {
  std::string text = Driver::get().findings.text(index);
  return text.empty() ? nullptr : lend<1>(std::move(text));
}

void planemu_clear_findings(void) { Driver::get().findings.clear(); }

void planemu_set_counters(int on) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  driver.counts = on != 0;
}

const char *planemu_counters(void) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  std::string text = "{\"version\":1,\"launches\":[";
  for (std::size_t n = 0; n < driver.launchCounters.size(); ++n)
    text += (n ? ",\n" : "\n") + driver.launchCounters[n];
  return lend<2>(text + "\n]}\n");
}

void planemu_clear_counters(void) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  driver.launchCounters.clear();
}

uint64_t planemu_warp_instructions(void) {
  return executedInstructions.load(std::memory_order_relaxed);
}
