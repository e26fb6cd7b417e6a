//===- Inspect.cpp - what is inside a bundle -------------------------------===//
//
// Everything printed is derived from the manifest here; the manifest itself keeps no second copy.
//
//===----------------------------------------------------------------------===//
#include "lib/Bundle/Inspect.h"

#include <algorithm>
#include <set>

using namespace planc;
using namespace planc::bundle;

/// Ids of the groups of a program that start a kernel.
static std::vector<uint32_t> groupsOf(const Program &program, const Kernel &kernel) {
  std::vector<uint32_t> ids;
  for (const Launch &launch : program.launch_list)
    if (launch.kernel == kernel.name && (ids.empty() || ids.back() != launch.group))
      ids.push_back(launch.group);
  return ids;
}

Json bundle::inspectJson(const Bundle &bundle) {
  const Manifest &manifest = bundle.manifest();
  Json json = toJson(manifest);

  Json buffers = Json::array();
  Workspace largest;
  for (size_t i = 0; i < manifest.programs.size(); ++i) {
    Json &program = json["programs"][i];
    for (Json &buffer : program["buffers"]) {
      buffer["program"] = manifest.programs[i].name;
      buffers.push_back(std::move(buffer));
    }
    program.erase("buffers");
    const Workspace &workspace = manifest.programs[i].workspace;
    largest.bytes = std::max(largest.bytes, workspace.bytes);
    largest.unshared_bytes = std::max(largest.unshared_bytes, workspace.unshared_bytes);
    largest.scratch_bytes = std::max(largest.scratch_bytes, workspace.scratch_bytes);
    largest.counters = std::max(largest.counters, workspace.counters);
  }
  for (size_t i = 0; i < manifest.kernels.size(); ++i) {
    Json byProgram = Json::object();
    std::set<uint32_t> all;
    for (const Program &program : manifest.programs) {
      std::vector<uint32_t> ids = groupsOf(program, manifest.kernels[i]);
      all.insert(ids.begin(), ids.end());
      byProgram[program.name] = ids;
    }
    json["kernels"][i]["groups"] = all;
    json["kernels"][i]["programs"] = byProgram;
  }
  json["buffers"] = std::move(buffers);
  json["workspace"] = {{"bytes", largest.bytes},
                       {"unshared_bytes", largest.unshared_bytes},
                       {"scratch_bytes", largest.scratch_bytes},
                       {"counters", largest.counters}};
  return json;
}

/// "3.4 MiB"
static std::string size(uint64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return unit ? fmt::format("{:.1f} {}", value, units[unit]) : fmt::format("{} B", bytes);
}

/// A figure that only ptxas knows.
template <class T> static std::string figure(const std::optional<T> &value) {
  return value ? fmt::format("{}", *value) : "-";
}

static void appendKernels(std::string &out, const Manifest &manifest) {
  out += fmt::format("\n{:<8} {:>6} {:>16} {:>6} {:>8} {:>8} {:>5} {:>5} {:>7}  {}\n", "target",
                     "groups", "grid", "block", "shared", "scratch", "regs", "spill", "code",
                     "kernel");
  for (const Kernel &kernel : manifest.kernels) {
    size_t groups = 0;
    for (const Program &program : manifest.programs)
      groups += groupsOf(program, kernel).size();
    for (const auto &[name, image] : kernel.targets)
      out += fmt::format("{:<8} {:>6} {:>16} {:>6} {:>8} {:>8} {:>5} {:>5} {:>7}  {}\n", name,
                         groups, fmt::format("{}", fmt::join(image.grid, "x")),
                         image.block[0] * image.block[1] * image.block[2],
                         image.shared_bytes + image.static_shared_bytes, image.scratch_bytes,
                         figure(image.registers), figure(image.spill_bytes),
                         figure(image.code_bytes), kernel.name);
  }
}

std::string bundle::inspectText(const Bundle &bundle) {
  const Manifest &manifest = bundle.manifest();
  const Provenance &made = manifest.provenance;
  std::string out =
      fmt::format("bundle format {}, made by planc {}, {}, {}\n", manifest.format_version,
                  made.planc, made.llvm, made.ptxas.value_or("without ptxas: PTX only"));
  out += "targets:";
  for (const Target &target : manifest.targets)
    out += fmt::format(" {} ({})", target.name, target.product);
  const Model &model = manifest.model;
  out += fmt::format("\nmodel: vocabulary {}, context {}, KV blocks of {}\n", model.vocab,
                     model.max_context, model.kv_block);

  for (const Program &program : manifest.programs) {
    out += fmt::format("program {}: mode {}, {} rows, {} nodes, {} groups, {} launches\n",
                       program.name, program.mode, program.rows, program.nodes, program.groups,
                       program.launches);
    out +=
        fmt::format("  workspace {} (unshared {}), scratch {}\n", size(program.workspace.bytes),
                    size(program.workspace.unshared_bytes), size(program.workspace.scratch_bytes));
    for (const Launch &launch : program.launch_list)
      if (launch.note)
        out += fmt::format("  group {} ({}) has no launch: {}\n", launch.group, launch.rule,
                           *launch.note);
  }

  uint64_t device = 0, host = 0, slots = 0, blocks = 0;
  for (const Weight &weight : manifest.weights)
    (weight.host ? host : device) += weight.bytes + weight.scale_bytes;
  for (const State &state : manifest.states)
    (state.kind == "slots" ? slots : blocks) += state.bytes;
  out += fmt::format("weights: {} operands, {} on the device, {} on the host\n",
                     manifest.weights.size(), size(device), size(host));
  out += fmt::format("states: {}, {} a slot, {} a KV block\n", manifest.states.size(), size(slots),
                     size(blocks));
  appendKernels(out, manifest);
  return out;
}

Result<std::string> bundle::explainText(const Bundle &bundle, const std::string &name) {
  const Manifest &manifest = bundle.manifest();
  if (!name.empty() && !manifest.findKernel(name))
    return Error{fmt::format("there is no kernel \"{:.200}\"; planc inspect lists them", name),
                 ErrorKind::Input, bundle.path()};
  std::string out =
      "In a bound, [part] is gamma of its roundings, d u / (1 - d u) with u = 2^-24; what a "
      "fused input may be\noff already is added. A result passes if it is a rounding of "
      "a value inside.\n";
  for (const Kernel &kernel : manifest.kernels) {
    if (!name.empty() && kernel.name != name)
      continue;
    out += fmt::format("\nkernel {} ({}, {})\n", kernel.name, kernel.schedule, kernel.numerics);
    for (const Program &program : manifest.programs)
      if (std::vector<uint32_t> groups = groupsOf(program, kernel); !groups.empty())
        out += fmt::format("  program {}, groups {}\n", program.name, fmt::join(groups, " "));
    for (const numerics::Node &node : kernel.arithmetic)
      out += "  " + numerics::explain(node);
  }
  return out;
}
