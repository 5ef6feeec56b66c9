#include "passes/fold_quantised_scale.h"

#include <cmath>

#include "ops/quantised.h"
#include "passes/constants.h"
#include "passes/quantised.h"
#include "passes/rewrite_rules.h"

namespace collage {

namespace {

constexpr int kDeepest = 8;  // operators between a qnn.quantize and what takes its scale

// f(x / c) = f(x) / c for c > 0
bool is_homogeneous(std::string_view op) {
  return op == "nn.relu" || op == "nn.leaky_relu" || op.starts_with("nn.avg_pool") ||
         op.starts_with("nn.global_avg_pool") || op == "nn.batch_flatten" || op == "reshape";
}
// f(x / c, y / c) = f(x, y) / c
bool adds(std::string_view op) {
  return op == "add" || op == "subtract" || op == "nn.bias_add" || op == "maximum" ||
         op == "minimum";
}

// What a qnn.quantize divides by.
class Division {
 public:
  Division(double by, const Uses& uses) : by_(by), uses_(uses) {}

  // The quotient of the expression, as cheap as the expression itself; null where there is none.
  Result<Expr> of(const Expr& expr, int depth = 0) {
    if (const auto* constant = as<ConstantNode>(expr)) return constant_divided(*constant);
    const auto* call = as<CallNode>(expr);
    // Used elsewhere it would be computed twice.
    if (call == nullptr || call->op == nullptr || depth == kDeepest || !uses_.once(expr))
      return Expr();
    const std::string_view name = call->op->name;
    if (name == "qnn.dequantize") return scale_divided(*call, 1, depth);
    if (is_quantised_product(name)) {
      met_product_ = true;
      return scale_divided(*call, 4, depth);
    }
    if (is_homogeneous(name)) return with_divided(*call, 0, 1, depth);
    if (adds(name)) return with_divided(*call, 0, 2, depth);
    if (name == "clip") return clip_divided(*call, depth);
    return Expr();
  }

  // Whether it divided a product of integers.
  bool met_product() const { return met_product_; }

 private:
  // The call with the quotients of its arguments from `first` to before `last`.
  Result<Expr> with_divided(const CallNode& call, size_t first, size_t last, int depth) {
    std::vector<Expr> args = call.args;
    for (size_t i = first; i < last; ++i) {
      args[i] = TRY(of(args[i], depth + 1));
      if (args[i] == nullptr) return Expr();
    }
    return remake(call, std::move(args));
  }

  Result<Expr> scale_divided(const CallNode& call, size_t scale, int depth) {
    const Expr divided = TRY(with_divided(call, scale, scale + 1, depth));
    return divided != nullptr && is_positive(call_of(divided).args[scale]) ? divided : Expr();
  }

  Result<Expr> clip_divided(const CallNode& clip, int depth) {
    const Expr data = TRY(of(clip.args[0], depth + 1));
    if (data == nullptr) return Expr();
    Attrs attrs = clip.attrs;
    for (const char* bound : {"a_min", "a_max"}) attrs.set(bound, clip.attrs.real(bound) / by_);
    return remake(clip, {data}, std::move(attrs));
  }

  Result<Expr> constant_divided(const ConstantNode& constant) const {
    if (constant.value.dtype() != DType::kFloat32) return Expr();
    Tensor divided = map_constant(constant.value, [&](double v) { return v / by_; });
    for (int64_t i = 0; i < divided.size(); ++i)
      if (!std::isfinite(divided.element_as_double(i))) return Expr();
    return make_constant(std::move(divided), constant.origin());
  }

  double by_;
  const Uses& uses_;
  bool met_product_ = false;
};

Result<Expr> fold_into_quantize(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  const std::optional<double> scale = scalar_value(call.args[1]);
  if (!scale || *scale == 1 || !call.args[1]->tensor_type().shape.empty() ||
      !is_positive(call.args[1]) || call.args[0]->kind() == ExprKind::kConstant)
    return Expr();
  Division division(*scale, uses);
  Expr data = TRY(division.of(call.args[0]));
  if (data == nullptr || !division.met_product()) return Expr();
  Tensor one = map_constant(as<ConstantNode>(call.args[1])->value, [](double) { return 1; });
  return remake(call, {data, make_constant(std::move(one)), call.args[2]});
}

const std::vector<RewriteRule> kFoldQuantisedScaleRules = {
    {"fold_into_quantize the scale", {"qnn.quantize"}, fold_into_quantize}};

}  // namespace

Result<Function> fold_quantised_scale(const Function& function) {
  return apply_rules(function, kFoldQuantisedScaleRules);
}

}  // namespace collage
