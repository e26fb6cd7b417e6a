//===- Session.h - sequences, their states and KV blocks --------------------===//
//
// A sequence has a length, KV blocks and at most one state slot. A step reads that slot and writes
// another one (or, `in_place`, the same), and only commit() makes the written one the sequence's. So
// a step that fails has changed nothing. Blocks and slots are counted references: forks share them
// until they go on, and whoever would write a block that another holds gets a copy of it.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_SESSION_H
#define PLANRT_SESSION_H

#include "runtime/ReferencePool.h"
#include "runtime/Weights.h"

namespace planrt {

struct SessionOptions {
  uint32_t sequences = 1;
  bool inPlace = false;
  int64_t kvTokens = 0; // 0: max_context of every sequence
  uint32_t slots = 0;   // 0: two a sequence, or one in place
};

/// How many state slots and KV blocks a session has.
struct SessionSize {
  uint32_t slots = 0;
  int64_t blocks = 0;
  uint64_t slotBytes = 0, blockBytes = 0; // of all states of a kind together

  uint64_t stateBytes() const { return slots * slotBytes; }
  uint64_t kvBytes() const { return uint64_t(blocks) * blockBytes; }
  uint64_t bytes() const { return stateBytes() + kvBytes(); }

  static planc::Result<SessionSize> of(const planc::bundle::Manifest &manifest,
                                       const SessionOptions &options);
};

/// What one row of a step works on.
struct Row {
  uint32_t sequence = 0;
  int32_t token = 0;
  int64_t position = 0;
  int32_t slotIn = -1;
  int32_t slotOut = -1;
  int32_t block = -1;    // new with this step: where the token's key and value go
  int32_t copyFrom = -1; // the shared block that `block` takes the place of
};

class Session {
public:
  static planc::Result<std::shared_ptr<Session>> open(WeightsPtr weights,
                                                      const SessionOptions &options);

  const WeightsPtr &weights() const { return owner; }

  planc::Result<uint32_t> create();
  planc::Result<uint32_t> fork(uint32_t sequence);
  planc::Status truncate(uint32_t sequence, int64_t length);
  planc::Status release(uint32_t sequence);
  /// -1 if there is no such sequence.
  int64_t length(uint32_t sequence) const { return exists(sequence) ? at(sequence).length : -1; }

  /// Checks the tokens of a step and takes the blocks and slots it needs; changes nothing when it
  /// refuses. `tokens` null: those that the last steps gave. `rows` has an element a sequence.
  /// Allocates nothing. The sequences are busy until commit() or abandon().
  planc::Status prepare(std::span<const uint32_t> sequences, const int32_t *tokens,
                        std::span<Row> rows);
  /// The step has succeeded. `next`, a token a row, may be null: nobody has looked.
  void commit(std::span<const Row> rows, const int32_t *next);
  /// The step has failed; `started` if the device may have written states.
  void abandon(std::span<const Row> rows, bool started);

  /// Fills a row of the block table: the physical blocks of a sequence by logical block, 0 behind.
  void fillTable(const Row &row, std::span<int32_t> table) const;
  /// The physical block of the row's token.
  int32_t lastBlock(const Row &row) const;

  /// What a copy of a block copies: an address in every paged cache, and bytes.
  struct Cache {
    CUdeviceptr address = 0;
    uint64_t blockBytes = 0;
  };
  std::span<const Cache> caches() const { return paged; }

  CUdeviceptr pool(const std::string &state) const { return pools.find(state)->second.address(); }
  uint64_t poolBytes(const std::string &state) const;
  planc::Status readPool(const std::string &state, uint64_t offset, std::span<std::byte> out) const;

  uint64_t stateBytes() const { return size.stateBytes(); }
  uint64_t kvBytes() const { return size.kvBytes(); }

  uint32_t sequences() const { return uint32_t(states.size()); }
  uint32_t freeSequences() const { return unused; }
  const ReferencePool &slotPool() const { return slots; }
  const ReferencePool &blockPool() const { return blocks; }

private:
  struct Sequence {
    bool used = false;
    bool busy = false;   // in a step that runs
    bool broken = false; // its state was lost in place
    int64_t length = 0;
    int32_t slot = -1; // none yet, or the model has no recurrent state
    int32_t next = -1; // what the last step gave, if it looked
    std::vector<int32_t> blocks;
  };

  Session(WeightsPtr weights, const SessionOptions &options, const SessionSize &size);
  planc::Status allocate();
  bool exists(uint32_t sequence) const { return sequence < states.size() && states[sequence].used; }
  const Sequence &at(uint32_t sequence) const { return states[sequence]; }
  /// Refuses a sequence that is not there or is busy.
  planc::Status checkSequence(uint32_t sequence) const;
  planc::Status checkRow(uint32_t sequence, int32_t token) const;
  planc::Status checkRows(std::span<const uint32_t> sequences, const int32_t *tokens) const;
  planc::Status takeResources(std::span<Row> rows);
  void empty(Sequence &state);

  WeightsPtr owner;
  SessionOptions options;
  SessionSize size;
  const planc::bundle::Model &model;
  std::vector<Sequence> states;
  uint32_t unused = 0; // of states
  ReferencePool slots, blocks;
  std::map<std::string, DeviceMemory, std::less<>> pools;
  std::vector<Cache> paged;
};

} // namespace planrt

#endif // PLANRT_SESSION_H
