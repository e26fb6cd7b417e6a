//===- Compare.cpp - a device's launches, judged by the reference -----------===//
//
// A launch's arguments are its kernel's parameters; those of the plan's region are the same without
// outputs, scratch and counters, and with the two pointers of an fp8 weight as one.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/plan-run/Compare.h"

#include "lib/Reference/Compare.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

using namespace planc;
using namespace planrun;
using bundle::ArgKind;
using reference::Argument;

/// The worst of one edge or state over all steps.
namespace {
struct Worst {
  std::string node;
  double maxAbsError = 0, relativeNorm = 0, fraction = 0;
  uint64_t elements = 0, failures = 0;
};

struct First {
  size_t step = 0;
  uint32_t group = 0;
  std::string rule, node, edge, text;
};
} // namespace

struct Comparison::Impl {
  Impl(const bundle::Bundle &bundle, const bundle::Program &program, reference::BoundPlan plan)
      : bundle(bundle), program(program), plan(std::move(plan)) {}

  Status readArguments(const bundle::Launch &launch);
  Status readArgument(const bundle::Arg &arg);
  Status readStates(std::vector<Argument> &states);
  Status judge(const bundle::Launch &launch, std::span<const Argument> outputs,
               std::span<const Argument> states, const std::vector<std::string> &edges);
  void take(const bundle::Launch &launch, std::string name, const reference::EdgeReport &report);

  /// Memory for `bytes` that lives until the launch is judged.
  void *allocate(uint64_t bytes) { return memory.emplace_back(bytes).data(); }
  Status readBuffer(const std::string &name, uint64_t bytes, Argument &argument);
  /// `error` by reference: the call that gives the result may be evaluated after a copy would be.
  Status status(planrt_status result, planrt_error *&error) const {
    if (result == PLANRT_OK)
      return {};
    Error failure{planrt_error_message(error), ErrorKind::Device, planrt_error_file(error)};
    planrt_error_free(error);
    return failure;
  }

  const bundle::Bundle &bundle;
  const bundle::Program &program;
  reference::BoundPlan plan;
  reference::Options options;
  const planrt_weights *weights = nullptr;
  const planrt_session *session = nullptr;
  const planrt_step *step = nullptr;

  size_t stepIndex = 0;
  std::deque<Bytes> memory;
  std::vector<Argument> arguments;
  std::vector<std::string> states; // by argument; empty for others and for states only read
  std::vector<std::string> order;  // edges, as they first came
  std::map<std::string, Worst> worst;
  std::optional<First> first;
};

Comparison::Comparison(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Comparison::~Comparison() = default;

Result<std::unique_ptr<Comparison>>
Comparison::open(const bundle::Bundle &bundle, const bundle::Program &program, uint32_t threads,
                 const planrt_weights *weights, const planrt_session *session,
                 const planrt_step *step) {
  Result<reference::BoundPlan> plan =
      reference::BoundPlan::parse(asText(bundle.section(bundle::planIrSection)));
  if (!plan.ok())
    return fileError(bundle.path(), "section {}: {}", bundle::planIrSection, plan.error().message);
  auto impl = std::make_unique<Impl>(bundle, program, std::move(*plan));
  impl->options.kvBlock = unsigned(bundle.manifest().model.kv_block);
  impl->options.threads = threads;
  impl->weights = weights;
  impl->session = session;
  impl->step = step;
  return std::unique_ptr<Comparison>(new Comparison(std::move(impl)));
}

void Comparison::beginStep(size_t step) { impl->stepIndex = step; }
bool Comparison::passed() const { return !impl->first; }

//===----------------------------------------------------------------------===//
// Reading a launch's operands back
//===----------------------------------------------------------------------===//

Status Comparison::Impl::readBuffer(const std::string &name, uint64_t bytes, Argument &argument) {
  argument.data = allocate(bytes);
  argument.bytes = bytes;
  planrt_error *error = nullptr;
  return status(planrt_step_buffer_read(step, name.c_str(), argument.data, bytes, &error), error);
}

Status Comparison::Impl::readArgument(const bundle::Arg &arg) {
  Argument argument;
  planrt_error *error = nullptr;
  switch (arg.kind) {
  case ArgKind::buffer:
  case ArgKind::input: {
    uint64_t bytes = 0;
    for (const bundle::Buffer &buffer : program.buffers)
      if (buffer.edge == *arg.name)
        bytes = buffer.bytes;
    for (const bundle::Input &input : program.inputs)
      if (arg.kind == ArgKind::input && input.name == *arg.name) {
        bytes = bundle::byteSize(input.dtype);
        for (int64_t extent : input.shape)
          bytes *= uint64_t(extent);
      }
    if (Status read = readBuffer(*arg.name, bytes, argument); !read.ok())
      return read;
    break;
  }
  case ArgKind::weight: {
    const bundle::Weight &weight = *bundle.manifest().findWeight(*arg.name);
    bool scales = arg.part == "scales";
    uint64_t bytes = scales ? weight.scale_bytes : weight.bytes;
    void *data = allocate(bytes);
    if (Status read = status(
            planrt_weights_read(weights, weight.name.c_str(), scales, 0, data, bytes, &error),
            error);
        !read.ok())
      return read;
    if (scales) {
      arguments.back().scales = static_cast<const float *>(data);
      return {};
    }
    argument.data = data;
    argument.bytes = bytes;
    break;
  }
  case ArgKind::state: {
    argument.bytes = planrt_session_state_bytes(session, arg.name->c_str());
    argument.data = allocate(argument.bytes);
    if (Status read = status(planrt_session_state_read(session, arg.name->c_str(), 0, argument.data,
                                                       argument.bytes, &error),
                             error);
        !read.ok())
      return read;
    break;
  }
  case ArgKind::scratch:
  case ArgKind::counters:
    return {};
  }
  arguments.push_back(argument);
  states.emplace_back();
  return {};
}

Status Comparison::Impl::readArguments(const bundle::Launch &launch) {
  memory.clear();
  arguments.clear();
  states.clear();
  const std::vector<bundle::Param> &params = bundle.manifest().findKernel(*launch.kernel)->params;
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const bundle::Arg &arg = launch.args[i];
    if (arg.kind == ArgKind::buffer && params[i].written)
      continue;
    if (Status read = readArgument(arg); !read.ok())
      return read;
    if (arg.kind == ArgKind::state && params[i].written)
      states.back() = *arg.name;
  }
  return {};
}

