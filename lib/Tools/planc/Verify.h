//===- Verify.h - planc verify ----------------------------------------------===//

#ifndef PLANC_LIB_TOOLS_PLANC_VERIFY_H
#define PLANC_LIB_TOOLS_PLANC_VERIFY_H

/// `planc verify PLAN.json... --model CONFIG.json`; `argv[0]` is "verify". Returns the exit code.
int verifyMain(int argc, char **argv);

#endif // PLANC_LIB_TOOLS_PLANC_VERIFY_H
