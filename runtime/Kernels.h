//===- Kernels.h - a program's kernels, loaded on a device -----------------===//
//
// Loads of each kernel the image that Images.h says, and gets its function.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_KERNELS_H
#define PLANRT_KERNELS_H

#include "runtime/Weights.h"

namespace planrt {

class Kernels {
public:
  struct Loaded {
    cudaabi::CUfunction function = nullptr;
    const planc::bundle::KernelTarget *target = nullptr;
  };

  /// Loads every kernel that the program starts.
  static planc::Result<std::unique_ptr<Kernels>> load(BundlePtr bundle, DevicePtr device,
                                                      const planc::bundle::Program &program);
  ~Kernels();

  const Loaded &find(const std::string &name) const { return loaded.find(name)->second; }
  /// "sm_90 cubin", "sm_121 ptx"; all that were taken, if they differ.
  const std::string &image() const { return choice; }

private:
  Kernels(BundlePtr bundle, DevicePtr device)
      : bundle(std::move(bundle)), device(std::move(device)) {}
  planc::Status add(const planc::bundle::Kernel &kernel);
  planc::Result<CUresult> tryImage(const planc::bundle::Kernel &kernel, const std::string &target,
                                   bool cubin);

  BundlePtr bundle;
  DevicePtr device;
  std::vector<cudaabi::CUmodule> modules;
  std::map<std::string, Loaded, std::less<>> loaded;
  std::string choice;
};

} // namespace planrt

#endif // PLANRT_KERNELS_H
