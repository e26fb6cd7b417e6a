//===- Inspect.h - what is inside a bundle ---------------------------------===//
//
// `planc inspect`: the manifest as a person or a script wants to read it.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_BUNDLE_INSPECT_H
#define PLANC_LIB_BUNDLE_INSPECT_H

#include "lib/Bundle/Container.h"

namespace planc::bundle {

/// The manifest, with what follows from it: each kernel lists the `groups` that start it (ids; with
/// several programs `programs` has them apart), `buffers` of all programs stand in one list with
/// their `program`, and `workspace` is the largest of all programs.
Json inspectJson(const Bundle &bundle);

/// A summary of one screen, plus one line a kernel and target.
std::string inspectText(const Bundle &bundle);

/// How every kernel (or the one of that name) rounds, member by member, and the bound of its results
/// that follows. Fails if there is no such kernel.
Result<std::string> explainText(const Bundle &bundle, const std::string &kernel = "");

} // namespace planc::bundle

#endif // PLANC_LIB_BUNDLE_INSPECT_H
