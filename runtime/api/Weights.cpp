//===- Weights.cpp - weights, for C -----------------------------------------===//
//
// See planrt.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/api/Api.h"

using namespace planc;
using namespace planrt;
using namespace planrt::api;

static Result<Progress> progressOf(const planrt_weights_options *options) {
  planrt_weights_options given;
  if (Status status = readOptions(options, given); !status.ok())
    return status.takeError();
  Progress progress;
  if (given.progress)
    progress = [call = given.progress, user = given.progress_user](uint64_t done, uint64_t total) {
      return call(user, done, total) == 0;
    };
  return progress;
}

planrt_status planrt_weights_open(const planrt_bundle *bundle, const planrt_device *device,
                                  const char *path, const planrt_weights_options *options,
                                  planrt_weights **out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status =
            require({{bundle, "bundle"}, {device, "device"}, {path, "path"}, {out, "out"}});
        !status.ok())
      return status;
    Result<Progress> progress = progressOf(options);
    if (!progress.ok())
      return progress.takeError();
    return give(Weights::open(bundle->impl, device->impl, path, *progress), out);
  });
}

planrt_status planrt_weights_random(const planrt_bundle *bundle, const planrt_device *device,
                                    uint64_t seed, const planrt_weights_options *options,
                                    planrt_weights **out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{bundle, "bundle"}, {device, "device"}, {out, "out"}});
        !status.ok())
      return status;
    Result<Progress> progress = progressOf(options);
    if (!progress.ok())
      return progress.takeError();
    return give(Weights::random(bundle->impl, device->impl, seed, *progress), out);
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
    if (Status status = require({{weights, "weights"}, {name, "name"}, {out, "out"}}); !status.ok())
      return status;
    return weights->impl->read(name, scales != 0, offset, {static_cast<std::byte *>(out), bytes});
  });
}
