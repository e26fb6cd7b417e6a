//===- LinkImages.h - one PTX module of several ---------------------------===//

#ifndef PLANEMU_DRIVER_LINKIMAGES_H
#define PLANEMU_DRIVER_LINKIMAGES_H

#include <string>
#include <vector>

namespace planemu {

/// The text of a module with the symbols of all `images`, each of which can be read. A symbol that one
/// image defines is what .extern means in others; of several .weak definitions the first counts, if
/// there is no other; a symbol of an image's own gets another name where others use it too. Throws
/// PtxError if a symbol is defined twice. What nobody defines is found when the module is loaded.
std::string linkImages(const std::vector<std::string> &images);

} // namespace planemu

#endif // PLANEMU_DRIVER_LINKIMAGES_H
