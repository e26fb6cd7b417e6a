//===- CheckPrograms.cpp - launch lists and buffers ------------------------===//
//
// C5 to C7 of Check.cpp. Order and lifetimes are checked again here although the compiler's memory
// plan made them: a launch list that reads what is no longer there gives wrong numbers, not errors.
//
//===----------------------------------------------------------------------===//
#include "lib/Bundle/CheckPrograms.h"

#include "lib/Support/Safetensors.h"

#include <algorithm>
#include <set>

using namespace planc;
using namespace planc::bundle;

namespace {

class ProgramCheck {
public:
  ProgramCheck(const Names &names, const Manifest &manifest, const Program &program)
      : names(names), manifest(manifest), program(program) {}

  Status run();

private:
  Status checkInputs();
  Status checkBuffers();
  Status checkLayout(bool shared);
  Status checkOrder();
  Status checkLaunch(const Launch &launch);
  Status checkArg(const Launch &launch, const Arg &arg, const Param &param);
  Status checkBufferArg(const Launch &launch, const Buffer &buffer, const Param &param);
  Status checkHost(const Launch &launch, const HostOp &op);
  Status checkHostFlags();

  const Buffer *findBuffer(const std::string &edge) const {
    auto at = buffers.find(edge);
    return at == buffers.end() ? nullptr : at->second;
  }

  const Names &names;
  const Manifest &manifest;
  const Program &program;
  std::unordered_map<std::string_view, const Buffer *> buffers;
  std::unordered_map<std::string_view, const Input *> inputs;
  std::set<std::string_view> hostWritten, hostRead;
};

} // namespace

/// C2: the step inputs that planrt fills in, with the shapes it gives them.
Status ProgramCheck::checkInputs() {
  int64_t n = program.rows, blocks = manifest.model.blocksPerSequence();
  const Input known[] = {
      {"token_ids", Dtype::i32, {n}},    {"positions", Dtype::i32, {3, n}},
      {"slot_mapping", Dtype::i64, {n}}, {"block_tables", Dtype::i32, {n, blocks}},
      {"seq_lens", Dtype::i32, {n}},     {"slots_in", Dtype::i32, {n}},
      {"slots_out", Dtype::i32, {n}}};
  for (const Input &input : program.inputs) {
    auto at = std::find_if(std::begin(known), std::end(known),
                           [&](const Input &k) { return k.name == input.name; });
    if (at == std::end(known))
      return inputError("unknown step input \"{:.80}\"", input.name);
    if (input.dtype != at->dtype || input.shape != at->shape)
      return inputError("step input \"{}\" is {} {:.80}, expected {} {}", input.name,
                        toString(input.dtype), shapeText(input.shape), toString(at->dtype),
                        shapeText(at->shape));
    if (!inputs.emplace(input.name, &input).second)
      return inputError("step input \"{}\" occurs twice", input.name);
  }
  return {};
}

Status ProgramCheck::checkBuffers() {
  const Workspace &workspace = program.workspace;
  for (auto [bytes, what] : {std::pair(workspace.bytes, "a workspace"),
                             std::pair(workspace.unshared_bytes, "an unshared workspace"),
                             std::pair(workspace.scratch_bytes, "scratch")})
    if (bytes > maxObjectBytes)
      return inputError("has {} of {} bytes, at most {} are possible", what, bytes, maxObjectBytes);
  for (const Buffer &buffer : program.buffers) {
    std::string who = fmt::format("buffer \"{:.200}\"", buffer.edge);
    if (buffer.edge.empty() || !buffers.emplace(buffer.edge, &buffer).second)
      return inputError("{} has no name or occurs twice", who);
    const int64_t shape[] = {buffer.rows, buffer.dim};
    if (Status status = checkBytes(who, shape, buffer.dtype, buffer.bytes); !status.ok())
      return status;
    if (buffer.def > buffer.last_use || buffer.last_use >= program.groups)
      return inputError("{} lives from group {} to {} of {}", who, buffer.def, buffer.last_use,
                        program.groups);
    if (buffer.host_writes != !buffer.offset || buffer.host_writes != !buffer.unshared_offset)
      return inputError("{} is written by {}, but has {} workspace offset", who,
                        buffer.host_writes ? "the host" : "a kernel",
                        buffer.host_writes ? "a" : "no");
  }
  if (Status status = checkLayout(true); !status.ok())
    return status;
  return checkLayout(false);
}

