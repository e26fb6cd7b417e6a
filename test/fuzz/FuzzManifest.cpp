//===- FuzzManifest.cpp - any text as a manifest --------------------------===//
//
// The manifest without the file around it: with no checksums to compute and no sections to compare,
// many times as many inputs a second reach the checks. One that passes them is used like planrt uses
// it, so that what check() promises is tried out: names resolve, patterns and offsets fit.
//===----------------------------------------------------------------------===//

#include "lib/Bundle/Manifest.h"
#include "test/fuzz/Mutators.h"

#include <cstdlib>

using namespace planc;
using namespace planc::bundle;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

static void use(const Manifest &manifest) {
  for (const Weight &weight : manifest.weights)
    for (const Part &part : weight.parts) {
      Result<Pattern> pattern = parsePattern(part.pattern);
      require(pattern.ok());
      std::uint64_t last = pattern->count() - 1,
                    bytes = part.target == "data" ? weight.bytes : weight.scale_bytes;
      require(pattern->offset(last, part) < bytes);
      require(!pattern->name(last).empty() || part.pattern.empty());
    }
  for (const Program &program : manifest.programs) {
    for (const Launch &launch : program.launch_list)
      require(!launch.kernel ||
              manifest.findKernel(*launch.kernel)->params.size() == launch.args.size());
    for (const Buffer &buffer : program.buffers)
      require(buffer.host_writes || *buffer.offset + buffer.bytes <= program.workspace.bytes);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  Result<Json> json = parseJson({reinterpret_cast<const char *>(data), size}, 12);
  if (!json.ok())
    return 0;
  Result<Manifest> manifest = fromJson(*json);
  if (!manifest.ok()) {
    require(!manifest.error().message.empty());
    return 0;
  }
  if (Status status = check(*manifest); !status.ok())
    require(!status.error().message.empty());
  else
    use(*manifest);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  fuzz::Random random(seed);
  std::string text(reinterpret_cast<const char *>(data), size);
  return fuzz::store(random.oneIn(16) ? fuzz::mutateBytes(text, most)
                                      : fuzz::mutateJson(text, random),
                     data, size, most);
}
