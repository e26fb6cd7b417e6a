//===- Print.h - what kernels print ---------------------------------------===//
//
// vprintf and __assertfail, which CUDA's headers leave to the driver.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_PRINT_H
#define PLANEMU_PRINT_H

#include "runtime/emulator/Machine.h"

namespace planemu {

/// vprintf(format, arguments): operands are the result (a b32), and two generic addresses. What is
/// printed joins the CTA's output, which goes to the standard output at the next synchronisation.
void printFormatted(Warp &warp, const Inst &inst);
/// __assertfail(message, file, line, function, size): the addresses of three texts and, second to last,
/// the line (a b32). Says what failed on the standard error and ends the kernel.
void failAssertion(Warp &warp, const Inst &inst);

} // namespace planemu

#endif // PLANEMU_PRINT_H
