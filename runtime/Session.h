//===- Session.h - sequences, their states and KV blocks --------------------===//
//
// A sequence has a length, KV blocks, and two state slots (one with `in_place`) that take turns: a
// step reads one and writes the other, and only commit() makes the written one the current. So a
// step that fails has changed nothing.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_SESSION_H
#define PLANRT_SESSION_H

#include "runtime/Weights.h"

namespace planrt {

struct SessionOptions {
  uint32_t sequences = 1;
  bool inPlace = false;
  int64_t kvTokens = 0; // 0: max_context of every sequence
};

/// What one row of a step works on.
struct Row {
  uint32_t sequence = 0;
  int32_t token = 0;
  int64_t position = 0;
  int32_t slotIn = -1;
  int32_t slotOut = -1;
  bool takesBlock = false; // the last of the sequence's blocks is new with this step
};

class Session {
public:
  static planc::Result<std::shared_ptr<Session>> open(WeightsPtr weights,
                                                      const SessionOptions &options);

  const WeightsPtr &weights() const { return owner; }
  uint32_t sequences() const { return uint32_t(states.size()); }
  int64_t length(uint32_t sequence) const {
    return sequence < states.size() ? states[sequence].length : 0;
  }
  planc::Status reset(uint32_t sequence);

  /// Checks the tokens of a step and takes the blocks it needs; changes nothing when it refuses.
  planc::Result<std::vector<Row>> prepare(std::span<const uint32_t> sequences,
                                          std::span<const int32_t> tokens);
  /// The step has succeeded: lengths grow, slots take their turn.
  void commit(std::span<const Row> rows);
  /// The step has failed; `started` if the device may have written states.
  void abandon(std::span<const Row> rows, bool started);

  /// Physical blocks of a sequence, by logical block.
  std::span<const int32_t> blocks(uint32_t sequence) const { return states[sequence].blocks; }

  CUdeviceptr pool(const std::string &state) const { return pools.find(state)->second.address(); }
  uint64_t poolBytes(const std::string &state) const;
  planc::Status readPool(const std::string &state, uint64_t offset, std::span<std::byte> out) const;

  uint64_t stateBytes() const { return slotBytes; }
  uint64_t kvBytes() const { return pagedBytes; }

private:
  struct Sequence {
    int64_t length = 0;
    int current = 0;     // which of its slots holds the state, once there is one
    bool broken = false; // its state was lost in place
    std::vector<int32_t> blocks;
  };

  Session(WeightsPtr weights, const SessionOptions &options);
  planc::Status allocate(int64_t blockCount);
  planc::Status checkRow(uint32_t sequence, int32_t token) const;

  WeightsPtr owner;
  SessionOptions options;
  std::vector<Sequence> states;
  std::vector<int32_t> freeBlocks; // taken from the end
  int64_t blockCount = 0;
  std::map<std::string, DeviceMemory, std::less<>> pools;
  uint64_t slotBytes = 0, pagedBytes = 0;
};

} // namespace planrt

#endif // PLANRT_SESSION_H
