#include "verify/quantisation_steps.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "verify/noise.h"

namespace collage {

namespace {

constexpr uint32_t kMovedOneIn = 64;

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

Result<std::vector<Tensor>> interpret_with_moved_steps(const Function& function,
                                                       std::span<const Tensor> inputs,
                                                       uint64_t seed) {
  uint64_t tensor = seed << 32;
  return interpret(function, inputs,
                   [&tensor](const CallNode& call,
                             std::span<const Tensor> given) -> Result<std::vector<Tensor>> {
                     std::vector<Tensor> results = TRY(evaluate_call(call, given));
                     if (quantises(call))
                       results[0] = TRY(with_moved_steps(results[0], kMovedOneIn, ++tensor));
                     return results;
                   });
}

}  // namespace collage
