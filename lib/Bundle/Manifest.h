//===- Manifest.h - what a bundle says about itself -----------------------===//
//
// The manifest is all that the compiler tells the runtime, beside the kernel images. These are its
// plain structs; their field names are the JSON keys, and `planc inspect --json` prints the same
// names. Objects refer to each other by name, so that the JSON reads by itself.
//
// fromJson is strict: an unknown, missing or mistyped key is an error with its path. check() then
// holds the manifest against itself (names resolve, ranges lie inside, counts agree); who loads a
// bundle through Container.h gets both.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_BUNDLE_MANIFEST_H
#define PLANC_LIB_BUNDLE_MANIFEST_H

#include "lib/Numerics/Numerics.h"
#include "lib/Support/Json.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace planc::bundle {

/// The format this code writes, and the newest it reads.
inline constexpr uint32_t formatVersion = 1;

/// Element types of buffers, inputs, states and of a weight's stored data.
enum class Dtype { bf16, f32, i32, i64, e4m3 };
uint64_t byteSize(Dtype dtype);

using Shape = std::vector<int64_t>;
using Dim3 = std::array<uint32_t, 3>;

/// Who made the bundle from what; no path and no file name.
struct Provenance {
  std::string planc;                // "0.1.0"
  std::string llvm;                 // "LLVM 22.1.8"
  std::optional<std::string> ptxas; // "ptxas V13.0.88"; none: no toolkit, PTX only
  std::string config_digest;        // "xxh3:..." of the config's text
};

/// The model's constants that the kernels were compiled with.
struct Model {
  int64_t vocab = 0;
  int64_t max_context = 0;             // positions a sequence can have
  int64_t kv_block = 0;                // positions in one KV block, a power of two
  std::map<std::string, int64_t> dims; // every plan dim by name

  /// Width of a row of `block_tables`; the last block may hold positions past the context.
  int64_t blocksPerSequence() const { return (max_context + kv_block - 1) / kv_block; }
};

/// One GPU architecture the bundle has images for.
struct Target {
  std::string name;    // "sm_121", "sm_121a": the key of Kernel::targets
  uint32_t sm = 0;     // 121
  std::string product; // "gb10"
};

enum class ArgKind { buffer, weight, state, input, scratch, counters };

/// One kernel parameter of a launch. An fp8 block weight takes two: data, then scales.
struct Arg {
  ArgKind kind = ArgKind::buffer;
  std::optional<std::string> name; // of the buffer (its edge), weight, state or input
  std::optional<std::string> part; // weights only: "data" or "scales"
};

/// An op that runs on the host, on the calling thread. The ops that planrt knows:
///   embed   inputs {step input "token_ids"}, weight (host), outputs {buffer [rows, hidden]}
///   argmax  inputs {buffer [rows, vocab]}, outputs {}: gives the step's tokens
struct HostOp {
  std::string op;
  std::string node;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::optional<std::string> weight;
};

/// An entry of the launch list, which has every group in the plan's order; a group of several
/// kernel starts has one entry each. Exactly one of these holds: the entry has a kernel and args,
/// it has host ops, or there is nothing to do and `note` says why.
struct Launch {
  uint32_t group = 0; // the plan's id
  std::string rule;   // the plan's label
  std::string where;  // "device" or "host"
  std::vector<std::string> nodes;
  std::optional<std::string> kernel;
  std::optional<std::string> note;
  std::vector<Arg> args; // in kernel parameter order
  std::vector<HostOp> host;
};

/// A stored edge. Kernels find it in the workspace at `offset`; with the unshared layout, where no
/// two edges have a byte in common, at `unshared_offset`. What the host writes is part of the block
/// that every step copies to the device, so `host_writes` edges have no offsets.
struct Buffer {
  std::string edge; // the plan's edge id, without the "#..." of readers
  Dtype dtype = Dtype::bf16;
  int64_t rows = 0;
  int64_t dim = 0;
  uint64_t bytes = 0;
  std::optional<uint64_t> offset;
  std::optional<uint64_t> unshared_offset;
  uint32_t def = 0;      // group that makes it
  uint32_t last_use = 0; // last group that reads it (def if nobody does)
  bool host_writes = false;
  bool host_reads = false;
};

/// Data that planrt writes for every step: token_ids, positions, slot_mapping, block_tables,
/// seq_lens, slots_in, slots_out.
struct Input {
  std::string name;
  Dtype dtype = Dtype::i32;
  Shape shape;
};

/// Sizes of one program's working memory. Scratch and counters are one range each, used by one
/// launch after the other; the sizes are the largest over kernels and targets.
struct Workspace {
  uint64_t bytes = 0;
  uint64_t unshared_bytes = 0;
  uint64_t scratch_bytes = 0;
  uint64_t counters = 0; // u32 words
};

/// One plan: an arm of the model at a fixed number of rows.
struct Program {
  std::string name; // "decode_n1"
  std::string mode;
  uint32_t rows = 0;
  std::string plan_digest; // "xxh3:..." of the plan's text
  uint32_t nodes = 0;
  uint32_t groups = 0;
  uint32_t launches = 0; // kernel starts of one step
  std::vector<Launch> launch_list;
  std::vector<Buffer> buffers;
  std::vector<Input> inputs;
  Workspace workspace;
};

