#include "backend/onednn/composite.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "backend/onednn/layouts.h"
#include "backend/onednn/steps.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/quantised.h"

namespace collage::onednn {

std::optional<float> Operand::scalar() const {
  if (!is_constant() || constant.size() != 1) return std::nullopt;
  return static_cast<float>(constant.element_as_double(0));
}

bool Composite::quantised() const {
  return anchor != nullptr && is_quantised_product(anchor->op->name);
}

Result<Quantisation> quantisation_of(const Expr& scale, const Expr& zero_point) {
  const auto *s = as<ConstantNode>(scale), *z = as<ConstantNode>(zero_point);
  if (s == nullptr || z == nullptr || s->value.size() != 1 || z->value.size() != 1)
    return unsupported("onednn: a scale or zero point that is no constant number");
  const Quantisation found{static_cast<float>(s->value.element_as_double(0)),
                           static_cast<int32_t>(z->value.element_as_int64(0))};
  if (!(found.scale > 0) || !std::isfinite(found.scale) || !std::isfinite(1 / found.scale))
    return unsupported("onednn: a scale of {}", found.scale);
  return found;
}

namespace {

bool has_known_type(const Expr& expr) {
  if (!expr->type().is_tensor()) return false;
  const DType dtype = expr->tensor_type().dtype;
  return dtype == DType::kFloat32 || dtype == DType::kInt8 || dtype == DType::kUInt8;
}
// A zero point, which is known when the kernel runs.
bool is_integer_number(const Expr& expr) {
  return expr->kind() == ExprKind::kVar && expr->type().is_tensor() &&
         expr->tensor_type().dtype == DType::kInt32 && num_elements(expr->tensor_type().shape) == 1;
}
bool is_float32(const Expr& expr) { return expr->tensor_type().dtype == DType::kFloat32; }

// Reads the flat body call by call; `running_` is the value that the chain has reached.
class Parser {
 public:
  explicit Parser(Function function) { composite_.function = std::move(function); }

  Result<Composite> parse() {
    const Function& function = composite_.function;
    if (!function->result_type().is_tensor()) return unsupported("onednn: several results");
    for (size_t i = 0; i < function->params.size(); ++i)
      params_[function->params[i].get()] = static_cast<int>(i);
    for (const Expr& expr : post_order(function->body)) {
      if (auto* call = as<CallNode>(expr)) {
        if (call->op == nullptr) return unsupported("onednn: a call of a function");
        calls_.push_back(expr);
      } else if (expr->kind() == ExprKind::kTuple) {
        continue;  // an argument of concatenate
      } else if (expr->kind() != ExprKind::kVar && expr->kind() != ExprKind::kConstant) {
        return unsupported("onednn: tuples inside a kernel");
      }
      // Index-like constants stay with the operators that know them.
      if (!has_known_type(expr) && expr->kind() != ExprKind::kConstant && !is_integer_number(expr))
        return unsupported("onednn: {} is neither float32 nor of 8 bits", expr->type().to_string());
      if (expr->type().is_tensor() && num_elements(expr->tensor_type().shape) == 0)
        return unsupported("onednn: an empty tensor");
    }
    if (calls_.empty()) return unsupported("onednn: nothing to compute");
    end_ = function->body;
    TRY(take_conversions());
    TRY(start());
    for (const Expr& param : function->params)
      if (is_integer_number(param) &&
          !(composite_.quantised() && composite_.anchor->args[3] == param))
        return unsupported("onednn: {}, which is no zero point of data", param->type().to_string());
    while (next_ < calls_.size()) TRY(step());
    if (running_ != end_) return unsupported("onednn: not a chain");
    composite_.result = running_->tensor_type().shape;
    composite_.types = {composite_.inputs[0].type,
                        TRY(type_of(function->body->tensor_type().dtype))};
    return std::move(composite_);
  }

 private:
  Result<Operand> operand(const Expr& expr) {
    Operand operand;
    if (auto* constant = as<ConstantNode>(expr)) {
      operand.constant = constant->value;
    } else if (auto it = params_.find(expr.get()); it != params_.end()) {
      operand.param = it->second;
    } else {
      return unsupported("onednn: not a chain: an operand is computed inside");
    }
    operand.shape = expr->tensor_type().shape;
    operand.rank = operand.shape.size();
    if (has_known_type(expr)) operand.type = TRY(type_of(expr->tensor_type().dtype));
    return operand;
  }

