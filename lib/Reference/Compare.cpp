//===- Compare.cpp - a device's results against the reference's ------------===//

#include "lib/Reference/Compare.h"
#include "lib/Reference/Formats/Scalar.h"
#include "lib/Reference/Frame.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

using namespace mlir;

namespace planc::reference {

static double load(Element element, const void *data, uint64_t i) {
  switch (element) {
  case Element::BF16:
    return bf16ToFloat(static_cast<const uint16_t *>(data)[i]);
  case Element::F32:
    return static_cast<const float *>(data)[i];
  case Element::I32:
    return static_cast<const int32_t *>(data)[i];
  case Element::I64:
    return double(static_cast<const int64_t *>(data)[i]);
  }
  return 0;
}

/// True if `device` is a rounding of some value within `slack` of `exact`.
static bool within(Element element, double device, double exact, double slack) {
  if (std::isnan(exact))
    return std::isnan(device);
  double low = exact - slack, high = exact + slack;
  if (element == Element::BF16)
    return device >= bf(low) && device <= bf(high);
  if (element == Element::F32)
    return device >= f32(low) && device <= f32(high);
  return std::fabs(device - exact) <= slack;
}

/// The neighbours of a stored number in its format, the one beyond the largest as if exponents had no
/// end.
static std::pair<double, double> neighbours(Element element, double value) {
  // bf16 numbers are the f32 numbers whose low 16 bits are zero.
  double step = element == Element::BF16 ? 0x1p16 : 1;
  auto bits = std::bit_cast<uint32_t>(float(std::fabs(value)));
  auto decode = [](double code) {
    if (code >= 0x7F800000)
      return 0x1p128;
    return double(std::bit_cast<float>(uint32_t(code)));
  };
  double above = decode(bits + step), below = bits ? decode(bits - step) : -decode(step);
  return value < 0 ? std::pair(-above, -below) : std::pair(below, above);
}

/// How far from `exact` the nearest value lies that is rounded to `device`.
static double distance(Element element, double device, double exact) {
  if (std::isnan(device) || std::isnan(exact))
    return std::isnan(device) && std::isnan(exact) ? 0 : INFINITY;
  if (element != Element::BF16 && element != Element::F32)
    return std::fabs(device - exact);
  if (std::isinf(device))
    return std::isinf(exact) && (device > 0) == (exact > 0) ? 0 : INFINITY;
  auto [below, above] = neighbours(element, device);
  double low = (below + device) / 2, high = (device + above) / 2;
  return exact < low ? low - exact : exact > high ? exact - high : 0;
}

/// `data` holds the device's elements of `expected`.
static EdgeReport compareElements(const Tensor &expected, const void *data) {
  EdgeReport report;
  report.elements = expected.exact.size();
  double difference = 0, norm = 0;
  for (uint64_t i = 0; i < report.elements; ++i) {
    double device = load(expected.element, data, i), exact = expected.exact[i];
    double slack = expected.slack.empty() ? 0 : expected.slack[i];
    double stored = expected.element == Element::BF16  ? bf(exact)
                    : expected.element == Element::F32 ? f32(exact)
                                                       : exact;
    double error = device == stored ? 0 : std::fabs(device - stored);
    if (std::isfinite(stored)) {
      difference += error * error;
      norm += stored * stored;
    }
    if (!(error <= report.maxAbsError))
      report.maxAbsError = error;
    bool passes = within(expected.element, device, exact, slack);
    double needed = distance(expected.element, device, exact);
    // A tie may go either way, so that the two may differ by the last place of a double.
    double fraction = needed == 0 ? 0 : needed / slack;
    fraction = passes ? std::min(fraction, 1.0) : std::max(fraction, std::nextafter(1.0, 2.0));
    report.worstFraction = std::max(report.worstFraction, fraction);
    if (passes)
      continue;
    int64_t columns = expected.columns();
    if (!report.failures++)
      report.first = {int64_t(i) / columns, int64_t(i) % columns, device, stored, slack};
  }
  report.relativeNorm = difference == 0 ? 0 : std::sqrt(difference / norm);
  return report;
}

static void compareOutputs(const Evaluation &evaluation, std::span<const Argument> outputs,
                           Report &report) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].data)
      continue;
    const NodeResult &result = evaluation.results[evaluation.outputs[i]];
    EdgeReport edge = compareElements(result.value, outputs[i].data);
    edge.node = result.node;
    edge.edge =
        result.edge.empty() ? result.node + "." + std::to_string(result.index) : result.edge;
    report.edges.push_back(std::move(edge));
  }
}

