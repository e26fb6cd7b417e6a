//===- Images.h - which image of a kernel a device takes --------------------===//
//
// The choice is the same on every device: the cubin made for its architecture if the bundle has one
// and the driver takes it; else, only when the driver says that the cubin is for another GPU, the
// PTX of the highest target not above it.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_IMAGES_H
#define PLANRT_IMAGES_H

#include "runtime/Weights.h"

namespace planrt {

/// The target whose PTX a device of compute capability `sm` takes: the highest that is not above
/// it; of two with one number the specific one. Null if there is none.
const planc::bundle::Target *choosePtx(const planc::bundle::Manifest &manifest, unsigned sm);

/// The targets whose cubins of the kernel are for exactly `sm`, in order.
std::vector<const planc::bundle::Target *> cubinTargets(const planc::bundle::Manifest &manifest,
                                                        const planc::bundle::Kernel &kernel,
                                                        unsigned sm);

/// The driver is new enough for the kernel's PTX of this target.
planc::Status checkPtxVersion(const planc::bundle::Bundle &bundle, const Device &device,
                              const planc::bundle::Kernel &kernel,
                              const planc::bundle::Target &target);

/// There is an image for the device, and if it is PTX, its driver is new enough. That a driver takes
/// a cubin shows only when it is loaded.
planc::Status checkImage(const planc::bundle::Bundle &bundle, const Device &device,
                         const planc::bundle::Kernel &kernel);

/// What to say when there is none.
planc::Error noImage(const planc::bundle::Manifest &manifest, const Device &device);

} // namespace planrt

#endif // PLANRT_IMAGES_H
