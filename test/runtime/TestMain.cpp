//===- TestMain.cpp - the tests of planrt -----------------------------------===//
//
// Run twice: on the fake driver (PLANRT_TEST_DEVICE=cuda) and on the emulator.
//
//===----------------------------------------------------------------------===//
#include "test/unit/Check.h"

CHECK_MAIN
