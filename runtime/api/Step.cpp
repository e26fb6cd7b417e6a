//===- Step.cpp - steps, for C ----------------------------------------------===//
//
// See planrt.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/api/Api.h"

using namespace planc;
using namespace planrt;
using namespace planrt::api;

planrt_status planrt_step_open(planrt_session *session, const char *program,
                               const planrt_step_options *options, planrt_step **out,
                               planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{session, "session"}, {out, "out"}}); !status.ok())
      return status;
    planrt_step_options given;
    if (Status status = readOptions(options, given); !status.ok())
      return status;
    std::string name = program ? program : "";
    return give(Step::open(session->impl, program ? &name : nullptr,
                           {given.unshared != 0, given.no_graph != 0, given.debug != 0,
                            given.timeline != 0}),
                out);
  });
}

void planrt_step_free(planrt_step *step) {
  if (step && step->impl->isVisited())
    step->freed = true; // planrt_step_run_visited is still at work on it
  else
    delete step;
}

const char *planrt_step_image(const planrt_step *step) {
  return step ? step->impl->image().c_str() : "";
}

planrt_status planrt_step_memory(const planrt_step *step, planrt_memory *out,
                                 planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{step, "step"}, {out, "out"}}); !status.ok())
      return status;
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

/// `next` is judged before the step begins, not when it has to be given up.
static Status runStep(Step &step, uint32_t count, const uint32_t *sequences, const int32_t *tokens,
                      int32_t *next, const Visitor *visit) {
  if (Status status = step.checkNext(next); !status.ok())
    return status;
  if (Status status = step.begin({sequences, count}, tokens, visit); !status.ok())
    return status;
  return step.wait(next);
}

planrt_status planrt_step_run(planrt_step *step, uint32_t count, const uint32_t *sequences,
                              const int32_t *tokens, int32_t *next, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{step, "step"}, {sequences, "sequences"}}); !status.ok())
      return status;
    return runStep(*step->impl, count, sequences, tokens, next, nullptr);
  });
}

planrt_status planrt_step_begin(planrt_step *step, uint32_t count, const uint32_t *sequences,
                                const int32_t *tokens, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{step, "step"}, {sequences, "sequences"}}); !status.ok())
      return status;
    return step->impl->begin({sequences, count}, tokens);
  });
}

planrt_status planrt_step_wait(planrt_step *step, int32_t *next, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{step, "step"}}); !status.ok())
      return status;
    return step->impl->wait(next);
  });
}

void planrt_step_cancel(planrt_step *step) {
  if (step)
    step->impl->cancel();
}

static planrt_launch describe(size_t index, const bundle::Launch &launch) {
  return {sizeof(planrt_launch), uint32_t(index), launch.group, launch.rule.c_str(),
          launch.kernel ? launch.kernel->c_str() : nullptr};
}

planrt_status planrt_step_run_visited(planrt_step *step, uint32_t count, const uint32_t *sequences,
                                      const int32_t *tokens, int32_t *next, planrt_visitor visit,
                                      void *user, planrt_error **error) {
  planrt_status result = guard(error, [&]() -> Status {
    if (Status status =
            require({{step, "step"}, {sequences, "sequences"}, {(void *)visit, "visit"}});
        !status.ok())
      return status;
    Visitor visitor = [&](size_t index, const bundle::Launch &launch, bool done) -> Status {
      planrt_launch info = describe(index, launch);
      if (visit(user, &info, done) == 0)
        return {};
      return makeError(ErrorKind::Cancelled, "the visitor ended the step {} group {} ({})",
                       done ? "after" : "before", launch.group, launch.rule);
    };
    return runStep(*step->impl, count, sequences, tokens, next, &visitor);
  });
  if (step && step->freed)
    delete step;
  return result;
}

planrt_status planrt_step_logits(const planrt_step *step, uint32_t row, float *out, uint64_t count,
                                 planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{step, "step"}, {out, "out"}}); !status.ok())
      return status;
    return step->impl->logits(row, {out, count});
  });
}

planrt_status planrt_step_buffer_read(const planrt_step *step, const char *edge, void *out,
                                      uint64_t bytes, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{step, "step"}, {edge, "edge"}, {out, "out"}}); !status.ok())
      return status;
    return step->impl->readBuffer(edge, {static_cast<std::byte *>(out), bytes});
  });
}

planrt_status planrt_step_slice(const planrt_step *step, uint32_t index, planrt_slice *out,
                                planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{step, "step"}, {out, "out"}}); !status.ok())
      return status;
    Result<Timeline::Slice> slice = step->impl->slice(index);
    if (!slice.ok())
      return slice.takeError();
    planrt_slice value = {};
    value.track = slice->device;
    value.start = slice->start;
    value.duration = slice->duration;
    value.launch = describe(index, step->impl->program().launch_list[index]);
    return writeStruct(value, out);
  });
}
