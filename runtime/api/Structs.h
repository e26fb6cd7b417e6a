//===- Structs.h - structs that carry their size ---------------------------===//
//
// A program may have been built with an older planrt.h, whose structs end earlier, or with a newer
// one, whose structs have fields that this library does not know. Any other size is a mistake (an
// unset field, a struct of another language that is laid out differently), and is refused by naming
// the sizes that are right.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_API_STRUCTS_H
#define PLANRT_API_STRUCTS_H

#include "include/planrt/planrt.h"

#include "lib/Support/Error.h"

#include <cstddef>
#include <cstring>
#include <span>

namespace planrt::api {

/// The name of a struct and the sizes at which it may end: in front of each of these fields.
template <class Struct> struct Layout;

#define PLANRT_LAYOUT(Struct, ...)                                                                 \
  template <> struct Layout<Struct> {                                                              \
    using S = Struct;                                                                              \
    static constexpr const char *name = #Struct;                                                   \
    static constexpr size_t sizes[] = {__VA_ARGS__ sizeof(Struct)};                                \
  };
#define PLANRT_BEFORE(Field) offsetof(S, Field),

// Fields that fill a word together with the one before them are not among them: no compiler makes a
// struct that ends between the two.
PLANRT_LAYOUT(planrt_program_info,
              PLANRT_BEFORE(rows) PLANRT_BEFORE(launches) PLANRT_BEFORE(vocab)
                  PLANRT_BEFORE(max_context) PLANRT_BEFORE(kv_block) PLANRT_BEFORE(mode))
PLANRT_LAYOUT(planrt_device_options,
              PLANRT_BEFORE(schedule_seed) PLANRT_BEFORE(target) PLANRT_BEFORE(checks)
                  PLANRT_BEFORE(log) PLANRT_BEFORE(log_user))
PLANRT_LAYOUT(planrt_weights_options, PLANRT_BEFORE(progress_user))
PLANRT_LAYOUT(planrt_session_options, PLANRT_BEFORE(kv_tokens) PLANRT_BEFORE(slots))
PLANRT_LAYOUT(planrt_memory, PLANRT_BEFORE(host_weights) PLANRT_BEFORE(states) PLANRT_BEFORE(kv)
                                 PLANRT_BEFORE(workspace) PLANRT_BEFORE(scratch))
PLANRT_LAYOUT(planrt_session_usage,
              PLANRT_BEFORE(slots) PLANRT_BEFORE(kv_blocks) PLANRT_BEFORE(free_kv_blocks))
PLANRT_LAYOUT(planrt_step_options, PLANRT_BEFORE(debug))
PLANRT_LAYOUT(planrt_slice, PLANRT_BEFORE(start) PLANRT_BEFORE(duration) PLANRT_BEFORE(launch))

#undef PLANRT_BEFORE
#undef PLANRT_LAYOUT

/// Success for a size of an older planrt, of this one, or of a newer one within reason.
planc::Status checkSize(const char *name, size_t size, std::span<const size_t> right);
/// Refuses what a newer program sets behind the `known` bytes.
planc::Status checkRest(const char *name, const void *given, size_t size, size_t known);

/// What the caller's version of an options struct has; zero behind it.
template <class Options> planc::Status readOptions(const Options *given, Options &out) {
  using L = Layout<Options>;
  std::memset(&out, 0, sizeof out);
  if (!given)
    return {};
  if (planc::Status status = checkSize(L::name, given->size, L::sizes); !status.ok())
    return status;
  if (planc::Status status = checkRest(L::name, given, given->size, sizeof out); !status.ok())
    return status;
  std::memcpy(&out, given, std::min(given->size, sizeof out));
  return {};
}

/// Fills an output struct as far as the caller's version of it goes.
template <class Struct> planc::Status writeStruct(Struct value, Struct *out) {
  using L = Layout<Struct>;
  if (planc::Status status = checkSize(L::name, out->size, L::sizes); !status.ok())
    return status;
  value.size = std::min(out->size, sizeof value);
  std::memcpy(out, &value, value.size);
  return {};
}

} // namespace planrt::api

#endif // PLANRT_API_STRUCTS_H
