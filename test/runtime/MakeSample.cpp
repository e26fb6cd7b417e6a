//===- MakeSample.cpp - the sample bundle and its checkpoint as files ---------===//
//
// planrt-make-sample DIR [PTX]: writes DIR/one.bundle and DIR/two.bundle (of one and two rows) and
// DIR/model.safetensors, for the tests of tools. PTX is a file with other kernels of the same names.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"

using namespace planc;

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3)
    return 2;
  std::string folder = std::string(argv[1]) + "/", text = sample::ptx();
  if (argc == 3) {
    Result<Bytes> other = readFile(argv[2]);
    if (!other.ok())
      return 1;
    text = asText(*other);
  }
  sample::writeTensors(folder + "model.safetensors", sample::tensors());
  for (uint32_t rows : {1u, 2u})
    if (Status status = bundle::writeBundle(folder + (rows == 1 ? "one" : "two") + ".bundle",
                                            sample::manifest(text, rows), sample::sections(text));
        !status.ok())
      return 1;
  return 0;
}
