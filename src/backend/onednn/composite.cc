#include "backend/onednn/composite.h"

#include <algorithm>
#include <unordered_map>

#include "backend/onednn/steps.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage::onednn {

std::optional<float> Operand::scalar() const {
  if (!is_constant() || constant.size() != 1) return std::nullopt;
  return static_cast<float>(constant.element_as_double(0));
}

namespace {

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
      if (!expr->type().is_tensor() || expr->tensor_type().dtype != DType::kFloat32) {
        // Index-like constants stay with the operators that know them.
        if (expr->kind() != ExprKind::kConstant)
          return unsupported("onednn: {} is not float32", expr->type().to_string());
      }
      if (expr->type().is_tensor() && num_elements(expr->tensor_type().shape) == 0)
        return unsupported("onednn: an empty tensor");
    }
    if (calls_.empty()) return unsupported("onednn: nothing to compute");
    TRY(start());
    while (next_ < calls_.size()) TRY(step());
    if (running_ != function->body) return unsupported("onednn: not a chain");
    composite_.result = running_->tensor_type().shape;
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
    return operand;
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
      composite_.inputs.push_back(TRY(operand(running_)));
    }
    composite_.anchor_shape = running_->tensor_type().shape;
    return {};
  }

  Status step() {
    const Expr& expr = calls_[next_];
    const auto* call = as<CallNode>(expr);
    const auto& args = call->args;
    if (args.size() == 1 && args[0] == running_)
      return advance(TRY(make_step(*call, 0, nullptr)), expr);
    if (args.size() == 2 && args[0] == running_ && args[1] == running_)
      return advance(TRY(make_step(*call, 0, nullptr)), expr);
    for (size_t position = 0; args.size() == 2 && position < 2; ++position) {
      if (args[position] != running_) continue;
      Operand other = TRY(operand(args[1 - position]));
      return advance(TRY(make_step(*call, position, &other)), expr);
    }
    return unsupported("onednn: not a chain: {} does not continue it", call->op->name);
  }

  Status advance(Step step, const Expr& result) {
    if (result->tensor_type().shape != running_->tensor_type().shape)
      return unsupported("onednn: the running value is broadcast");
    composite_.steps.push_back(std::move(step));
    running_ = result;
    ++next_;
    return {};
  }

  Composite composite_;
  std::unordered_map<const ExprNode*, int> params_;
  std::vector<Expr> calls_;  // what is left, in order, the anchor taken out
  size_t next_ = 0;
  Expr running_;
};

}  // namespace

Result<Composite> parse_composite(const Function& function) {
  return Parser(TRY(inline_calls(function))).parse();
}

}  // namespace collage::onednn
