//===- Session.cpp - sessions and sequences, for C --------------------------===//
//
// See planrt.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/api/Api.h"

using namespace planc;
using namespace planrt;
using namespace planrt::api;

Result<SessionOptions> api::sessionOptions(const planrt_session_options *options) {
  planrt_session_options given;
  if (Status status = readOptions(options, given); !status.ok())
    return status.takeError();
  return SessionOptions{given.sequences ? given.sequences : 1, given.in_place != 0, given.kv_tokens,
                        given.slots};
}

planrt_status planrt_session_open(const planrt_weights *weights,
                                  const planrt_session_options *options, planrt_session **out,
                                  planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{weights, "weights"}, {out, "out"}}); !status.ok())
      return status;
    Result<SessionOptions> given = sessionOptions(options);
    if (!given.ok())
      return given.takeError();
    return give(Session::open(weights->impl, *given), out);
  });
}

void planrt_session_free(planrt_session *session) { delete session; }

planrt_status planrt_session_get_usage(const planrt_session *session, planrt_session_usage *out,
                                       planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{session, "session"}, {out, "out"}}); !status.ok())
      return status;
    const Session &impl = *session->impl;
    planrt_session_usage usage = {};
    usage.sequences = impl.sequences();
    usage.free_sequences = impl.freeSequences();
    usage.slots = uint32_t(impl.slotPool().total());
    usage.free_slots = uint32_t(impl.slotPool().available());
    usage.kv_blocks = impl.blockPool().total();
    usage.free_kv_blocks = impl.blockPool().available();
    return writeStruct(usage, out);
  });
}

static Status giveSequence(Result<uint32_t> sequence, uint32_t *out) {
  if (!sequence.ok())
    return sequence.takeError();
  *out = *sequence;
  return {};
}

planrt_status planrt_sequence_create(planrt_session *session, uint32_t *out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{session, "session"}, {out, "out"}}); !status.ok())
      return status;
    return giveSequence(session->impl->create(), out);
  });
}

planrt_status planrt_sequence_fork(planrt_session *session, uint32_t sequence, uint32_t *out,
                                   planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{session, "session"}, {out, "out"}}); !status.ok())
      return status;
    return giveSequence(session->impl->fork(sequence), out);
  });
}

planrt_status planrt_sequence_truncate(planrt_session *session, uint32_t sequence, int64_t length,
                                       planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{session, "session"}}); !status.ok())
      return status;
    return session->impl->truncate(sequence, length);
  });
}

planrt_status planrt_sequence_free(planrt_session *session, uint32_t sequence,
                                   planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{session, "session"}}); !status.ok())
      return status;
    return session->impl->release(sequence);
  });
}

int64_t planrt_sequence_length(const planrt_session *session, uint32_t sequence) {
  return session ? session->impl->length(sequence) : -1;
}

planrt_status planrt_session_state_read(const planrt_session *session, const char *name,
                                        uint64_t offset, void *out, uint64_t bytes,
                                        planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{session, "session"}, {name, "name"}, {out, "out"}}); !status.ok())
      return status;
    return session->impl->readPool(name, offset, {static_cast<std::byte *>(out), bytes});
  });
}

uint64_t planrt_session_state_bytes(const planrt_session *session, const char *name) {
  return session && name ? session->impl->poolBytes(name) : 0;
}
