//===- Memory.h - names of what --plan-assign-memory leaves ---------------===//

#ifndef PLANC_PASSES_MEMORY_H
#define PLANC_PASSES_MEMORY_H

#include "llvm/ADT/StringRef.h"

namespace planc {

/// On a plan.graph: array of `#plan.buffer`, one per result of its launches and groups, in order.
inline constexpr llvm::StringLiteral kBuffersAttrName = "plan.buffers";
/// Bytes of the workspace, with and without sharing.
inline constexpr llvm::StringLiteral kWorkspaceAttrName = "plan.workspace";
inline constexpr llvm::StringLiteral kUnsharedAttrName = "plan.workspace_unshared";
/// Every buffer begins at a multiple of this.
inline constexpr int64_t kBufferAlignment = 256;

} // namespace planc

#endif // PLANC_PASSES_MEMORY_H
