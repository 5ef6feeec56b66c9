#include "verify/quanta.h"

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "verify/noise.h"

namespace collage {

namespace {

constexpr uint32_t kOneIn = 64;

double number(const Tensor& tensor, int64_t i) {
  return is_float(tensor.dtype()) ? tensor.element_as_double(i)
                                  : static_cast<double>(tensor.element_as_int64(i));
}

}  // namespace

bool quantises(const CallNode& call) {
  return call.op != nullptr && call.op->name == "qnn.quantize";
}

bool quantises(const Function& function) {
  const std::vector<Expr> nodes = post_order(function->body);
  return std::any_of(nodes.begin(), nodes.end(), [](const Expr& node) {
    const auto* call = as<CallNode>(node);
    return call != nullptr && quantises(*call);
  });
}

Result<std::vector<Tensor>> interpret_with_neighbours(const Function& function,
                                                      std::span<const Tensor> inputs,
                                                      uint64_t seed) {
  uint64_t tensor = seed << 32;
  return interpret(function, inputs,
                   [&tensor](const CallNode& call,
                             std::span<const Tensor> given) -> Result<std::vector<Tensor>> {
                     std::vector<Tensor> results = TRY(evaluate_call(call, given));
                     if (quantises(call))
                       results[0] = TRY(with_neighbours(results[0], kOneIn, ++tensor));
                     return results;
                   });
}

Result<std::vector<double>> moved_by_neighbours(const Function& function,
                                                std::span<const Tensor> inputs,
                                                std::span<const Tensor> expected) {
  const std::vector<Tensor> moved = TRY(interpret_with_neighbours(function, inputs, 1));
  std::vector<double> largest(expected.size(), 0);
  for (size_t output = 0; output < expected.size(); ++output)
    for (int64_t i = 0, n = expected[output].size(); i < n; ++i) {
      const double change = std::abs(number(moved[output], i) - number(expected[output], i));
      if (std::isfinite(change)) largest[output] = std::max(largest[output], change);
    }
  return largest;
}

}  // namespace collage
