//===- Cycles.h - the cycles of a directed graph --------------------------===//

#ifndef PLANC_LIB_SUPPORT_CYCLES_H
#define PLANC_LIB_SUPPORT_CYCLES_H

#include <cstddef>
#include <vector>

namespace planc {

/// The strongly connected components that hold a cycle: of several vertices, or of one that is its
/// own successor. `next[v]` lists the successors of v. Vertices of a component are in ascending
/// order. Needs no recursion, so that a long chain in a file cannot exhaust the stack.
std::vector<std::vector<size_t>> findCycles(const std::vector<std::vector<size_t>> &next);

} // namespace planc

#endif // PLANC_LIB_SUPPORT_CYCLES_H
