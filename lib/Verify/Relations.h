//===- Relations.h - what inputs are to each other --------------------------===//
//
// Private to lib/Verify. Inputs are made one by one; some mean something only together.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_RELATIONS_H
#define PLANC_LIB_VERIFY_RELATIONS_H

#include "lib/Verify/Inputs.h"

namespace planc::verify {

/// Changes inputs that are made already:
/// - where sequences fill the context, some heads attend to their first half alone;
/// - entries of block tables behind the end of their sequence name no block;
/// - entries of pools that no row reads hold NaN, so that it shows if one is loaded, be it to weigh
///   nothing.
void relateInputs(plan::KernelOp kernel, InputClass inputClass, int64_t kvBlock,
                  std::vector<Input> &inputs);

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_RELATIONS_H
