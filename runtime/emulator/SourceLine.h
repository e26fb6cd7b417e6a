//===- SourceLine.h - where a line of PTX came from -----------------------===//

#ifndef PLANEMU_SOURCELINE_H
#define PLANEMU_SOURCELINE_H

#include <string>

namespace planemu {

struct PtxModule;

/// " (FILE:LINE)" of the source that `line` was compiled from, as the module's .loc and .file say, and where
/// the kernel's own source had that inlined; empty if they do not say.
std::string sourceOf(const PtxModule &module, unsigned line);

} // namespace planemu

#endif // PLANEMU_SOURCELINE_H