/// What lies between two writes must be as it was.
static void compareUntouched(const Argument &before, const Argument &after, uint64_t begin,
                             uint64_t end, unsigned argument, Report &report) {
  auto *old = static_cast<const std::byte *>(before.data);
  auto *now = static_cast<const std::byte *>(after.data);
  if (begin >= end || std::memcmp(old + begin, now + begin, end - begin) == 0)
    return;
  EdgeReport edge;
  edge.edge = "argument " + std::to_string(argument) + " outside of what is written";
  edge.elements = end - begin;
  for (uint64_t i = begin; i < end; ++i)
    if (old[i] != now[i] && !edge.failures++)
      edge.first = {int64_t(i), 0, double(std::to_integer<int>(now[i])),
                    double(std::to_integer<int>(old[i])), 0};
  report.edges.push_back(std::move(edge));
}

static void compareStates(const Evaluation &evaluation, const Observation &observation,
                          Report &report) {
  for (unsigned argument = 0; argument < observation.states.size(); ++argument) {
    const Argument &after = observation.states[argument];
    if (!after.data)
      continue;
    // A later write to the same place hides an earlier one.
    std::map<uint64_t, const StateWrite *> writes;
    for (const StateWrite &write : evaluation.states)
      if (write.argument == argument)
        writes[write.element * elementBytes(write.value.element)] = &write;
    uint64_t at = 0;
    const Argument &before = observation.arguments[argument];
    for (auto [offset, write] : writes) {
      compareUntouched(before, after, at, offset, argument, report);
      EdgeReport edge =
          compareElements(write->value, static_cast<const std::byte *>(after.data) + offset);
      edge.node = write->node;
      edge.edge = write->node + " state at element " + std::to_string(write->element);
      report.edges.push_back(std::move(edge));
      at = offset + write->value.exact.size() * elementBytes(write->value.element);
    }
    compareUntouched(before, after, at, before.bytes, argument, report);
  }
}

bool Report::passed() const {
  return llvm::all_of(edges, [](const EdgeReport &edge) { return edge.failures == 0; });
}

Result<Report> compare(Operation *region, const Observation &observation,
                       std::span<const numerics::Node> arithmetic, const Options &options) {
  if (arithmetic.empty())
    return inputError("nothing says how the kernel rounds, so that no bound follows");
  if (!observation.states.empty() && observation.states.size() != observation.arguments.size())
    return inputError("{} states given for {} arguments", observation.states.size(),
                      observation.arguments.size());
  for (size_t i = 0; i < observation.states.size(); ++i)
    if (observation.states[i].data && observation.states[i].bytes != observation.arguments[i].bytes)
      return inputError("argument {}: the pool has {} bytes before the launch and {} after", i,
                        observation.arguments[i].bytes, observation.states[i].bytes);
  if (size_t stored = region->getRegion(0).front().getTerminator()->getNumOperands();
      observation.outputs.size() != stored)
    return inputError("{} outputs given, the region has {}", observation.outputs.size(), stored);
  Result<Evaluation> evaluation =
      evaluate(region, observation.arguments, options, observation.outputs, arithmetic);
  if (!evaluation.ok())
    return evaluation.takeError();
  Report report;
  compareOutputs(*evaluation, observation.outputs, report);
  compareStates(*evaluation, observation, report);
  return report;
}

std::string describe(const EdgeReport &report) {
  std::string text =
      fmt::format("{}: max abs error {:.3g}, relative norm {:.3g}, {:.3g} of the bound",
                  report.edge, report.maxAbsError, report.relativeNorm, report.worstFraction);
  if (const auto &first = report.first)
    text += fmt::format(", {} of {} outside their bound, first [{}, {}]: {:.9g} instead of {:.9g} "
                        "(within {:.3g})",
                        report.failures, report.elements, first->row, first->column, first->device,
                        first->reference, first->limit);
  return text;
}

} // namespace planc::reference
