//===- ErrorNames.cpp - cuGetErrorName, cuGetErrorString ------------------===//
//
// The texts of Results.def. What happened in detail is in planemu_last_error.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Abi.h"

using namespace planemu;

PLANEMU_EXPORT cuGetErrorName(CUresult error, const char **text) {
  if (!text)
    return CUDA_ERROR_INVALID_VALUE;
  switch (error) {
#define PLANEMU_RESULT(Name, Value, Text)                                                          \
  case Name:                                                                                       \
    *text = #Name;                                                                                 \
    return CUDA_SUCCESS;
#include "runtime/emulator/driver/Results.def"
  }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

PLANEMU_EXPORT cuGetErrorString(CUresult error, const char **text) {
  if (!text)
    return CUDA_ERROR_INVALID_VALUE;
  switch (error) {
#define PLANEMU_RESULT(Name, Value, Text)                                                          \
  case Name:                                                                                       \
    *text = Text;                                                                                  \
    return CUDA_SUCCESS;
#include "runtime/emulator/driver/Results.def"
  }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}
