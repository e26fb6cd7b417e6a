//===- Copy.cpp - copies and fills ----------------------------------------===//
//
// Every copy is a box of bytes, every fill a rectangle of elements, so that there is one way to
// check, run and record them.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <algorithm>
#include <cstring>

#include <sys/uio.h>
#include <unistd.h>

using namespace planemu;

namespace {
/// One side of a copy: where its rows start.
struct Side {
  CUmemorytype type;
  std::uint64_t first; // of the box
  std::uint64_t pitch, slice;

  std::uint64_t row(std::uint64_t z, std::uint64_t y) const {
    return first + z * slice + y * pitch;
  }
};
} // namespace

static Side sourceOf(const CUDA_MEMCPY3D &c) {
  std::uint64_t base = c.srcMemoryType == CU_MEMORYTYPE_HOST
                           ? reinterpret_cast<std::uint64_t>(c.srcHost)
                           : c.srcDevice;
  std::uint64_t slice = c.srcPitch * c.srcHeight;
  return {c.srcMemoryType, base + c.srcXInBytes + c.srcY * c.srcPitch + c.srcZ * slice, c.srcPitch,
          slice};
}
static Side targetOf(const CUDA_MEMCPY3D &c) {
  std::uint64_t base = c.dstMemoryType == CU_MEMORYTYPE_HOST
                           ? reinterpret_cast<std::uint64_t>(c.dstHost)
                           : c.dstDevice;
  std::uint64_t slice = c.dstPitch * c.dstHeight;
  return {c.dstMemoryType, base + c.dstXInBytes + c.dstY * c.dstPitch + c.dstZ * slice, c.dstPitch,
          slice};
}

/// Checks one side of the shape: rows and slices do not overlap, and nothing overflows.
static CUresult checkSide(const CUDA_MEMCPY3D &c, CUmemorytype type, std::uint64_t base,
                          std::size_t x, std::size_t y, std::size_t z, std::size_t lod,
                          std::size_t pitch, std::size_t height) {
  if (type == CU_MEMORYTYPE_ARRAY)
    return failWith(CUDA_ERROR_INVALID_VALUE, "a copy names an array; there are none");
  if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
    return CUDA_ERROR_INVALID_VALUE;
  if (!base || lod)
    return CUDA_ERROR_INVALID_VALUE;
  constexpr std::size_t Most = std::size_t(1) << 47; // of user space
  for (std::size_t value : {c.WidthInBytes, c.Height, c.Depth, x, y, z, pitch, height})
    if (value >= Most)
      return CUDA_ERROR_INVALID_VALUE;
  bool severalRows = c.Height > 1 || c.Depth > 1 || y || z;
  if (severalRows && pitch < x + c.WidthInBytes)
    return failWith(CUDA_ERROR_INVALID_VALUE, "a copy of rows of " +
                                                  std::to_string(x + c.WidthInBytes) +
                                                  " bytes has a pitch of " + std::to_string(pitch));
  if ((c.Depth > 1 || z) && height < y + c.Height)
    return failWith(CUDA_ERROR_INVALID_VALUE,
                    "a copy of slices of " + std::to_string(y + c.Height) +
                        " rows has a height of " + std::to_string(height));
  using Wide = unsigned __int128;
  Wide end = Wide(base) + x + c.WidthInBytes + Wide(pitch) * (y + c.Height) +
             Wide(pitch) * height * (z + c.Depth);
  return end >= Wide(1) << 63 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static bool isEmpty(const CUDA_MEMCPY3D &c) { return !c.WidthInBytes || !c.Height || !c.Depth; }

CUresult planemu::checkCopy(const CUDA_MEMCPY3D &c) {
  if (isEmpty(c))
    return CUDA_SUCCESS;
  PLANEMU_TRY(checkSide(c, c.srcMemoryType,
                        c.srcMemoryType == CU_MEMORYTYPE_HOST
                            ? reinterpret_cast<std::uint64_t>(c.srcHost)
                            : c.srcDevice,
                        c.srcXInBytes, c.srcY, c.srcZ, c.srcLOD, c.srcPitch, c.srcHeight));
  return checkSide(c, c.dstMemoryType,
                   c.dstMemoryType == CU_MEMORYTYPE_HOST
                       ? reinterpret_cast<std::uint64_t>(c.dstHost)
                       : c.dstDevice,
                   c.dstXInBytes, c.dstY, c.dstZ, c.dstLOD, c.dstPitch, c.dstHeight);
}

/// Bytes from the first to the last of the box.
static std::uint64_t extent(const CUDA_MEMCPY3D &c, const Side &side) {
  return side.row(c.Depth - 1, c.Height - 1) + c.WidthInBytes - side.first;
}

/// True if the host may read these bytes; asked only of addresses that nobody vouches for.
static bool hostReads(std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t at : {address, address + bytes - 1}) {
    char byte;
    iovec local{&byte, 1}, remote{reinterpret_cast<void *>(at), 1};
    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 && errno == EFAULT)
      return false;
  }
  return true;
}

