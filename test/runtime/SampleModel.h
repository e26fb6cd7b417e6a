//===- SampleModel.h - the sample bundle with a checkpoint and an oracle ----===//
//
// What the tests of planrt share: files on disk, the handles in one struct, and the sample
// program's arithmetic written down a second time.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_TEST_RUNTIME_SAMPLEMODEL_H
#define PLANC_TEST_RUNTIME_SAMPLEMODEL_H

#include "include/planrt/planrt.h"
#include "test/lib/Bundle/SampleBundle.h"

#include <map>

namespace sample {

/// "emulator", or "cuda" for the fake driver: PLANRT_TEST_DEVICE.
const char *deviceName();

struct Tensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
using Tensors = std::map<std::string, Tensor>;

/// All that the sample bundle asks for, and one tensor that it does not.
Tensors tensors();
/// As a safetensors file; gives its path.
std::string writeTensors(const std::string &path, const Tensors &tensors);
/// The sample bundle of `rows` rows on disk; gives its path.
std::string writeBundleFile(uint32_t rows = 2);
/// The sample without a recurrent state: what its kernel adds up is not kept.
std::string writePagedBundleFile(uint32_t rows = 2);
/// Programs of one, two and four rows in one bundle.
std::string writeManyProgramsFile();
/// One checkpoint file that every test may use.
const std::string &checkpoint();

float widen(uint16_t half);
uint16_t narrow(float value);

/// One sequence of the sample program, computed here. A copy is a fork.
class Oracle {
public:
  explicit Oracle(bool recurrent = true) : recurrent(recurrent) {}
  /// The logits after one more token.
  std::vector<float> step(int32_t token);
  void truncate(size_t length) { entries.resize(length); }
  static int32_t argmax(const std::vector<float> &logits);

private:
  bool recurrent;
  std::vector<float> state = std::vector<float>(64, 0.0f);
  std::vector<float> entries;
};

/// Handles from bundle to step; the message of the first failure in `message`.
struct Handles {
  planrt_bundle *bundle = nullptr;
  planrt_device *device = nullptr;
  planrt_weights *weights = nullptr;
  planrt_session *session = nullptr;
  planrt_step *step = nullptr;
  planrt_status status = PLANRT_OK;
  std::string message;

  explicit Handles(const std::string &bundlePath = writeBundleFile());
  /// Opens what is missing, with these options.
  bool open(planrt_session_options *sessionOptions = nullptr,
            planrt_step_options *stepOptions = nullptr);
  /// Runs one step; `next` is what came out.
  planrt_status run(std::vector<uint32_t> sequences, std::vector<int32_t> tokens);
  std::vector<float> logits(uint32_t row);
  /// Takes the status and message of a call; `error` by reference, since the call may be evaluated
  /// after a copy would be.
  bool take(planrt_status result, planrt_error *&error);
  ~Handles();

  std::vector<int32_t> next;
};

} // namespace sample

#endif // PLANC_TEST_RUNTIME_SAMPLEMODEL_H
