//===- planrt.hpp - planrt.h for C++ ---------------------------------------===//
//
// Handles that free themselves and errors as exceptions, nothing more: everything is said in
// planrt.h. Header only, C++17; it adds nothing to the library's ABI.
//
//   planrt::Bundle bundle("model.bundle");
//   planrt::Device device("emulator");
//   planrt::Weights weights(bundle, device, "checkpoint/");
//   planrt::Session session(weights);
//   planrt::Step step(session);
//   std::vector<int32_t> next = step.run({0}, {5});
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_PLANRT_HPP
#define PLANRT_PLANRT_HPP

#include "planrt.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace planrt {

/// What a call threw: its message, with the file at fault before it, and its status.
class Error : public std::runtime_error {
public:
  Error(planrt_status status, const std::string &message)
      : std::runtime_error(message), code(status) {}
  planrt_status status() const noexcept { return code; }

private:
  planrt_status code;
};

namespace detail {

/// Throws unless `status` is PLANRT_OK; takes the error. By reference: the call that gives the
/// status may be evaluated after a copy of the pointer would be.
inline void check(planrt_status status, planrt_error *&error) {
  if (status == PLANRT_OK)
    return;
  std::string file = planrt_error_file(error), message = planrt_error_message(error);
  planrt_error_free(error);
  throw Error(status, file.empty() ? message : file + ": " + message);
}

template <class Handle, void (*Free)(Handle *)> class Owner {
public:
  Handle *get() const noexcept { return handle.get(); }

protected:
  /// `open` is called with where to put the handle and the error.
  template <class Open> explicit Owner(Open open) {
    Handle *made = nullptr;
    planrt_error *error = nullptr;
    check(open(&made, &error), error);
    handle.reset(made);
  }

private:
  struct Deleter {
    void operator()(Handle *owned) const { Free(owned); }
  };
  std::unique_ptr<Handle, Deleter> handle;
};

} // namespace detail

class Bundle : public detail::Owner<planrt_bundle, planrt_bundle_free> {
public:
  explicit Bundle(const std::string &path)
      : Owner([&](auto **out, auto **error) {
          return planrt_bundle_open(path.c_str(), out, error);
        }) {}

  std::vector<planrt_program_info> programs() const {
    std::vector<planrt_program_info> list(planrt_bundle_program_count(get()));
    for (uint32_t i = 0; i < list.size(); ++i) {
      planrt_error *error = nullptr;
      list[i].size = sizeof list[i];
      detail::check(planrt_bundle_program_info(get(), i, &list[i], &error), error);
    }
    return list;
  }
};

class Device : public detail::Owner<planrt_device, planrt_device_free> {
public:
  explicit Device(const std::string &name, const planrt_device_options *options = nullptr)
      : Owner([&](auto **out, auto **error) {
          return planrt_device_open(name.c_str(), options, out, error);
        }) {}

  /// What the emulator's checks have found.
  std::vector<std::string> findings() const {
    std::vector<std::string> list(planrt_device_finding_count(get()));
    for (size_t i = 0; i < list.size(); ++i)
      if (const char *text = planrt_device_finding(get(), i))
        list[i] = text;
    return list;
  }
  /// The emulator's counters as JSON text; "" if they were not asked for.
  std::string counters() const {
    const char *text = planrt_device_counters(get());
    return text ? text : "";
  }
};

class Weights : public detail::Owner<planrt_weights, planrt_weights_free> {
public:
  Weights(const Bundle &bundle, const Device &device, const std::string &path)
      : Owner([&](auto **out, auto **error) {
          return planrt_weights_open(bundle.get(), device.get(), path.c_str(), out, error);
        }) {}
  /// Random ones.
  Weights(const Bundle &bundle, const Device &device, uint64_t seed)
      : Owner([&](auto **out, auto **error) {
          return planrt_weights_random(bundle.get(), device.get(), seed, out, error);
        }) {}
};

class Session : public detail::Owner<planrt_session, planrt_session_free> {
public:
  explicit Session(const Weights &weights, const planrt_session_options *options = nullptr)
      : Owner([&](auto **out, auto **error) {
          return planrt_session_open(weights.get(), options, out, error);
        }) {}

  void reset(uint32_t sequence) {
    planrt_error *error = nullptr;
    detail::check(planrt_session_reset(get(), sequence, &error), error);
  }
  int64_t length(uint32_t sequence) const { return planrt_session_length(get(), sequence); }
};

class Step : public detail::Owner<planrt_step, planrt_step_free> {
public:
  explicit Step(Session &session, const char *program = nullptr,
                const planrt_step_options *options = nullptr)
      : Owner([&](auto **out, auto **error) {
          return planrt_step_open(session.get(), program, options, out, error);
        }) {}

  /// One token for each sequence; gives the token of the highest logit of each.
  std::vector<int32_t> run(const std::vector<uint32_t> &sequences,
                           const std::vector<int32_t> &tokens) {
    if (sequences.size() != tokens.size())
      throw Error(PLANRT_ERR_ARGUMENT, "as many tokens as sequences are expected");
    std::vector<int32_t> next(sequences.size());
    planrt_error *error = nullptr;
    detail::check(planrt_step_run(get(), uint32_t(sequences.size()), sequences.data(),
                                  tokens.data(), next.data(), &error),
                  error);
    return next;
  }
  std::vector<float> logits(uint32_t row, size_t vocab) const {
    std::vector<float> values(vocab);
    planrt_error *error = nullptr;
    detail::check(planrt_step_logits(get(), row, values.data(), values.size(), &error), error);
    return values;
  }
  std::string image() const { return planrt_step_image(get()); }
};

} // namespace planrt

#endif // PLANRT_PLANRT_HPP
