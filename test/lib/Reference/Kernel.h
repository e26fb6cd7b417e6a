//===- Kernel.h - a kernel and its arguments in a few lines ----------------===//

#ifndef PLANC_TEST_LIB_REFERENCE_KERNEL_H
#define PLANC_TEST_LIB_REFERENCE_KERNEL_H

#include "lib/Reference/Compare.h"
#include "lib/Reference/Formats/Scalar.h"

#include "mlir/IR/Operation.h"

#include <cstring>
#include <deque>
#include <optional>

namespace planc::reference {

/// A kernel's text and the memory of its arguments.
class TestKernel {
public:
  /// `arguments` and `body` as between the braces of a plan.kernel.
  TestKernel(const std::string &arguments, const std::string &body)
      : plan(BoundPlan::parse(
            "plan.kernel @k rows 1 compute \"memory\" numerics \"reference\" {\n^bb0(" + arguments +
            "):\n" + body + "\n}")) {}

  template <class T> TestKernel &argument(std::vector<T> values) {
    std::vector<char> &bytes = memory.emplace_back(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    arguments.push_back({bytes.data(), bytes.size()});
    return *this;
  }
  TestKernel &bf16(const std::vector<double> &values) {
    std::vector<uint16_t> codes;
    for (double value : values)
      codes.push_back(bf16FromDouble(value));
    return argument(codes);
  }
  TestKernel &f32(const std::vector<double> &values) {
    return argument(std::vector<float>(values.begin(), values.end()));
  }
  TestKernel &i32(const std::vector<int32_t> &values) { return argument(values); }
  TestKernel &i64(const std::vector<int64_t> &values) { return argument(values); }

  /// How a device might round in it: once in each part.
  std::vector<numerics::Node> arithmetic() {
    std::vector<numerics::Node> nodes;
    mlir::Block &body = plan->kernel("k")->getRegion(0).front();
    for (mlir::Operation &op : body.without_terminator()) {
      numerics::Node &node = nodes.emplace_back();
      node.op = op.getName().stripDialect().str();
      std::vector<std::string_view> parts = numerics::partsOf(node.op).value();
      for (std::string_view part : parts)
        node.parts.push_back(numerics::rounding(std::string(part), 1));
    }
    return nodes;
  }

  Result<Evaluation> run(std::span<const Argument> observed = {}, Options options = {}) {
    if (!plan.ok())
      return plan.takeError();
    return evaluate(plan->kernel("k"), arguments, options, observed, arithmetic());
  }

  Result<BoundPlan> plan;
  std::vector<Argument> arguments;
  std::deque<std::vector<char>> memory;
};

/// Two heads of two over one of two, blocks of a table with two; q, k, v, table, length, caches.
inline TestKernel pagedAttentionKernel() {
  return TestKernel(
      "%q: tensor<1x4xbf16>, %k: tensor<1x2xbf16>, %v: tensor<1x2xbf16>, %t: tensor<1x2xi32>, "
      "%n: tensor<1xi32>, %kc: !plan.state<paged, 1 x 2, bf16>, %vc: !plan.state<paged, 1 x 2, "
      "bf16>",
      "%a = plan.paged_attention %q, %k, %v, %t, %n, %kc, %vc precision<act = bf16, out = [bf16]>"
      " steps<cache bf16, scores f32, softmax f32, accumulate f32> : (tensor<1x4xbf16>, "
      "tensor<1x2xbf16>, tensor<1x2xbf16>, tensor<1x2xi32>, tensor<1xi32>, "
      "!plan.state<paged, 1 x 2, bf16>, !plan.state<paged, 1 x 2, bf16>) -> tensor<1x4xbf16>\n"
      "plan.yield %a : tensor<1x4xbf16>");
}

} // namespace planc::reference

#endif // PLANC_TEST_LIB_REFERENCE_KERNEL_H