static CUresult checkSideAddresses(const Driver &driver, const Memory &memory,
                                   const CUDA_MEMCPY3D &c, const Side &side) {
  if (side.type == CU_MEMORYTYPE_HOST)
    return CUDA_SUCCESS; // the caller's own memory, as for memcpy
  const Memory *holder = &memory;
  if (side.type == CU_MEMORYTYPE_UNIFIED) {
    Context *owner = driver.ownerOf(side.first);
    if (!owner)
      return hostReads(side.first, extent(c, side)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    holder = owner->memory.get();
  }
  if (holder->covers(side.first, extent(c, side)))
    return CUDA_SUCCESS;
  // What lies between the rows need not be valid.
  for (std::uint64_t z = 0; z < c.Depth; ++z)
    for (std::uint64_t y = 0; y < c.Height; ++y)
      if (!holder->covers(side.row(z, y), c.WidthInBytes))
        return failWith(CUDA_ERROR_INVALID_VALUE,
                        "copy of " + std::to_string(c.WidthInBytes) +
                            " bytes leaves its allocation; the address is " +
                            holder->describe(side.row(z, y)));
  return CUDA_SUCCESS;
}

CUresult planemu::checkCopyAddresses(const Driver &driver, Context &context, const CopyWork &work) {
  if (isEmpty(work.copy))
    return CUDA_SUCCESS;
  Context &from = work.from ? *work.from : context, &to = work.to ? *work.to : context;
  if (!from.alive || !to.alive)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  PLANEMU_TRY(checkSideAddresses(driver, *from.memory, work.copy, sourceOf(work.copy)));
  return checkSideAddresses(driver, *to.memory, work.copy, targetOf(work.copy));
}

CUresult Driver::runCopy(Context &context, const CopyWork &work) {
  const CUDA_MEMCPY3D &c = work.copy;
  if (isEmpty(c))
    return CUDA_SUCCESS;
  PLANEMU_TRY(checkCopyAddresses(*this, context, work));
  Side from = sourceOf(c), to = targetOf(c);
  // For the checks: what was never written is not written after a copy either. The host's memory,
  // and that of another context, counts as written.
  Context *written = to.type == CU_MEMORYTYPE_DEVICE    ? (work.to ? work.to.get() : &context)
                     : to.type == CU_MEMORYTYPE_UNIFIED ? ownerOf(to.first)
                                                        : nullptr;
  bool within = from.type != CU_MEMORYTYPE_HOST && written && ownerOf(from.first) == written;
  for (std::uint64_t z = 0; z < c.Depth; ++z)
    for (std::uint64_t y = 0; y < c.Height; ++y) {
      if (written)
        written->memory->expectWhole(to.row(z, y), c.WidthInBytes);
      std::memmove(reinterpret_cast<void *>(to.row(z, y)),
                   reinterpret_cast<const void *>(from.row(z, y)), c.WidthInBytes);
      if (written)
        written->memory->copied(to.row(z, y), within ? from.row(z, y) : 0, c.WidthInBytes);
    }
  return CUDA_SUCCESS;
}

// --- Fills ------------------------------------------------------------------------

CUresult planemu::checkFill(const CUDA_MEMSET_NODE_PARAMS &f) {
  constexpr std::size_t Most = std::size_t(1) << 47;
  if ((f.elementSize != 1 && f.elementSize != 2 && f.elementSize != 4) || f.width >= Most ||
      f.height >= Most || f.pitch >= Most || f.dst % f.elementSize)
    return CUDA_ERROR_INVALID_VALUE;
  if (f.height > 1 && (f.pitch < f.width * f.elementSize || f.pitch % f.elementSize))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult Driver::runFill(Context &context, const FillWork &work) {
  const CUDA_MEMSET_NODE_PARAMS &f = work.fill;
  std::uint64_t bytes = f.width * f.elementSize;
  for (std::uint64_t y = 0; bytes && y < f.height; ++y) {
    std::uint64_t row = f.dst + y * f.pitch;
    if (!context.memory->covers(row, bytes))
      return failWith(CUDA_ERROR_INVALID_VALUE,
                      "fill of " + std::to_string(f.width) +
                          " elements leaves its allocation; the address is " +
                          context.memory->describe(row));
    context.memory->wrote(row, bytes);
    if (f.value == 0) {
      context.memory->zero(row, bytes);
      continue;
    }
    context.memory->expectWhole(row, bytes);
    if (f.elementSize == 1)
      std::memset(reinterpret_cast<void *>(row), static_cast<int>(f.value), f.width);
    else if (f.elementSize == 2)
      std::fill_n(reinterpret_cast<std::uint16_t *>(row), f.width,
                  static_cast<std::uint16_t>(f.value));
    else
      std::fill_n(reinterpret_cast<std::uint32_t *>(row), f.width, f.value);
  }
  return CUDA_SUCCESS;
}

// --- Enqueuing --------------------------------------------------------------------

/// A call that waits for its work cannot be recorded.
static CUresult checkWaits(Driver &driver, Stream &stream) {
  PLANEMU_TRY(driver.checkNoCapture());
  if (!stream.capture)
    return CUDA_SUCCESS;
  stream.capture->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/// `async`: in `handle`'s order. Otherwise after all blocking streams, and the call waits.
static CUresult copy(const CUDA_MEMCPY3D *box, bool async, CUstream handle,
                     CUcontext toHandle = nullptr, CUcontext fromHandle = nullptr) {
  PLANEMU_ENTER_CONTEXT;
  if (!box)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!async)
    PLANEMU_TRY(checkWaits(driver, *stream));
  PLANEMU_TRY(checkCopy(*box));
  if (isEmpty(*box))
    return CUDA_SUCCESS;
  CopyWork work{*box, nullptr, nullptr};
  for (auto [given, side] : {std::pair(toHandle, &work.to), std::pair(fromHandle, &work.from)})
    if (given) {
      *side = driver.contexts.find(given);
      if (!*side || !(*side)->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    }
  PLANEMU_TRY(checkCopyAddresses(driver, *stream->context, work));
  PLANEMU_TRY(driver.enqueue(*stream, std::move(work)));
  return async ? CUDA_SUCCESS : driver.wait(lock, context, {stream->last});
}

static CUDA_MEMCPY3D line(CUmemorytype toType, std::uint64_t to, CUmemorytype fromType,
                          std::uint64_t from, std::size_t bytes) {
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = fromType;
  c.srcHost = fromType == CU_MEMORYTYPE_HOST ? reinterpret_cast<const void *>(from) : nullptr;
  c.srcDevice = fromType == CU_MEMORYTYPE_HOST ? 0 : from;
  c.dstMemoryType = toType;
  c.dstHost = toType == CU_MEMORYTYPE_HOST ? reinterpret_cast<void *>(to) : nullptr;
  c.dstDevice = toType == CU_MEMORYTYPE_HOST ? 0 : to;
  c.WidthInBytes = bytes;
  c.Height = c.Depth = 1;
  return c;
}
static CUDA_MEMCPY3D upload(CUdeviceptr to, const void *from, std::size_t bytes) {
  return line(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_HOST, reinterpret_cast<std::uint64_t>(from),
              bytes);
}
static CUDA_MEMCPY3D download(void *to, CUdeviceptr from, std::size_t bytes) {
  return line(CU_MEMORYTYPE_HOST, reinterpret_cast<std::uint64_t>(to), CU_MEMORYTYPE_DEVICE, from,
              bytes);
}
static CUDA_MEMCPY3D within(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return line(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes);
}
static CUDA_MEMCPY3D anywhere(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return line(CU_MEMORYTYPE_UNIFIED, to, CU_MEMORYTYPE_UNIFIED, from, bytes);
}
static CUDA_MEMCPY3D rectangle(const CUDA_MEMCPY2D &c) {
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = c.srcXInBytes;
  box.srcY = c.srcY;
  box.srcMemoryType = c.srcMemoryType;
  box.srcHost = c.srcHost;
  box.srcDevice = c.srcDevice;
  box.srcArray = c.srcArray;
  box.srcPitch = c.srcPitch;
  box.dstXInBytes = c.dstXInBytes;
  box.dstY = c.dstY;
  box.dstMemoryType = c.dstMemoryType;
  box.dstHost = c.dstHost;
  box.dstDevice = c.dstDevice;
  box.dstArray = c.dstArray;
  box.dstPitch = c.dstPitch;
  box.WidthInBytes = c.WidthInBytes;
  box.Height = c.Height;
  box.Depth = 1;
  return box;
}

PLANEMU_EXPORT cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, std::size_t bytes) {
  CUDA_MEMCPY3D box = upload(to, from, bytes);
  return copy(&box, false, nullptr);
}
PLANEMU_EXPORT cuMemcpyDtoH_v2(void *to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D box = download(to, from, bytes);
  return copy(&box, false, nullptr);
}
PLANEMU_EXPORT cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D box = within(to, from, bytes);
  return copy(&box, false, nullptr);
}
PLANEMU_EXPORT cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D box = anywhere(to, from, bytes);
  return copy(&box, false, nullptr);
}
PLANEMU_EXPORT cuMemcpyPeer(CUdeviceptr to, CUcontext toContext, CUdeviceptr from,
                            CUcontext fromContext, std::size_t bytes) {
  if (!toContext || !fromContext)
    return CUDA_ERROR_INVALID_CONTEXT;
  CUDA_MEMCPY3D box = within(to, from, bytes);
  return copy(&box, false, nullptr, toContext, fromContext);
}
PLANEMU_EXPORT cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, std::size_t bytes,
                                    CUstream stream) {
  CUDA_MEMCPY3D box = upload(to, from, bytes);
  return copy(&box, true, stream);
}
PLANEMU_EXPORT cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, std::size_t bytes,
                                    CUstream stream) {
  CUDA_MEMCPY3D box = download(to, from, bytes);
  return copy(&box, true, stream);
}
PLANEMU_EXPORT cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                    CUstream stream) {
  CUDA_MEMCPY3D box = within(to, from, bytes);
  return copy(&box, true, stream);
}
PLANEMU_EXPORT cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  CUDA_MEMCPY3D box = anywhere(to, from, bytes);
  return copy(&box, true, stream);
}
PLANEMU_EXPORT cuMemcpyPeerAsync(CUdeviceptr to, CUcontext toContext, CUdeviceptr from,
                                 CUcontext fromContext, std::size_t bytes, CUstream stream) {
  if (!toContext || !fromContext)
    return CUDA_ERROR_INVALID_CONTEXT;
  CUDA_MEMCPY3D box = within(to, from, bytes);
  return copy(&box, true, stream, toContext, fromContext);
}

