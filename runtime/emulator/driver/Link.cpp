//===- Link.cpp - the just-in-time linker ---------------------------------===//
//
// On a GPU it makes a cubin of PTX and other images. Here the result is PTX, which cuModuleLoadData
// takes as well: the one image, or one of all (LinkImages.cpp).
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"
#include "runtime/emulator/driver/LinkImages.h"

using namespace planemu;

PLANEMU_EXPORT cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values,
                               CUlinkState *handle) {
  PLANEMU_ENTER_CONTEXT;
  if (!handle || (count && (!options || !values)))
    return CUDA_ERROR_INVALID_VALUE;
  auto link = std::make_shared<LinkState>();
  link->options.assign(options, options + count);
  link->values.assign(values, values + count);
  *handle = driver.links.add(std::move(link));
  return CUDA_SUCCESS;
}

static CUresult failBy(LinkState &link, const PtxError &error) {
  std::string text = std::string("ptx: error: ") + error.what();
  writeLog(text, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
           static_cast<unsigned>(link.options.size()), link.options.data(), link.values.data());
  return failWith(CUDA_ERROR_INVALID_PTX, std::move(text));
}

/// Takes the PTX as one of the state's images, if it can be read.
static CUresult add(LinkState &link, std::string ptx) {
  try {
    parsePtx(ptx);
  } catch (const PtxError &error) {
    return failBy(link, error);
  }
  link.images.push_back(std::move(ptx));
  return CUDA_SUCCESS;
}

static CUresult checkType(CUjitInputType type) {
  if (type < CU_JIT_INPUT_CUBIN || type > CU_JIT_INPUT_NVVM)
    return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_JIT_INPUT_CUBIN)
    return failWith(CUDA_ERROR_NO_BINARY_FOR_GPU, "the emulator links no cubins");
  if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
    return failWith(CUDA_ERROR_NOT_SUPPORTED, "the emulator links PTX and fatbins only");
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void *data,
                                std::size_t bytes, const char *, unsigned count,
                                CUjit_option *options, void **values) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<LinkState> link = driver.links.find(handle);
  if (!link)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!data || !bytes || (count && (!options || !values)))
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(checkType(type));
  std::string ptx;
  if (type == CU_JIT_INPUT_FATBINARY) {
    PLANEMU_TRY(readPtxImage(*driver.model, data, ptx));
  } else {
    ptx.assign(static_cast<const char *>(data), bytes);
    if (std::size_t end = ptx.find('\0'); end != std::string::npos)
      ptx.resize(end);
  }
  return add(*link, std::move(ptx));
}

PLANEMU_EXPORT cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char *name,
                                unsigned count, CUjit_option *options, void **values) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<LinkState> link = driver.links.find(handle);
  if (!link)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!name || (count && (!options || !values)))
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(checkType(type));
  std::string ptx;
  PLANEMU_TRY(readPtxFile(*driver.model, name, ptx));
  return add(*link, std::move(ptx));
}

PLANEMU_EXPORT cuLinkComplete(CUlinkState handle, void **image, std::size_t *bytes) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<LinkState> link = driver.links.find(handle);
  if (!link)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!image || link->images.empty())
    return CUDA_ERROR_INVALID_VALUE;
  try {
    link->ptx = linkImages(link->images);
  } catch (const PtxError &error) {
    return failBy(*link, error);
  }
  *image = link->ptx.data(); // lives as long as the state
  if (bytes)
    *bytes = link->ptx.size() + 1;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLinkDestroy(CUlinkState handle) {
  PLANEMU_ENTER_CONTEXT;
  return driver.links.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
