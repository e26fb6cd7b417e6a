//===- Json.h - a strict JSON parser --------------------------------------===//
//
// nlohmann's parser accepts duplicate keys, nesting without a limit and a NUL byte as the end of
// the input. Whatever comes from outside is therefore read here: one value, nothing after it, no
// duplicate key, a bounded depth, and an error that says at which byte.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_SUPPORT_JSON_H
#define PLANC_LIB_SUPPORT_JSON_H

#include "lib/Support/Error.h"

#include <nlohmann/json.hpp>

#include <string_view>

namespace planc {

/// Keeps the order of keys, so that what is written is reproducible.
using Json = nlohmann::ordered_json;

/// Parses `text`; the error's message names the byte, not the file.
Result<Json> parseJson(std::string_view text, unsigned maxDepth = 64);

} // namespace planc

#endif // PLANC_LIB_SUPPORT_JSON_H
