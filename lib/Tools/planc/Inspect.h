//===- Inspect.h - planc inspect --------------------------------------------===//

#ifndef PLANC_LIB_TOOLS_PLANC_INSPECT_H
#define PLANC_LIB_TOOLS_PLANC_INSPECT_H

/// `planc inspect OUT.bundle [--json]`; `argv[0]` is "inspect". Returns the exit code.
int inspectMain(int argc, char **argv);

#endif // PLANC_LIB_TOOLS_PLANC_INSPECT_H
