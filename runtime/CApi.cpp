//===- CApi.cpp - the C ABI -------------------------------------------------===//
//
// Handles are structs around shared pointers, so that they keep alive what they were made from.
// Nothing but statuses and messages leaves: `guard` turns errors and exceptions into both.
//
//===----------------------------------------------------------------------===//
#include "include/planrt/planrt.h"

#include "runtime/Step.h"

#include <cstring>
#include <new>

using namespace planc;
using namespace planrt;

struct planrt_error {
  std::string message;
  std::string file;
};
struct planrt_bundle {
  BundlePtr impl;
};
struct planrt_device {
  std::shared_ptr<const Device> impl;
};
struct planrt_weights {
  WeightsPtr impl;
};
struct planrt_session {
  std::shared_ptr<Session> impl;
};
struct planrt_step {
  std::unique_ptr<Step> impl;
};

//===----------------------------------------------------------------------===//
// Errors and options
//===----------------------------------------------------------------------===//

static planrt_status statusOf(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::Input:
    return PLANRT_ERR_INPUT;
  case ErrorKind::Usage:
    return PLANRT_ERR_ARGUMENT;
  case ErrorKind::Weights:
    return PLANRT_ERR_WEIGHTS;
  case ErrorKind::Environment:
    return PLANRT_ERR_ENVIRONMENT;
  case ErrorKind::Memory:
    return PLANRT_ERR_MEMORY;
  case ErrorKind::Device:
    return PLANRT_ERR_DEVICE;
  case ErrorKind::DeviceLost:
    return PLANRT_ERR_DEVICE_LOST;
  }
  return PLANRT_ERR_INTERNAL;
}

static planrt_status report(planrt_error **out, planrt_status status, std::string message,
                            std::string file) {
  if (out)
    *out = new (std::nothrow) planrt_error{std::move(message), std::move(file)};
  return status;
}

/// Runs `body` (which gives a Status) and reports what went wrong.
template <class Body> static planrt_status guard(planrt_error **error, Body body) noexcept {
  try {
    Status status = body();
    if (status.ok())
      return PLANRT_OK;
    return report(error, statusOf(status.error().kind), status.error().message,
                  status.error().where);
  } catch (const std::bad_alloc &) {
    if (error)
      *error = new (std::nothrow) planrt_error;
    return PLANRT_ERR_MEMORY;
  } catch (const std::exception &caught) {
    try {
      return report(error, PLANRT_ERR_INTERNAL, caught.what(), "");
    } catch (...) {
      return PLANRT_ERR_INTERNAL;
    }
  } catch (...) {
    return PLANRT_ERR_INTERNAL;
  }
}

/// The value goes to `out`, inside a new handle.
template <class Handle, class T> static Status give(Result<T> result, Handle **out) {
  if (!result.ok())
    return result.takeError();
  *out = new Handle{std::move(*result)};
  return {};
}

static Error missing(const char *argument) {
  return makeError(ErrorKind::Usage, "argument \"{}\" is NULL", argument);
}

/// What the caller's version of an options struct has, over the initial values.
template <class Options>
static Status readOptions(const Options *given, void (*init)(Options *), Options &out) {
  init(&out);
  if (!given)
    return {};
  if (given->size < sizeof given->size)
    return makeError(ErrorKind::Usage, "an options struct was not initialised");
  std::memcpy(&out, given, std::min(given->size, sizeof out));
  return {};
}

/// Fills an output struct as far as the caller's version of it goes.
template <class Struct> static Status writeStruct(Struct value, Struct *out) {
  if (out->size < sizeof out->size)
    return makeError(ErrorKind::Usage, "the size of an output struct is not set");
  value.size = std::min(out->size, sizeof value);
  std::memcpy(out, &value, value.size);
  return {};
}

const char *planrt_error_message(const planrt_error *error) {
  if (!error)
    return "";
  return error->message.empty() ? "out of memory" : error->message.c_str();
}
const char *planrt_error_file(const planrt_error *error) {
  return error ? error->file.c_str() : "";
}
void planrt_error_free(planrt_error *error) { delete error; }

const char *planrt_version(void) { return PLANRT_VERSION; }

//===----------------------------------------------------------------------===//
// Bundle and device
//===----------------------------------------------------------------------===//

planrt_status planrt_bundle_open(const char *path, planrt_bundle **out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!path || !out)
      return missing(path ? "out" : "path");
    Result<bundle::Bundle> bundle = bundle::Bundle::open(path);
    if (!bundle.ok())
      return bundle.takeError();
    *out = new planrt_bundle{std::make_shared<const bundle::Bundle>(std::move(*bundle))};
    return {};
  });
}

void planrt_bundle_free(planrt_bundle *bundle) { delete bundle; }