  // Takes what stands around a product of integers out of the calls: the quantize at the end, and
  // dequantize of parameters.
  Status take_conversions() {
    const auto name = [](const Expr& call) { return as<CallNode>(call)->op->name; };
    if (std::none_of(calls_.begin(), calls_.end(),
                     [&](const Expr& call) { return is_quantised_product(name(call)); }))
      return {};
    std::vector<Expr> rest;
    for (const Expr& expr : calls_) {
      const auto& args = as<CallNode>(expr)->args;
      if (name(expr) == "qnn.quantize" && expr == end_) {
        composite_.rounded = TRY(quantisation_of(args[1], args[2]));
        end_ = args[0];
      } else if (name(expr) == "qnn.dequantize" && params_.count(args[0].get()) != 0) {
        dequantised_[expr.get()] = {TRY(operand(args[0])), TRY(quantisation_of(args[1], args[2]))};
      } else {
        rest.push_back(expr);
      }
    }
    calls_ = std::move(rest);
    return {};
  }

  Status start() {
    auto anchor = std::find_if(calls_.begin(), calls_.end(), [](const Expr& call) {
      return !is_step_operator(as<CallNode>(call)->op->name);
    });
    if (anchor != calls_.end()) {
      running_ = *anchor;
      calls_.erase(anchor);
      composite_.anchor = as<CallNode>(running_);
      for (const Expr& arg : composite_.anchor->args) {
        if (auto* tuple = as<TupleNode>(arg)) {
          for (const Expr& field : tuple->fields) composite_.inputs.push_back(TRY(operand(field)));
        } else {
          composite_.inputs.push_back(TRY(operand(arg)));
        }
      }
    } else {
      // The source is the argument with the result's shape; a tensor rather than a constant.
      const auto* first = as<CallNode>(calls_.front());
      for (const Expr& arg : first->args) {
        if (arg->tensor_type().shape != first->tensor_type().shape) continue;
        if (running_ == nullptr || running_->kind() == ExprKind::kConstant) running_ = arg;
      }
      if (running_ == nullptr) return unsupported("onednn: both operands are broadcast");
      if (!is_float32(running_)) return unsupported("onednn: arithmetic of integers");
      composite_.inputs.push_back(TRY(operand(running_)));
    }
    composite_.anchor_shape = running_->tensor_type().shape;
    return {};
  }

  Status step() {
    const Expr& expr = calls_[next_];
    const auto* call = as<CallNode>(expr);
    const auto& args = call->args;
    if (composite_.quantised() && args[0] == running_) {
      if (call->op->name == "qnn.quantize") {
        between_ = TRY(quantisation_of(args[1], args[2]));
        return advance(std::vector<Step>(), expr);
      }
      if (call->op->name == "qnn.dequantize")
        return advance(make_rounding_steps(TRY(type_of(running_->tensor_type().dtype)), between_,
                                           TRY(quantisation_of(args[1], args[2]))),
                       expr);
    }
    if (!is_float32(running_)) return unsupported("onednn: nothing follows integers");
    if (args.size() == 1 && args[0] == running_)
      return advance(TRY(make_step(*call, 0, nullptr)), expr);
    if (args.size() == 2 && args[0] == running_ && args[1] == running_)
      return advance(TRY(make_step(*call, 0, nullptr)), expr);
    for (size_t position = 0; args.size() == 2 && position < 2; ++position) {
      if (args[position] != running_) continue;
      if (const auto found = dequantised_.find(args[1 - position].get());
          found != dequantised_.end())
        return advance(
            TRY(make_dequantised_steps(*call, found->second.first, found->second.second)), expr);
      Operand other = TRY(operand(args[1 - position]));
      return advance(TRY(make_step(*call, position, &other)), expr);
    }
    return unsupported("onednn: not a chain: {} does not continue it", call->op->name);
  }

  Status advance(Step step, const Expr& result) {
    return advance(std::vector<Step>{std::move(step)}, result);
  }
  Status advance(std::vector<Step> steps, const Expr& result) {
    if (result->tensor_type().shape != running_->tensor_type().shape)
      return unsupported("onednn: the running value is broadcast");
    composite_.steps.insert(composite_.steps.end(), std::make_move_iterator(steps.begin()),
                            std::make_move_iterator(steps.end()));
    running_ = result;
    ++next_;
    return {};
  }

  Composite composite_;
  std::unordered_map<const ExprNode*, int> params_;
  std::vector<Expr> calls_;  // what is left, in order, the anchor taken out
  size_t next_ = 0;
  Expr running_;
  Expr end_;              // what the chain ends with
  Quantisation between_;  // of the running value, where it is rounded
  std::unordered_map<const ExprNode*, std::pair<Operand, Quantisation>> dequantised_;
};

}  // namespace

Result<Composite> parse_composite(const Function& function) {
  return Parser(TRY(inline_calls(function))).parse();
}

}  // namespace collage::onednn
