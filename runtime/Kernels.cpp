//===- Kernels.cpp - a program's kernels, loaded on a device ---------------===//
//
// No silent fallback: PTX is compiled in place of a cubin only where the driver has said that there
// is no binary for this GPU, and what was taken can be asked for.
//
//===----------------------------------------------------------------------===//
#include "runtime/Kernels.h"

#include "runtime/Images.h"

using namespace planc;
using namespace planrt;
using namespace cudaabi;

/// Shared memory above this has to be asked for.
static constexpr uint32_t plainSharedBytes = 48 * 1024;

Result<std::unique_ptr<Kernels>> Kernels::load(BundlePtr bundle, DevicePtr device,
                                               const bundle::Program &program) {
  std::unique_ptr<Kernels> kernels(new Kernels(std::move(bundle), device));
  Device::Scope scope(*device);
  for (const bundle::Launch &launch : program.launch_list)
    if (launch.kernel && !kernels->loaded.count(*launch.kernel))
      if (Status status = kernels->add(*kernels->bundle->manifest().findKernel(*launch.kernel));
          !status.ok())
        return status.takeError();
  return kernels;
}

Kernels::~Kernels() {
  Device::Scope scope(*device);
  for (CUmodule module : modules)
    device->driver()->cuModuleUnload(module);
}

/// Loads one image; the result is the driver's, for the caller to judge "no binary for this GPU".
Result<CUresult> Kernels::tryImage(const bundle::Kernel &kernel, const std::string &target,
                                   bool cubin) {
  const Driver &api = device->driver();
  const bundle::KernelTarget &image = kernel.targets.at(target);
  // A copy, since PTX has to end with a NUL byte and cubins have to be aligned.
  std::string bytes(asText(bundle->section(cubin ? *image.cubin : image.ptx)));
  char log[8192] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  CUmodule module = nullptr;
  CUresult result = api->cuModuleLoadDataEx(&module, bytes.c_str(), 2, options, values);
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    return result;
  std::string who =
      fmt::format("kernel \"{}\", {} {}", kernel.name, target, cubin ? "cubin" : "ptx");
  log[sizeof log - 1] = 0;
  if (Status status = device->check(result, who); !status.ok()) {
    Error error = status.takeError();
    if (log[0])
      error.message += fmt::format("\n{}", log);
    return error;
  }
  modules.push_back(module);

  Loaded entry;
  entry.target = &image;
  result = api->cuModuleGetFunction(&entry.function, module, image.entry.c_str());
  if (result == CUDA_SUCCESS && image.shared_bytes + image.static_shared_bytes > plainSharedBytes)
    result = api->cuFuncSetAttribute(
        entry.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(image.shared_bytes));
  if (Status status = device->check(result, who + ", entry \"" + image.entry + "\""); !status.ok())
    return status.takeError();
  loaded[kernel.name] = entry;

  std::string taken = target + (cubin ? " cubin" : " ptx");
  device->log("kernel \"{}\": {}", kernel.name, taken);
  if (choice.find(taken) == std::string::npos)
    choice += choice.empty() ? taken : ", " + taken;
  return CUDA_SUCCESS;
}

Status Kernels::add(const bundle::Kernel &kernel) {
  const bundle::Manifest &manifest = bundle->manifest();
  for (const bundle::Target *target : cubinTargets(manifest, kernel, device->sm())) {
    Result<CUresult> result = tryImage(kernel, target->name, true);
    if (!result.ok() || *result == CUDA_SUCCESS)
      return result.ok() ? Status() : result.takeError();
  }
  const bundle::Target *target = choosePtx(manifest, device->sm());
  if (!target)
    return noImage(manifest, *device);
  if (Status status = checkPtxVersion(*bundle, *device, kernel, *target); !status.ok())
    return status;
  Result<CUresult> result = tryImage(kernel, target->name, false);
  if (result.ok() && *result != CUDA_SUCCESS)
    return device->driver().error(*result, fmt::format("kernel \"{}\", {} ptx on sm_{}",
                                                       kernel.name, target->name, device->sm()));
  return result.ok() ? Status() : result.takeError();
}
