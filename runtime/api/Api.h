//===- Api.h - what the files of the C ABI share ---------------------------===//
//
// Handles are structs around shared pointers, so that they keep alive what they were made from.
// Nothing but statuses and messages leaves: `guard` turns errors and exceptions into both.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_API_API_H
#define PLANRT_API_API_H

#include "include/planrt/planrt.h"

#include "runtime/Step.h"
#include "runtime/api/Structs.h"

#include <new>

struct planrt_error {
  std::string message;
  std::string file;
};
struct planrt_bundle {
  planrt::BundlePtr impl;
};
struct planrt_device {
  planrt::DevicePtr impl;
};
struct planrt_weights {
  planrt::WeightsPtr impl;
};
struct planrt_session {
  std::shared_ptr<planrt::Session> impl;
};
struct planrt_step {
  std::unique_ptr<planrt::Step> impl;
  bool freed = false; // by its own visitor
};

namespace planrt::api {

/// Gives the status of the kind; `out`, where not null, receives the message.
planrt_status report(planrt_error **out, planc::Error error);
planrt_status reportException(planrt_error **out, const char *what);

/// Runs `body` (which gives a Status) and reports what went wrong.
template <class Body> planrt_status guard(planrt_error **error, Body body) noexcept {
  try {
    planc::Status status = body();
    return status.ok() ? PLANRT_OK : report(error, status.takeError());
  } catch (const std::bad_alloc &) {
    if (error)
      *error = new (std::nothrow) planrt_error;
    return PLANRT_ERR_MEMORY;
  } catch (const std::exception &caught) {
    return reportException(error, caught.what());
  } catch (...) {
    return PLANRT_ERR_INTERNAL;
  }
}

/// A pointer argument and its name.
struct Argument {
  const void *pointer;
  const char *name;
};
/// Refuses null pointers.
planc::Status require(std::initializer_list<Argument> arguments);

/// The value goes to `out`, inside a new handle.
template <class Handle, class T> planc::Status give(planc::Result<T> result, Handle **out) {
  if (!result.ok())
    return result.takeError();
  *out = new Handle{std::move(*result)};
  return {};
}

planc::Result<SessionOptions> sessionOptions(const planrt_session_options *options);

} // namespace planrt::api

#endif // PLANRT_API_API_H
