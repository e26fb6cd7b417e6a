//===- Bundle.cpp - bundles and their programs, for C -----------------------===//
//
// See planrt.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/api/Api.h"

#include "runtime/Programs.h"

using namespace planc;
using namespace planrt;
using namespace planrt::api;

static Status giveBundle(Result<bundle::Bundle> bundle, planrt_bundle **out) {
  if (!bundle.ok())
    return bundle.takeError();
  *out = new planrt_bundle{std::make_shared<const bundle::Bundle>(std::move(*bundle))};
  return {};
}

planrt_status planrt_bundle_open(const char *path, planrt_bundle **out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{path, "path"}, {out, "out"}}); !status.ok())
      return status;
    return giveBundle(bundle::Bundle::open(path), out);
  });
}

planrt_status planrt_bundle_open_memory(const void *data, size_t bytes, const char *name,
                                        planrt_bundle **out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{data, "data"}, {name, "name"}, {out, "out"}}); !status.ok())
      return status;
    auto *begin = static_cast<const std::byte *>(data);
    return giveBundle(bundle::Bundle::parse(name, Bytes(begin, begin + bytes)), out);
  });
}

void planrt_bundle_free(planrt_bundle *bundle) { delete bundle; }

uint32_t planrt_bundle_program_count(const planrt_bundle *bundle) {
  return bundle ? uint32_t(bundle->impl->manifest().programs.size()) : 0;
}

static Result<const bundle::Program *> programAt(const planrt_bundle *bundle, uint32_t index) {
  const std::vector<bundle::Program> &programs = bundle->impl->manifest().programs;
  if (index >= programs.size())
    return makeError(ErrorKind::Usage, "there is no program {}, the bundle has {}", index,
                     programs.size());
  return &programs[index];
}

planrt_status planrt_bundle_program_info(const planrt_bundle *bundle, uint32_t index,
                                         planrt_program_info *out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{bundle, "bundle"}, {out, "out"}}); !status.ok())
      return status;
    Result<const bundle::Program *> program = programAt(bundle, index);
    if (!program.ok())
      return program.takeError();
    const bundle::Model &model = bundle->impl->manifest().model;
    planrt_program_info info = {};
    info.name = (*program)->name.c_str();
    info.rows = (*program)->rows;
    info.groups = (*program)->groups;
    info.launches = (*program)->launches;
    info.vocab = model.vocab;
    info.max_context = model.max_context;
    info.kv_block = model.kv_block;
    info.mode = (*program)->mode.c_str();
    return writeStruct(info, out);
  });
}

planrt_status planrt_bundle_find_program(const planrt_bundle *bundle, const char *mode,
                                         uint32_t rows, uint32_t *index, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{bundle, "bundle"}, {index, "index"}}); !status.ok())
      return status;
    std::string name = mode ? mode : "";
    Result<uint32_t> found = findProgram(*bundle->impl, mode ? &name : nullptr, rows);
    if (!found.ok())
      return found.takeError();
    *index = *found;
    return {};
  });
}

namespace {
/// A program and what it would take with a session.
struct Request {
  const bundle::Program *program;
  ProgramMemory memory;
};
} // namespace

static Result<Request> requestOf(const planrt_bundle *bundle, uint32_t index,
                                 const planrt_session_options *options) {
  Result<const bundle::Program *> program = programAt(bundle, index);
  if (!program.ok())
    return program.takeError();
  Result<SessionOptions> session = sessionOptions(options);
  if (!session.ok())
    return session.takeError();
  Result<ProgramMemory> memory = memoryOf(bundle->impl->manifest(), **program, *session);
  if (!memory.ok())
    return memory.takeError();
  return Request{*program, *memory};
}

planrt_status planrt_program_memory(const planrt_bundle *bundle, uint32_t index,
                                    const planrt_session_options *options, planrt_memory *out,
                                    planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{bundle, "bundle"}, {out, "out"}}); !status.ok())
      return status;
    Result<Request> request = requestOf(bundle, index, options);
    if (!request.ok())
      return request.takeError();
    const ProgramMemory &memory = request->memory;
    return writeStruct(planrt_memory{sizeof(planrt_memory), memory.weights, memory.hostWeights,
                                     memory.states, memory.kv, memory.workspace, memory.scratch},
                       out);
  });
}

planrt_status planrt_preflight(const planrt_bundle *bundle, const planrt_device *device,
                               uint32_t index, const planrt_session_options *options,
                               planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{bundle, "bundle"}, {device, "device"}}); !status.ok())
      return status;
    Result<Request> request = requestOf(bundle, index, options);
    if (!request.ok())
      return request.takeError();
    if (Status status = checkImages(*bundle->impl, *device->impl, *request->program); !status.ok())
      return status;
    return checkMemory(*device->impl, request->memory.onDevice(),
                       fmt::format("program \"{}\" takes", request->program->name));
  });
}