static CUresult copy2D(const CUDA_MEMCPY2D *c, bool async, CUstream stream) {
  if (!c)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D box = rectangle(*c);
  return copy(&box, async, stream);
}
PLANEMU_EXPORT cuMemcpy2D_v2(const CUDA_MEMCPY2D *c) { return copy2D(c, false, nullptr); }
PLANEMU_EXPORT cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c) { return copy2D(c, false, nullptr); }
PLANEMU_EXPORT cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream) {
  return copy2D(c, true, stream);
}
PLANEMU_EXPORT cuMemcpy3D_v2(const CUDA_MEMCPY3D *c) { return copy(c, false, nullptr); }
PLANEMU_EXPORT cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream) {
  return copy(c, true, stream);
}

/// The contexts are in the reserved fields.
static CUresult copyPeer(const CUDA_MEMCPY3D_PEER *c, bool async, CUstream stream) {
  if (!c)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D box;
  static_assert(sizeof(box) == sizeof(*c));
  std::memcpy(&box, c, sizeof(box));
  box.reserved0 = box.reserved1 = nullptr;
  return copy(&box, async, stream, c->dstContext, c->srcContext);
}
PLANEMU_EXPORT cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *c) { return copyPeer(c, false, nullptr); }
PLANEMU_EXPORT cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *c, CUstream stream) {
  return copyPeer(c, true, stream);
}

