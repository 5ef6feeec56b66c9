#include "backend/contraction/read_step.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/integers.h"
#include "ir/op.h"

namespace collage::contraction {
namespace {

bool is_float(const Expr& expr) {
  return expr->type().is_tensor() && expr->tensor_type().dtype == DType::kFloat32;
}

/// The constant as one value a channel, where it is constant along everything else.
std::optional<std::vector<float>> channel_values(const Expr& expr, const Shape& result, size_t axis,
                                                 bool along_axis) {
  const auto* constant = as<ConstantNode>(expr);
  if (constant == nullptr || !is_float(expr)) return std::nullopt;
  const Shape& shape = constant->value.shape();
  const int64_t channels = result[axis], count = constant->value.size();
  if (count != 1) {
    if (count != channels || shape.size() > result.size()) return std::nullopt;
    const size_t missing = result.size() - shape.size();
    if (!along_axis && (axis < missing || shape[axis - missing] != channels)) return std::nullopt;
    if (along_axis && shape.size() != 1) return std::nullopt;
  }
  std::vector<float> values(static_cast<size_t>(round_up(channels, kTileColumns)), 0.0f);
  const auto given = constant->value.values<float>();
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) values[c] = given[count == 1 ? 0 : c];
  return values;
}

std::optional<Step> activation(const CallNode& call) {
  const std::string_view name = call.op->name;
  Step step;
  if (name == "nn.relu") {
    step.low = 0;
  } else if (name == "clip") {
    step.low = static_cast<float>(call.attrs.real("a_min"));
    step.high = static_cast<float>(call.attrs.real("a_max"));
  } else if (name == "nn.leaky_relu") {
    step.kind = Step::Kind::kLeakyRelu;
    step.slope = static_cast<float>(call.attrs.real("alpha"));
  } else if (name == "nn.gelu") {
    step.kind =
        call.attrs.string("approximate") == "tanh" ? Step::Kind::kGeluTanh : Step::Kind::kGeluErf;
  } else if (name == "sigmoid") {
    step.kind = Step::Kind::kSigmoid;
  } else if (name == "nn.silu") {
    step.kind = Step::Kind::kSilu;
  } else if (name == "tanh") {
    step.kind = Step::Kind::kTanh;
  } else {
    return std::nullopt;
  }
  return step;
}

}  // namespace

std::optional<Step> read_step(const CallNode& call, size_t position, size_t axis) {
  if (call.op == nullptr || !call.type().is_tensor() ||
      !(call.type() == call.args[position]->type()))
    return std::nullopt;
  const Shape& shape = call.tensor_type().shape;
  if (call.args.size() == 1) return activation(call);
  if (call.args.size() != 2) return std::nullopt;
  const std::string_view name = call.op->name;
  const Expr& other = call.args[1 - position];
  Step step;
  if (name == "nn.bias_add") {
    int64_t along = call.attrs.integer("axis");
    if (along < 0) along += static_cast<int64_t>(shape.size());
    if (position != 0 || along != static_cast<int64_t>(axis)) return std::nullopt;
  } else if (name == "multiply" || (name == "divide" && position == 0)) {
    step.kind = Step::Kind::kScale;
  } else if (name != "add" && !(name == "subtract" && position == 0)) {
    return std::nullopt;
  }
  if (auto values = channel_values(other, shape, axis, name == "nn.bias_add")) {
    step.columns = std::move(*values);
    for (float& value : step.columns) {
      if (name == "subtract") value = -value;
      if (name == "divide") value = 1 / value;
    }
    return step;
  }
  if (name != "add" || other->kind() == ExprKind::kConstant || !(other->type() == call.type()))
    return std::nullopt;
  step.tensor = other;
  return step;
}

std::vector<Step> merged(std::vector<Step> steps) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<Step> result;
  for (Step& step : steps) {
    Step* last = result.empty() ? nullptr : &result.back();
    const bool joins = last != nullptr && step.kind == Step::Kind::kLinear &&
                       last->kind == Step::Kind::kLinear && last->low == -kInfinity &&
                       last->high == kInfinity &&
                       (step.tensor == nullptr || last->tensor == nullptr);
    if (!joins) {
      result.push_back(std::move(step));
      continue;
    }
    if (last->columns.empty()) last->columns.resize(step.columns.size());
    std::transform(step.columns.begin(), step.columns.end(), last->columns.begin(),
                   last->columns.begin(), std::plus());
    if (step.tensor != nullptr) last->tensor = step.tensor;
    last->low = step.low;
    last->high = step.high;
  }
  if (result.empty() || result.back().kind != Step::Kind::kLinear) result.emplace_back();
  return result;
}

}  // namespace collage::contraction