uint32_t planrt_bundle_program_count(const planrt_bundle *bundle) {
  return bundle ? uint32_t(bundle->impl->manifest().programs.size()) : 0;
}

planrt_status planrt_bundle_program_info(const planrt_bundle *bundle, uint32_t index,
                                         planrt_program_info *out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!bundle || !out)
      return missing(bundle ? "out" : "bundle");
    const bundle::Manifest &manifest = bundle->impl->manifest();
    if (index >= manifest.programs.size())
      return makeError(ErrorKind::Usage, "there is no program {}, the bundle has {}", index,
                       manifest.programs.size());
    const bundle::Program &program = manifest.programs[index];
    planrt_program_info info = {sizeof info,
                                program.name.c_str(),
                                program.rows,
                                program.groups,
                                program.launches,
                                manifest.model.vocab,
                                manifest.model.max_context,
                                manifest.model.kv_block};
    return writeStruct(info, out);
  });
}

void planrt_device_options_init_sized(planrt_device_options *options, size_t size) {
  planrt_device_options initial = {};
  initial.size = std::min(size, sizeof initial);
  std::memcpy(options, &initial, initial.size);
}

// In parentheses, since the header's macro has the same name.
void(planrt_device_options_init)(planrt_device_options *options) {
  planrt_device_options_init_sized(options, offsetof(planrt_device_options, schedule_seed));
}

static_assert(int(PLANRT_CHECK_MEM) == PLANEMU_CHECK_MEM &&
              int(PLANRT_CHECK_INIT) == PLANEMU_CHECK_INIT &&
              int(PLANRT_CHECK_RACE) == PLANEMU_CHECK_RACE &&
              int(PLANRT_CHECK_SYNC) == PLANEMU_CHECK_SYNC);

planrt_status planrt_device_open(const char *name, const planrt_device_options *options,
                                 planrt_device **out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!name || !out)
      return missing(name ? "out" : "name");
    planrt_device_options given;
    auto init = [](planrt_device_options *initial) { planrt_device_options_init(initial); };
    if (Status status = readOptions<planrt_device_options>(options, init, given); !status.ok())
      return status;
    EmulatorSettings settings = {given.threads, given.schedule_seed,
                                 given.target ? given.target : "", given.checks,
                                 given.counters != 0};
    return give(Device::open(name, settings), out);
  });
}

void planrt_device_free(planrt_device *device) { delete device; }

const char *planrt_device_product(const planrt_device *device) {
  return device ? device->impl->product().c_str() : "";
}
uint32_t planrt_device_sm(const planrt_device *device) { return device ? device->impl->sm() : 0; }

size_t planrt_device_finding_count(const planrt_device *device) {
  return device ? device->impl->driver().findingCount() : 0;
}
const char *planrt_device_finding(const planrt_device *device, size_t index) {
  return device ? device->impl->driver().finding(index) : nullptr;
}
const char *planrt_device_counters(const planrt_device *device) {
  return device && device->impl->settings().counters ? device->impl->driver().counters() : nullptr;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

planrt_status planrt_weights_open(const planrt_bundle *bundle, const planrt_device *device,
                                  const char *path, planrt_weights **out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!bundle || !device || !path || !out)
      return missing(!bundle ? "bundle" : !device ? "device" : !path ? "path" : "out");
    return give(Weights::open(bundle->impl, device->impl, path), out);
  });
}

planrt_status planrt_weights_random(const planrt_bundle *bundle, const planrt_device *device,
                                    uint64_t seed, planrt_weights **out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!bundle || !device || !out)
      return missing(!bundle ? "bundle" : !device ? "device" : "out");
    return give(Weights::random(bundle->impl, device->impl, seed), out);
  });
}

void planrt_weights_free(planrt_weights *weights) { delete weights; }

uint64_t planrt_weights_unread(const planrt_weights *weights) {
  return weights ? weights->impl->unread() : 0;
}

planrt_status planrt_weights_read(const planrt_weights *weights, const char *name, int scales,
                                  uint64_t offset, void *out, uint64_t bytes,
                                  planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!weights || !name || !out)
      return missing(!weights ? "weights" : !name ? "name" : "out");
    return weights->impl->read(name, scales != 0, offset, {static_cast<std::byte *>(out), bytes});
  });
}

//===----------------------------------------------------------------------===//
// Session
//===----------------------------------------------------------------------===//

void planrt_session_options_init(planrt_session_options *options) {
  *options = {};
  options->size = sizeof *options;
  options->sequences = 1;
}