static CUresult fill(CUstream handle, bool async, const CUDA_MEMSET_NODE_PARAMS &rectangle) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!async)
    PLANEMU_TRY(checkWaits(driver, *stream));
  PLANEMU_TRY(checkFill(rectangle));
  if (!rectangle.width || !rectangle.height)
    return CUDA_SUCCESS;
  PLANEMU_TRY(driver.enqueue(*stream, FillWork{rectangle}));
  return async ? CUDA_SUCCESS : driver.wait(lock, context, {stream->last});
}

#define FILL(Bits, Type)                                                                           \
  PLANEMU_EXPORT cuMemsetD##Bits##_v2(CUdeviceptr to, Type value, std::size_t count) {             \
    return fill(nullptr, false, {to, 0, value, Bits / 8, count, 1});                               \
  }                                                                                                \
  PLANEMU_EXPORT cuMemsetD##Bits##Async(CUdeviceptr to, Type value, std::size_t count,             \
                                        CUstream stream) {                                         \
    return fill(stream, true, {to, 0, value, Bits / 8, count, 1});                                 \
  }                                                                                                \
  PLANEMU_EXPORT cuMemsetD2D##Bits##_v2(CUdeviceptr to, std::size_t pitch, Type value,             \
                                        std::size_t width, std::size_t height) {                   \
    return fill(nullptr, false, {to, pitch, value, Bits / 8, width, height});                      \
  }                                                                                                \
  PLANEMU_EXPORT cuMemsetD2D##Bits##Async(CUdeviceptr to, std::size_t pitch, Type value,           \
                                          std::size_t width, std::size_t height,                   \
                                          CUstream stream) {                                       \
    return fill(stream, true, {to, pitch, value, Bits / 8, width, height});                        \
  }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
#undef FILL
