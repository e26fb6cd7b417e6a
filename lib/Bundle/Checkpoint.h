//===- Checkpoint.h - a model's tensors, in one file or many ---------------===//
//
// A checkpoint is a safetensors file, or a folder with `model.safetensors.index.json` and the
// shards it names, or else with `model.safetensors`. Never a glob: what an index does not name is
// not there.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_BUNDLE_CHECKPOINT_H
#define PLANC_LIB_BUNDLE_CHECKPOINT_H

#include "lib/Bundle/Manifest.h"
#include "lib/Support/Safetensors.h"

#include <memory>

namespace planc::bundle {

class Checkpoint {
public:
  static Result<Checkpoint> open(const std::string &path);

  struct Tensor {
    const SafetensorsFile *file;
    const TensorInfo *info;
  };
  /// The tensor of this name, or null pointers.
  Tensor find(const std::string &name) const;
  size_t size() const { return tensors.size(); }
  const std::string &path() const { return root; }

private:
  Status addFile(const std::string &path);
  Status addIndex(const std::string &folder, const std::string &path);

  std::string root;
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  std::unordered_map<std::string, Tensor> tensors;
};

/// Where placeWeights puts the operands.
class OperandSink {
public:
  virtual ~OperandSink() = default;
  /// Memory that is filled next; some MB, and a multiple of 64 bytes.
  virtual std::span<std::byte> staging() = 0;
  /// The first `bytes` of it go to byte `offset` of a weight's data or scales.
  virtual Status put(const Weight &weight, bool scales, uint64_t offset, uint64_t bytes) = 0;
};

/// Does the checkpoint have every tensor that the manifest names, in an accepted dtype and the
/// right shape? The error lists all that are missing or different. Gives the number of tensors that
/// nobody reads.
Result<size_t> checkCheckpoint(const Manifest &manifest, const Checkpoint &checkpoint);

/// Reads every part of every weight, converts it where its dtype is not the operand's, and hands it
/// to the sink. Call checkCheckpoint before.
Status placeWeights(const Manifest &manifest, const Checkpoint &checkpoint, OperandSink &sink);

} // namespace planc::bundle

#endif // PLANC_LIB_BUNDLE_CHECKPOINT_H
