#include "cost/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

namespace {

constexpr double kUnit =
    2e-6;  // error of one fp32 operation chain, with margin, relative to the result's RMS

}  // namespace

Tolerance candidate_tolerance(const Function& function, bool reassociated) {
  Result<Function> flat = inline_calls(function);
  double of_rms = 0;
  int anchors = 0;
  for (const Expr& expr : post_order(flat.ok() ? (*flat)->body : function->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr) continue;
    double products = 1;
    if (call->op->kind >= FusionKind::kReduction) {
      std::vector<Type> types;
      for (const Expr& arg : call->args) types.push_back(arg->type());
      double elements = 0;
      for (const TensorType& leaf : call->type().leaves())
        elements += static_cast<double>(num_elements(leaf.shape));
      if (call->op->flops && elements > 0)
        products = std::max(1.0, call->op->flops(types, call->attrs, call->type()) / elements / 2);
      ++anchors;
    }
    of_rms += kUnit * std::sqrt(products);
  }
  // Deep regions amplify rounding; the whole model is verified end to end on real data besides.
  double depth = std::max(1.0, std::sqrt(static_cast<double>(anchors)));
  return {of_rms * depth, reassociated ? 5e-5 * depth : 1e-6, 5e-6 * depth};
}

Tolerance model_tolerance() { return {0, 1e-4, 1e-3}; }

Difference compare_tensors(const Tensor& actual, const Tensor& expected,
                           const Tolerance& tolerance) {
  Difference difference;
  int64_t count = expected.size();
  auto fail = [&](std::string reason) {
    if (difference.within) difference.reason = std::move(reason);
    difference.within = false;
  };
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    fail("shape or dtype differ");
    return difference;
  }
  if (!is_float(expected.dtype())) {
    for (int64_t i = 0; i < count; ++i)
      if (actual.element_as_int64(i) != expected.element_as_int64(i)) {
        difference.max_abs = 1;
        fail(fmt::format("element {}: {} instead of {}", i, actual.element_as_int64(i),
                         expected.element_as_int64(i)));
        break;
      }
    return difference;
  }
  double largest = 0, squares = 0;
  int64_t nonzero = 0;
  for (int64_t i = 0; i < count; ++i) {
    double b = expected.element_as_double(i);
    if (!std::isfinite(b)) continue;
    largest = std::max(largest, std::abs(b));
    squares += b * b;
    nonzero += b != 0;
  }
  difference.informative = nonzero * 20 >= count;
  double allowed =
      tolerance.of_rms * std::sqrt(squares / std::max<double>(1, static_cast<double>(count))) +
      tolerance.of_largest * largest;
  for (int64_t i = 0; i < count; ++i) {
    double a = actual.element_as_double(i), b = expected.element_as_double(i);
    if (!std::isfinite(b) || !std::isfinite(a)) {
      if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
      fail(fmt::format("element {}: {} instead of {}", i, a, b));
      continue;
    }
    double error = std::abs(a - b);
    difference.max_abs = std::max(difference.max_abs, error);
    if (error > allowed + tolerance.relative * std::abs(b))
      fail(fmt::format("element {}: {:.9g} instead of {:.9g} (allowed {:.3g})", i, a, b,
                       allowed + tolerance.relative * std::abs(b)));
  }
  difference.max_rel = largest > 0 ? difference.max_abs / largest : difference.max_abs;
  return difference;
}

}  // namespace collage