/// A kernel parameter, for readers and checks: what its pointer points at.
struct Param {
  ArgKind kind = ArgKind::buffer;
  Dtype dtype = Dtype::bf16;
  Shape shape;
  bool written = false;
};

/// A kernel's image and figures on one target. What only ptxas knows is null without it.
struct KernelTarget {
  std::string entry; // the .entry's name in the image
  Dim3 grid = {1, 1, 1};
  Dim3 block = {1, 1, 1};
  uint32_t shared_bytes = 0; // dynamic, given at launch
  uint32_t static_shared_bytes = 0;
  uint64_t scratch_bytes = 0;
  uint64_t counters = 0; // u32 words
  std::optional<uint32_t> registers;
  std::optional<uint32_t> stack_bytes;
  std::optional<uint32_t> spill_bytes;
  std::optional<uint64_t> code_bytes;
  uint64_t ptx_bytes = 0;
  std::string ptx; // section names
  std::optional<std::string> cubin;
};

/// A generated kernel. The groups that use it are those whose launch names it.
struct Kernel {
  std::string name;
  std::string schedule;
  std::string numerics;
  std::string compute;
  std::vector<numerics::Node> arithmetic; // how each member rounds: what bounds follow from
  std::vector<Param> params;
  std::map<std::string, KernelTarget> targets; // by Target::name
};

/// One or more checkpoint tensors that are placed into a weight without being transformed.
/// `pattern` is a tensor name in which `{e:0..255}` stands for every number of that range; its n-th
/// tensor goes to byte `offset + n * strides[0]` (one stride for every index of the pattern).
/// Offsets and strides count bytes of the operand's own dtype: a bf16 or f32 tensor is converted to
/// it where `dtypes` accepts both.
struct Part {
  std::string pattern;
  Shape shape;
  std::vector<std::string> dtypes; // accepted, as safetensors spells them: "BF16", "F32", "F8_E4M3"
  std::string target;              // "data" or "scales"
  uint64_t offset = 0;
  std::vector<uint64_t> strides;
};

/// An operand: one device allocation (two with scales) that the kernels read row-major.
struct Weight {
  std::string name;
  std::string node;   // the plan node that reads it first
  std::string format; // "bf16", "f32" or "fp8/block128x128"
  std::string layout; // "row_major"
  Shape shape;        // [N, K], experts [E, N, K], vectors [N]
  uint64_t bytes = 0; // of the data
  Shape scale_shape;  // f32; empty without scales
  uint64_t scale_bytes = 0;
  bool host = false; // read by a host op only: kept in host memory
  std::vector<Part> parts;
};

/// A recurrent state (one slot a sequence and version) or a paged cache.
struct State {
  std::string name; // "l0.gdn.conv"
  int64_t layer = 0;
  std::string kind; // "slots" or "paged"
  Dtype dtype = Dtype::f32;
  Shape shape;        // of one slot, or of one block
  uint64_t bytes = 0; // of one slot, or of one block
};

/// A byte range of the file; the container fills it in. `offset` counts from the first section.
struct Section {
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string xxh3; // 16 hex digits
};

/// The section that holds the bound plan dialect as MLIR bytecode (planrt never reads it).
inline constexpr const char *planIrSection = "plan_ir";

struct Manifest {
  uint32_t format_version = formatVersion;
  Provenance provenance;
  Model model;
  std::vector<Target> targets;
  std::vector<Program> programs;
  std::vector<Kernel> kernels;
  std::vector<Weight> weights;
  std::vector<State> states;
  std::vector<Section> sections;

  const Kernel *findKernel(std::string_view name) const;
  const Weight *findWeight(std::string_view name) const;
  const State *findState(std::string_view name) const;
  const Program *findProgram(std::string_view name) const;
};

/// The numbers one `{e:0..255}` of a pattern stands for, and the text around them.
struct PatternIndex {
  uint64_t first = 0;
  uint64_t last = 0;
};
struct Pattern {
  std::vector<std::string> text; // one more than there are indices
  std::vector<PatternIndex> indices;

  uint64_t count() const;
  /// The tensor's name and byte offset for the n-th combination, the last index running fastest.
  std::string name(uint64_t n) const;
  uint64_t offset(uint64_t n, const Part &part) const;
};
Result<Pattern> parsePattern(std::string_view pattern);

Json toJson(const Manifest &manifest);
Json toJson(const std::vector<numerics::Node> &arithmetic);
Result<Manifest> fromJson(const Json &json);
/// As strict, but for what the numbers say: lib/Numerics judges that.
Result<std::vector<numerics::Node>> arithmeticFromJson(const Json &json);

/// Holds a manifest against itself; the writer and the reader of bundles both call it.
Status check(const Manifest &manifest);

const char *toString(Dtype dtype);
const char *toString(ArgKind kind);

/// The weight format of e4m3 data with one f32 scale for every block of 128 x 128.
inline constexpr const char *fp8Block128 = "fp8/block128x128";

/// The element type of a weight's data, by its format.
Result<Dtype> dataDtype(const Weight &weight);

/// Name of a safetensors dtype whose elements an operand of this dtype takes as they are.
const char *safetensorsName(Dtype dtype);

} // namespace planc::bundle

#endif // PLANC_LIB_BUNDLE_MANIFEST_H
