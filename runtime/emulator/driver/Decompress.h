//===- Decompress.h - the compressions that fatbins use -------------------===//
//
// `out` has the size that must come out; false if the input is damaged or gives another size. Any
// input is safe.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_DRIVER_DECOMPRESS_H
#define PLANEMU_DRIVER_DECOMPRESS_H

#include <string>
#include <string_view>

namespace planemu {

/// One LZ4 block.
bool decompressLz4(std::string_view in, std::string &out);
/// Zstandard frames.
bool decompressZstd(std::string_view in, std::string &out);

} // namespace planemu

#endif // PLANEMU_DRIVER_DECOMPRESS_H
