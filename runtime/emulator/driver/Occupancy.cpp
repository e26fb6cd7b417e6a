//===- Occupancy.cpp - blocks that fit on a multiprocessor ----------------===//
//
// The rules of the CUDA occupancy calculator for sm_80 and later: threads, blocks, shared memory in
// units of 128 bytes plus 1 KiB a block, registers in units of 256 a warp. How many registers a
// kernel needs is known to ptxas only. The emulator's count is its own and may be higher, so it is
// never the reason that not even one block fits.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <algorithm>

using namespace planemu;

static std::uint64_t roundUp(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

static constexpr std::uint64_t ReservedShared = 1024, SharedUnit = 128;

int planemu::residentBlocks(const DeviceModel &model, const FunctionHandle &function,
                            unsigned threads, std::uint64_t dynamicShared) {
  const Kernel &kernel = *function.kernel;
  if (!threads || threads > kernel.maxThreads || dynamicShared > function.dynamicSharedLimit)
    return 0;
  constexpr std::uint64_t Registers = 65536;
  std::uint64_t warps = roundUp(threads, 32) / 32;
  std::uint64_t shared = roundUp(kernel.staticShared + dynamicShared, SharedUnit) + ReservedShared;
  std::uint64_t most = Registers / (warps * 32) / 8 * 8; // a thread's share if there is one block
  std::uint64_t registers = std::min<std::uint64_t>({kernel.registersUsed, most, 255});
  registers = roundUp(std::max<std::uint64_t>(registers, 16) * 32, 256) * warps;
  std::uint64_t blocks = std::min<std::uint64_t>(
      {static_cast<std::uint64_t>(model.blocksPerMultiprocessor),
       static_cast<std::uint64_t>(model.threadsPerMultiprocessor) / (warps * 32),
       static_cast<std::uint64_t>(model.sharedPerMultiprocessor) / shared,
       std::max<std::uint64_t>(1, Registers / registers)});
  return static_cast<int>(blocks);
}

PLANEMU_EXPORT cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle,
                                                                    int threads, std::size_t shared,
                                                                    unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!blocks || threads <= 0 ||
      (flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)))
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<FunctionHandle> function = findFunction(driver, handle);
  if (!function)
    return CUDA_ERROR_INVALID_HANDLE;
  *blocks = residentBlocks(*driver.model, *function, static_cast<unsigned>(threads), shared);
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                           int threads, std::size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

PLANEMU_EXPORT cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
                                                         CUoccupancyB2DSize sharedOf,
                                                         std::size_t shared, int limit,
                                                         unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!grid || !block || limit < 0 ||
      (flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)))
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<FunctionHandle> function = findFunction(driver, handle);
  if (!function)
    return CUDA_ERROR_INVALID_HANDLE;
  int most = static_cast<int>(function->kernel->maxThreads);
  if (limit)
    most = std::min(most, limit);
  // The largest block of those that keep the most threads resident. The program's function is
  // called without the lock, and may call the driver.
  int bestThreads = 0;
  *grid = *block = 0;
  for (int threads = (most + 31) / 32 * 32; threads > 0; threads -= 32) {
    int size = std::min(threads, most);
    if (sharedOf) {
      lock.unlock();
      shared = sharedOf(size);
      lock.lock();
    }
    int blocks = residentBlocks(*driver.model, *function, static_cast<unsigned>(size), shared);
    if (blocks * size <= bestThreads)
      continue;
    bestThreads = blocks * size;
    *block = size;
    *grid = blocks * driver.model->multiprocessors;
  }
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                                CUoccupancyB2DSize sharedOf, std::size_t shared,
                                                int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, sharedOf, shared, limit,
                                                   0);
}

PLANEMU_EXPORT cuOccupancyAvailableDynamicSMemPerBlock(std::size_t *bytes, CUfunction handle,
                                                       int blocks, int threads) {
  PLANEMU_ENTER_CONTEXT;
  if (!bytes || blocks <= 0 || threads <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<FunctionHandle> function = findFunction(driver, handle);
  if (!function)
    return CUDA_ERROR_INVALID_HANDLE;
  if (residentBlocks(*driver.model, *function, static_cast<unsigned>(threads), 0) < blocks)
    return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t share = static_cast<std::uint64_t>(driver.model->sharedPerMultiprocessor) /
                        static_cast<std::uint64_t>(blocks) / SharedUnit * SharedUnit;
  std::uint64_t taken = ReservedShared + function->kernel->staticShared;
  *bytes = std::min<std::uint64_t>(share > taken ? share - taken : 0,
                                   static_cast<std::uint64_t>(driver.model->sharedPerBlockOptin) -
                                       function->kernel->staticShared);
  return CUDA_SUCCESS;
}

// Clusters are one block.

PLANEMU_EXPORT cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle,
                                                  const CUlaunchConfig *config) {
  PLANEMU_ENTER_CONTEXT;
  if (!size || !config)
    return CUDA_ERROR_INVALID_VALUE;
  if (!findFunction(driver, handle))
    return CUDA_ERROR_INVALID_HANDLE;
  *size = 1;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle,
                                            const CUlaunchConfig *config) {
  PLANEMU_ENTER_CONTEXT;
  if (!clusters || !config)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<FunctionHandle> function = findFunction(driver, handle);
  if (!function)
    return CUDA_ERROR_INVALID_HANDLE;
  std::uint64_t threads = std::uint64_t(config->blockDimX) * config->blockDimY * config->blockDimZ;
  if (threads == 0 || threads > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  *clusters = residentBlocks(*driver.model, *function, static_cast<unsigned>(threads),
                             config->sharedMemBytes) *
              driver.model->multiprocessors;
  return CUDA_SUCCESS;
}
