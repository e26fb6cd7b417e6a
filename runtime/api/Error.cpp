//===- Error.cpp - statuses and messages of the C ABI -----------------------===//
//
// See Api.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/api/Api.h"

using namespace planc;
using namespace planrt;

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
  case ErrorKind::Cancelled:
    return PLANRT_ERR_CANCELLED;
  case ErrorKind::Exhausted:
    return PLANRT_ERR_EXHAUSTED;
  }
  return PLANRT_ERR_INTERNAL;
}

/// Names in files may hold anything: no NUL may end a message early, and no control sequence reach a
/// terminal.
static std::string printable(const std::string &text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text)
    if ((c >= 0 && c < ' ' && c != '\n') || c == 0x7f)
      out += fmt::format("\\x{:02x}", int(c));
    else
      out += c;
  return out;
}

planrt_status api::report(planrt_error **out, Error error) {
  planrt_status status = statusOf(error.kind);
  if (out)
    *out = new (std::nothrow) planrt_error{printable(error.message), printable(error.where)};
  return status;
}

planrt_status api::reportException(planrt_error **out, const char *what) {
  try {
    if (out)
      *out = new (std::nothrow) planrt_error{what, ""};
  } catch (...) { // no memory for the message
  }
  return PLANRT_ERR_INTERNAL;
}

Status api::require(std::initializer_list<Argument> arguments) {
  for (const Argument &argument : arguments)
    if (!argument.pointer)
      return makeError(ErrorKind::Usage, "argument \"{}\" is NULL", argument.name);
  return {};
}

const char *planrt_status_name(planrt_status status) {
  switch (status) {
#define PLANRT_CASE(Name)                                                                          \
  case Name:                                                                                       \
    return #Name;
    PLANRT_CASE(PLANRT_OK)
    PLANRT_CASE(PLANRT_ERR_INPUT)
    PLANRT_CASE(PLANRT_ERR_ARGUMENT)
    PLANRT_CASE(PLANRT_ERR_WEIGHTS)
    PLANRT_CASE(PLANRT_ERR_ENVIRONMENT)
    PLANRT_CASE(PLANRT_ERR_MEMORY)
    PLANRT_CASE(PLANRT_ERR_DEVICE)
    PLANRT_CASE(PLANRT_ERR_DEVICE_LOST)
    PLANRT_CASE(PLANRT_ERR_INTERNAL)
    PLANRT_CASE(PLANRT_ERR_CANCELLED)
    PLANRT_CASE(PLANRT_ERR_EXHAUSTED)
#undef PLANRT_CASE
  }
  return nullptr;
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