Status Comparison::before(size_t index) {
  const bundle::Launch &launch = impl->program.launch_list[index];
  return launch.kernel ? impl->readArguments(launch) : Status();
}

/// The pools after the launch; nothing for arguments that are not written states.
Status Comparison::Impl::readStates(std::vector<Argument> &after) {
  for (size_t i = 0; i < states.size(); ++i) {
    Argument &pool = after.emplace_back();
    if (states[i].empty())
      continue;
    pool.bytes = arguments[i].bytes;
    pool.data = allocate(pool.bytes);
    planrt_error *error = nullptr;
    if (Status read = status(
            planrt_session_state_read(session, states[i].c_str(), 0, pool.data, pool.bytes, &error),
            error);
        !read.ok())
      return read;
  }
  return {};
}

Status Comparison::after(size_t index) {
  const bundle::Launch &launch = impl->program.launch_list[index];
  if (!launch.kernel)
    return {};
  const std::vector<bundle::Param> &params =
      impl->bundle.manifest().findKernel(*launch.kernel)->params;
  std::vector<Argument> outputs, states;
  std::vector<std::string> edges;
  for (size_t i = 0; i < launch.args.size(); ++i) {
    if (launch.args[i].kind != ArgKind::buffer || !params[i].written)
      continue;
    edges.push_back(*launch.args[i].name);
    for (const bundle::Buffer &buffer : impl->program.buffers)
      if (buffer.edge == edges.back())
        if (Status read = impl->readBuffer(buffer.edge, buffer.bytes, outputs.emplace_back());
            !read.ok())
          return read;
  }
  if (Status read = impl->readStates(states); !read.ok())
    return read;
  return impl->judge(launch, outputs, states, edges);
}

//===----------------------------------------------------------------------===//
// Judging
//===----------------------------------------------------------------------===//

void Comparison::Impl::take(const bundle::Launch &launch, std::string name,
                            const reference::EdgeReport &report) {
  auto [at, isNew] = worst.try_emplace(name);
  if (isNew)
    order.push_back(name);
  Worst &entry = at->second;
  entry.node = report.node;
  entry.maxAbsError = std::isnan(report.maxAbsError)
                          ? report.maxAbsError
                          : std::max(entry.maxAbsError, report.maxAbsError);
  entry.relativeNorm = std::max(entry.relativeNorm, report.relativeNorm);
  entry.fraction = std::max(entry.fraction, report.worstFraction);
  entry.elements += report.elements;
  entry.failures += report.failures;
  if (report.failures && !first)
    first =
        First{stepIndex, launch.group, launch.rule, report.node, name, reference::describe(report)};
}

Status Comparison::Impl::judge(const bundle::Launch &launch, std::span<const Argument> outputs,
                               std::span<const Argument> after,
                               const std::vector<std::string> &edges) {
  mlir::Operation *region = plan.kernel(*launch.kernel);
  if (!region)
    return fileError(bundle.path(), "section {} has no kernel \"{}\"", bundle::planIrSection,
                     *launch.kernel);
  Result<reference::Report> report =
      reference::compare(region, {arguments, outputs, after},
                         bundle.manifest().findKernel(*launch.kernel)->arithmetic, options);
  if (!report.ok()) {
    Error error = report.takeError();
    error.message = fmt::format("group {} ({}), kernel \"{}\": {}", launch.group, launch.rule,
                                *launch.kernel, error.message);
    return error;
  }
  // A kernel is shared by groups, so its report knows no edges and no nodes of this one.
  for (size_t i = 0; i < report->edges.size(); ++i) {
    reference::EdgeReport &edge = report->edges[i];
    std::string name = i < edges.size() ? edges[i]
                                        : fmt::format("group {} {}", launch.group,
                                                      edge.edge.substr(0, edge.edge.find(" at ")));
    edge.edge = name;
    edge.node = fmt::format("{}", fmt::join(launch.nodes, ", "));
    take(launch, name, edge);
  }
  return {};
}

Json Comparison::summary() const {
  Json edges = Json::array();
  for (const std::string &name : impl->order) {
    const Worst &entry = impl->worst.at(name);
    edges.push_back({{"edge", name},
                     {"nodes", entry.node},
                     {"max_abs_error", entry.maxAbsError},
                     {"relative_norm", entry.relativeNorm},
                     {"of_bound", std::min(entry.fraction, 0x1p1000)}, // JSON has no infinity
                     {"elements", entry.elements},
                     {"failures", entry.failures}});
  }
  Json first = nullptr;
  if (impl->first)
    first = {{"step", impl->first->step}, {"group", impl->first->group},
             {"rule", impl->first->rule}, {"nodes", impl->first->node},
             {"edge", impl->first->edge}, {"text", impl->first->text}};
  return {{"reference", "float64"}, {"passed", passed()}, {"first", first}, {"edges", edges}};
}