/// C5: `shared` for the arena, where only what is live at the same time must be apart.
Status ProgramCheck::checkLayout(bool shared) {
  uint64_t size = shared ? program.workspace.bytes : program.workspace.unshared_bytes;
  struct Range {
    uint64_t begin, end;
    const Buffer *buffer;
  };
  std::vector<Range> ranges;
  for (const Buffer &buffer : program.buffers) {
    if (buffer.host_writes)
      continue;
    uint64_t offset = shared ? *buffer.offset : *buffer.unshared_offset;
    if (offset > size || buffer.bytes > size - offset)
      return inputError("buffer \"{}\" needs {} bytes at offset {} of a {}workspace of {}",
                        buffer.edge, buffer.bytes, offset, shared ? "" : "unshared ", size);
    if (offset % 256 != 0)
      return inputError("buffer \"{}\" is at offset {}, not a multiple of 256", buffer.edge,
                        offset);
    ranges.push_back({offset, offset + buffer.bytes, &buffer});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  for (size_t i = 0; i < ranges.size(); ++i)
    for (size_t j = i + 1; j < ranges.size() && ranges[j].begin < ranges[i].end; ++j) {
      const Buffer &a = *ranges[i].buffer, &b = *ranges[j].buffer;
      if (!shared || (a.def <= b.last_use && b.def <= a.last_use))
        return inputError("buffers \"{}\" (groups {} to {}) and \"{}\" (groups {} to {}) share "
                          "bytes {} to {} of the {}workspace",
                          a.edge, a.def, a.last_use, b.edge, b.def, b.last_use, ranges[j].begin,
                          std::min(ranges[i].end, ranges[j].end), shared ? "" : "unshared ");
    }
  return {};
}

/// C1: every group is there in order, every node once, and the three numbers agree.
Status ProgramCheck::checkOrder() {
  uint32_t groups = 0, launches = 0;
  std::set<std::string_view> nodes;
  for (const Launch &launch : program.launch_list) {
    bool repeats = groups > 0 && launch.group == groups - 1;
    if (!repeats && launch.group != groups)
      return inputError("launch list has group {} where {} comes next", launch.group, groups);
    groups += !repeats;
    launches += launch.kernel.has_value();
    for (const std::string &node : launch.nodes)
      if (!repeats && !nodes.insert(node).second)
        return inputError("node \"{:.200}\" is in two groups", node);
  }
  if (groups != program.groups || launches != program.launches || nodes.size() != program.nodes)
    return inputError("has {} nodes, {} groups and {} launches, but its launch list {}, {} and {}",
                      program.nodes, program.groups, program.launches, nodes.size(), groups,
                      launches);
  return {};
}

/// C6: a kernel writes what its group makes, and reads what an earlier group made and is still
/// there.
Status ProgramCheck::checkBufferArg(const Launch &launch, const Buffer &buffer,
                                    const Param &param) {
  if (param.dtype != buffer.dtype || shapeBytes(param.shape, byteSize(param.dtype)) != buffer.bytes)
    return inputError("buffer \"{}\" is {} [{}, {}], but kernel \"{}\" expects {} {:.80}",
                      buffer.edge, toString(buffer.dtype), buffer.rows, buffer.dim, *launch.kernel,
                      toString(param.dtype), shapeText(param.shape));
  if (param.written && (buffer.def != launch.group || buffer.host_writes))
    return inputError("writes buffer \"{}\", which {} {} makes", buffer.edge,
                      buffer.host_writes ? "host group" : "group", buffer.def);
  if (!param.written && (launch.group <= buffer.def || launch.group > buffer.last_use))
    return inputError("reads buffer \"{}\", which lives from group {} to {}", buffer.edge,
                      buffer.def, buffer.last_use);
  return {};
}

Status ProgramCheck::checkArg(const Launch &launch, const Arg &arg, const Param &param) {
  if (arg.kind != param.kind)
    return inputError("passes a {}, but kernel \"{}\" expects a {}", toString(arg.kind),
                      *launch.kernel, toString(param.kind));
  bool named = arg.kind != ArgKind::scratch && arg.kind != ArgKind::counters;
  if (named != arg.name.has_value() || (arg.part && arg.kind != ArgKind::weight))
    return inputError("a {} argument has {}", toString(arg.kind),
                      named != arg.name.has_value() ? (named ? "no name" : "a name") : "a part");
  auto unknown = [&] {
    return inputError("passes {} \"{:.200}\", which is not in the bundle", toString(arg.kind),
                      *arg.name);
  };
  auto checkType = [&](const char *what, std::string_view name, Dtype dtype,
                       const Shape &shape) -> Status {
    if (param.dtype == dtype &&
        shapeBytes(param.shape, byteSize(dtype)) == shapeBytes(shape, byteSize(dtype)))
      return {};
    return inputError("{} \"{}\" is {} {:.80}, but kernel \"{}\" expects {} {:.80}", what, name,
                      toString(dtype), shapeText(shape), *launch.kernel, toString(param.dtype),
                      shapeText(param.shape));
  };
  switch (arg.kind) {
  case ArgKind::buffer: {
    const Buffer *buffer = findBuffer(*arg.name);
    return buffer ? checkBufferArg(launch, *buffer, param) : unknown();
  }
  case ArgKind::weight: {
    auto at = names.weights.find(*arg.name);
    if (at == names.weights.end())
      return unknown();
    const Weight &weight = *at->second;
    bool scales = arg.part == "scales";
    uint64_t bytes = scales ? weight.scale_bytes : weight.bytes;
    if (weight.host || (arg.part && !scales && *arg.part != "data") || bytes == 0)
      return inputError("passes the {:.40} of weight \"{}\", which {}", arg.part.value_or("data"),
                        weight.name, weight.host ? "is on the host" : "has none");
    if (shapeBytes(param.shape, byteSize(param.dtype)) != bytes)
      return inputError("weight \"{}\" has {} bytes of {}, but kernel \"{}\" expects {} {:.80}",
                        weight.name, bytes, scales ? "scales" : "data", *launch.kernel,
                        toString(param.dtype), shapeText(param.shape));
    return {};
  }
  case ArgKind::state: {
    auto at = names.states.find(*arg.name);
    if (at == names.states.end())
      return unknown();
    return checkType("state", *arg.name, at->second->dtype, at->second->shape);
  }
  case ArgKind::input: {
    auto at = inputs.find(*arg.name);
    if (at == inputs.end())
      return unknown();
    return checkType("step input", *arg.name, at->second->dtype, at->second->shape);
  }
  case ArgKind::scratch:
  case ArgKind::counters:
    for (const auto &[target, image] : names.kernels.at(*launch.kernel)->targets)
      if (image.scratch_bytes > program.workspace.scratch_bytes ||
          image.counters > program.workspace.counters)
        return inputError("kernel \"{}\" on {} needs {} bytes of scratch and {} counters, the "
                          "workspace has {} and {}",
                          *launch.kernel, target, image.scratch_bytes, image.counters,
                          program.workspace.scratch_bytes, program.workspace.counters);
    return {};
  }
  return {};
}

/// C7: exactly the two forms that planrt executes.
Status ProgramCheck::checkHost(const Launch &launch, const HostOp &op) {
  auto refuse = [&](std::string_view why) {
    return inputError("host op \"{:.80}\" of node \"{:.200}\" {}", op.op, op.node, why);
  };
  if (op.op == "embed") {
    if (op.inputs != std::vector<std::string>{"token_ids"} || op.outputs.size() != 1 || !op.weight)
      return refuse("does not read token_ids and a weight into one buffer");
    auto weight = names.weights.find(*op.weight);
    const Buffer *buffer = findBuffer(op.outputs[0]);
    if (weight == names.weights.end() || !buffer)
      return refuse("names a weight or a buffer that is not in the bundle");
    if (!weight->second->host || !buffer->host_writes || buffer->def != launch.group)
      return refuse("has a weight that is not on the host, or a buffer that is not its own");
    Result<Dtype> dtype = dataDtype(*weight->second);
    if (!dtype.ok() || *dtype != buffer->dtype || buffer->rows != program.rows ||
        weight->second->shape != Shape{manifest.model.vocab, buffer->dim})
      return refuse("has a weight whose rows are not the buffer's");
    hostWritten.insert(buffer->edge);
    return {};
  }
  if (op.op == "argmax") {
    if (op.inputs.size() != 1 || !op.outputs.empty() || op.weight)
      return refuse("does not read one buffer and nothing else");
    const Buffer *buffer = findBuffer(op.inputs[0]);
    if (!buffer || !buffer->host_reads || buffer->host_writes)
      return refuse("reads a buffer that is not in the bundle or not for the host");
    if (buffer->rows != program.rows || buffer->dim != manifest.model.vocab ||
        (buffer->dtype != Dtype::bf16 && buffer->dtype != Dtype::f32))
      return refuse("reads a buffer that does not hold logits");
    if (launch.group <= buffer->def || launch.group > buffer->last_use)
      return refuse("reads a buffer that is not there yet or no longer");
    hostRead.insert(buffer->edge);
    return {};
  }
  return refuse("is not known");
}

Status ProgramCheck::checkLaunch(const Launch &launch) {
  if (launch.where != "device" && launch.where != "host")
    return inputError("is on \"{:.40}\", expected device or host", launch.where);
  bool host = launch.where == "host";
  if (int(launch.kernel.has_value()) + int(!launch.host.empty()) + int(launch.note.has_value()) !=
      1)
    return inputError("needs one of a kernel, host ops and a note why there is neither");
  if ((host && launch.kernel) || (!host && !launch.host.empty()))
    return inputError("is on the {}, but runs on the {}", launch.where, host ? "device" : "host");
  for (const HostOp &op : launch.host)
    if (Status status = checkHost(launch, op); !status.ok())
      return status;
  if (!launch.kernel)
    return launch.args.empty() ? Status() : Status(inputError("has arguments, but no kernel"));

  auto kernel = names.kernels.find(*launch.kernel);
  if (kernel == names.kernels.end())
    return inputError("starts kernel \"{:.200}\", which is not in the bundle", *launch.kernel);
  const std::vector<Param> &params = kernel->second->params;
  if (params.size() != launch.args.size())
    return inputError("passes {} arguments, but kernel \"{}\" has {} parameters",
                      launch.args.size(), *launch.kernel, params.size());
  for (size_t i = 0; i < params.size(); ++i)
    if (Status status = checkArg(launch, launch.args[i], params[i]); !status.ok())
      return inputError("argument {}: {}", i, status.error().message);
  return {};
}

/// C7: what is marked for the host has its op.
Status ProgramCheck::checkHostFlags() {
  for (const Buffer &buffer : program.buffers) {
    if (buffer.host_writes && !hostWritten.count(buffer.edge))
      return inputError("buffer \"{}\" is for the host to write, but no host op does", buffer.edge);
    if (buffer.host_reads && !hostRead.count(buffer.edge))
      return inputError("buffer \"{}\" is for the host to read, but no host op does", buffer.edge);
  }
  return {};
}

Status ProgramCheck::run() {
  if (program.rows == 0 || program.rows > 65536)
    return inputError("has {} rows", program.rows);
  for (auto step :
       {&ProgramCheck::checkInputs, &ProgramCheck::checkOrder, &ProgramCheck::checkBuffers})
    if (Status status = (this->*step)(); !status.ok())
      return status;
  for (const Launch &launch : program.launch_list)
    if (Status status = checkLaunch(launch); !status.ok())
      return inputError("group {} ({:.80}): {}", launch.group, launch.rule, status.error().message);
  return checkHostFlags();
}

Status bundle::checkProgram(const Names &names, const Manifest &manifest, const Program &program) {
  return ProgramCheck(names, manifest, program).run();
}
