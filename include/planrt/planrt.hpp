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
//   uint32_t sequence = session.create();
//   std::vector<int32_t> next = step.run({sequence}, {5});
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

/// Calls with where to put the error; throws what comes there.
template <class Call> void call(Call body) {
  planrt_error *error = nullptr;
  planrt_status status = body(&error);
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
    call([&](planrt_error **error) { return open(&made, error); });
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

  Bundle(const void *data, size_t bytes, const std::string &name)
      : Owner([&](auto **out, auto **error) {
          return planrt_bundle_open_memory(data, bytes, name.c_str(), out, error);
        }) {}

  /// The program of `mode` ("": of any) with the fewest rows that are enough.
  uint32_t find(const std::string &mode, uint32_t rows) const {
    uint32_t index = 0;
    detail::call([&](auto **error) {
      return planrt_bundle_find_program(get(), mode.empty() ? nullptr : mode.c_str(), rows, &index,
                                        error);
    });
    return index;
  }
  planrt_memory memory(uint32_t program, const planrt_session_options *options = nullptr) const {
    planrt_memory result = {};
    result.size = sizeof result;
    detail::call([&](auto **error) {
      return planrt_program_memory(get(), program, options, &result, error);
    });
    return result;
  }

  std::vector<planrt_program_info> programs() const {
    std::vector<planrt_program_info> list(planrt_bundle_program_count(get()));
    for (uint32_t i = 0; i < list.size(); ++i) {
      list[i].size = sizeof list[i];
      detail::call(
          [&](auto **error) { return planrt_bundle_program_info(get(), i, &list[i], error); });
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
  Weights(const Bundle &bundle, const Device &device, const std::string &path,
          const planrt_weights_options *options = nullptr)
      : Owner([&](auto **out, auto **error) {
          return planrt_weights_open(bundle.get(), device.get(), path.c_str(), options, out, error);
        }) {}
  /// Random ones.
  Weights(const Bundle &bundle, const Device &device, uint64_t seed,
          const planrt_weights_options *options = nullptr)
      : Owner([&](auto **out, auto **error) {
          return planrt_weights_random(bundle.get(), device.get(), seed, options, out, error);
        }) {}
};

class Session : public detail::Owner<planrt_session, planrt_session_free> {
public:
  explicit Session(const Weights &weights, const planrt_session_options *options = nullptr)
      : Owner([&](auto **out, auto **error) {
          return planrt_session_open(weights.get(), options, out, error);
        }) {}

  uint32_t create() {
    uint32_t sequence = 0;
    detail::call([&](auto **error) { return planrt_sequence_create(get(), &sequence, error); });
    return sequence;
  }
  uint32_t fork(uint32_t sequence) {
    uint32_t forked = 0;
    detail::call(
        [&](auto **error) { return planrt_sequence_fork(get(), sequence, &forked, error); });
    return forked;
  }
  void truncate(uint32_t sequence, int64_t length) {
    detail::call(
        [&](auto **error) { return planrt_sequence_truncate(get(), sequence, length, error); });
  }
  void free(uint32_t sequence) {
    detail::call([&](auto **error) { return planrt_sequence_free(get(), sequence, error); });
  }
  int64_t length(uint32_t sequence) const { return planrt_sequence_length(get(), sequence); }
  planrt_session_usage usage() const {
    planrt_session_usage result = {};
    result.size = sizeof result;
    detail::call([&](auto **error) { return planrt_session_get_usage(get(), &result, error); });
    return result;
  }
};

class Step : public detail::Owner<planrt_step, planrt_step_free> {
public:
  explicit Step(Session &session, const char *program = nullptr,
                const planrt_step_options *options = nullptr)
      : Owner([&](auto **out, auto **error) {
          return planrt_step_open(session.get(), program, options, out, error);
        }) {}

  /// One token for each sequence, or (no tokens) the one each has chosen in its last step; gives the
  /// token of the highest logit of each.
  std::vector<int32_t> run(const std::vector<uint32_t> &sequences,
                           const std::vector<int32_t> &tokens = {}) {
    std::vector<int32_t> next(sequences.size());
    const int32_t *given = tokensOf(sequences, tokens);
    detail::call([&](auto **error) {
      return planrt_step_run(get(), uint32_t(sequences.size()), sequences.data(), given,
                             next.data(), error);
    });
    return next;
  }
  /// The two halves of run.
  void begin(const std::vector<uint32_t> &sequences, const std::vector<int32_t> &tokens = {}) {
    const int32_t *given = tokensOf(sequences, tokens);
    detail::call([&](auto **error) {
      return planrt_step_begin(get(), uint32_t(sequences.size()), sequences.data(), given, error);
    });
    begun = sequences.size();
  }
  std::vector<int32_t> wait() {
    std::vector<int32_t> next(begun);
    detail::call([&](auto **error) { return planrt_step_wait(get(), next.data(), error); });
    return next;
  }
  /// From any thread.
  void cancel() noexcept { planrt_step_cancel(get()); }

  std::vector<float> logits(uint32_t row, size_t vocab) const {
    std::vector<float> values(vocab);
    detail::call([&](auto **error) {
      return planrt_step_logits(get(), row, values.data(), values.size(), error);
    });
    return values;
  }
  std::string image() const { return planrt_step_image(get()); }

private:
  static const int32_t *tokensOf(const std::vector<uint32_t> &sequences,
                                 const std::vector<int32_t> &tokens) {
    if (!tokens.empty() && sequences.size() != tokens.size())
      throw Error(PLANRT_ERR_ARGUMENT, "as many tokens as sequences are expected");
    return tokens.empty() ? nullptr : tokens.data();
  }

  size_t begun = 0; // sequences of the step that has begun
};

} // namespace planrt

#endif // PLANRT_PLANRT_HPP