planrt_status planrt_session_open(const planrt_weights *weights,
                                  const planrt_session_options *options, planrt_session **out,
                                  planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!weights || !out)
      return missing(weights ? "out" : "weights");
    planrt_session_options given;
    if (Status status = readOptions(options, planrt_session_options_init, given); !status.ok())
      return status;
    return give(
        Session::open(weights->impl, {given.sequences, given.in_place != 0, given.kv_tokens}), out);
  });
}

void planrt_session_free(planrt_session *session) { delete session; }

planrt_status planrt_session_reset(planrt_session *session, uint32_t sequence,
                                   planrt_error **error) {
  return guard(error, [&]() -> Status {
    return session ? session->impl->reset(sequence) : Status(missing("session"));
  });
}

int64_t planrt_session_length(const planrt_session *session, uint32_t sequence) {
  return session ? session->impl->length(sequence) : 0;
}

planrt_status planrt_session_state_read(const planrt_session *session, const char *name,
                                        uint64_t offset, void *out, uint64_t bytes,
                                        planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!session || !name || !out)
      return missing(!session ? "session" : !name ? "name" : "out");
    return session->impl->readPool(name, offset, {static_cast<std::byte *>(out), bytes});
  });
}

uint64_t planrt_session_state_bytes(const planrt_session *session, const char *name) {
  return session && name ? session->impl->poolBytes(name) : 0;
}

//===----------------------------------------------------------------------===//
// Step
//===----------------------------------------------------------------------===//

void planrt_step_options_init(planrt_step_options *options) {
  *options = {};
  options->size = sizeof *options;
}

planrt_status planrt_step_open(planrt_session *session, const char *program,
                               const planrt_step_options *options, planrt_step **out,
                               planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!session || !out)
      return missing(session ? "out" : "session");
    planrt_step_options given;
    if (Status status = readOptions(options, planrt_step_options_init, given); !status.ok())
      return status;
    std::string name = program ? program : "";
    return give(Step::open(session->impl, program ? &name : nullptr,
                           {given.unshared != 0, given.no_graph != 0}),
                out);
  });
}

void planrt_step_free(planrt_step *step) { delete step; }

const char *planrt_step_image(const planrt_step *step) {
  return step ? step->impl->image().c_str() : "";
}

planrt_status planrt_step_memory(const planrt_step *step, planrt_memory *out,
                                 planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!step || !out)
      return missing(step ? "out" : "step");
    const Session &session = step->impl->session();
    const Weights &weights = *session.weights();
    planrt_memory memory = {sizeof memory,
                            weights.deviceBytes(),
                            weights.hostBytes(),
                            session.stateBytes(),
                            session.kvBytes(),
                            step->impl->workspaceBytes(),
                            step->impl->scratchBytes()};
    return writeStruct(memory, out);
  });
}

static Status runStep(planrt_step *step, uint32_t count, const uint32_t *sequences,
                      const int32_t *tokens, int32_t *next, const Visitor &visit) {
  if (!step || !sequences || !tokens)
    return missing(!step ? "step" : !sequences ? "sequences" : "tokens");
  Result<std::vector<int32_t>> result = step->impl->run({sequences, count}, {tokens, count}, visit);
  if (!result.ok())
    return result.takeError();
  if (next)
    std::copy(result->begin(), result->end(), next);
  return {};
}

planrt_status planrt_step_run(planrt_step *step, uint32_t count, const uint32_t *sequences,
                              const int32_t *tokens, int32_t *next, planrt_error **error) {
  return guard(error, [&] { return runStep(step, count, sequences, tokens, next, nullptr); });
}

planrt_status planrt_step_run_visited(planrt_step *step, uint32_t count, const uint32_t *sequences,
                                      const int32_t *tokens, int32_t *next, planrt_visitor visit,
                                      void *user, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!visit)
      return missing("visit");
    return runStep(
        step, count, sequences, tokens, next,
        [&](size_t index, const bundle::Launch &launch, bool done) -> Status {
          planrt_launch info = {sizeof info, uint32_t(index), launch.group, launch.rule.c_str(),
                                launch.kernel ? launch.kernel->c_str() : nullptr};
          if (visit(user, &info, done) == 0)
            return {};
          return makeError(ErrorKind::Usage, "the visitor ended the step {} group {} ({})",
                           done ? "after" : "before", launch.group, launch.rule);
        });
  });
}

planrt_status planrt_step_logits(const planrt_step *step, uint32_t row, float *out, uint64_t count,
                                 planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!step || !out)
      return missing(step ? "out" : "step");
    return step->impl->logits(row, {out, count});
  });
}

planrt_status planrt_step_buffer_read(const planrt_step *step, const char *edge, void *out,
                                      uint64_t bytes, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (!step || !edge || !out)
      return missing(!step ? "step" : !edge ? "edge" : "out");
    return step->impl->readBuffer(edge, {static_cast<std::byte *>(out), bytes});
  });
}
