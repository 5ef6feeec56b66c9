#include "tensor_program/emit/collapse.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/visitor.h"
#include "ops/quantised.h"
#include "ops/window.h"
#include "tensor_program/emit/emitter.h"

namespace collage::tensor_program {
namespace {

/// `shape` with leading ones up to `rank`.
Shape aligned(const Shape& shape, size_t rank) {
  Shape result(rank - shape.size(), 1);
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

bool all_are(const Ints& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

std::string conv_name(const CallNode& call, size_t spatial) {
  return spatial_name(is_quantised_product(call.op->name) ? "qnn.conv" : "nn.conv", spatial);
}

bool is_pointwise_conv(const CallNode& call) {
  const size_t rank = call.args.empty() ? 0 : call.args[0]->tensor_type().shape.size();
  if (rank < 3 || call.op->name != conv_name(call, rank - 2)) return false;
  const Shape& weight = call.args[1]->tensor_type().shape;
  return std::all_of(weight.begin() + 2, weight.end(), [](int64_t d) { return d == 1; }) &&
         all_are(call.attrs.ints("strides"), 1) && all_are(call.attrs.ints("padding"), 0) &&
         call.args[1]->kind() == ExprKind::kConstant;
}

/// Whether the call has scales and zero points, which are no operands that broadcast.
bool is_quantisation(const CallNode& call) {
  return call.op->name == "qnn.quantize" || call.op->name == "qnn.dequantize";
}

bool is_constant_product(const CallNode& call) {
  if (call.args.size() != 2 || call.args[1]->kind() != ExprKind::kConstant ||
      call.args[1]->tensor_type().shape.size() != 2)
    return false;
  return call.op->name == "nn.dense" ||
         (call.op->name == "nn.matmul" && !call.attrs.flag("transpose_a"));
}

class Collapser {
 public:
  Collapser(const Function& function, int64_t first)
      : function_(function), first_(static_cast<size_t>(first)) {}

  Function run() {
    if (!function_->body->type().is_tensor()) return function_;
    shape_ = function_->body->tensor_type().shape;
    order_ = post_order(function_->body);
    for (const Expr& node : order_)
      if (reduces(node)) shape_ = as<CallNode>(node)->args[0]->tensor_type().shape;
    if (shape_.size() < 2) return function_;
    if (!analyse()) return function_;
    if (std::none_of(merge_.begin(), merge_.end(), [](bool m) { return m; })) return function_;
    return rebuild();
  }

 private:
  /// Finds which neighbouring dimensions every tensor treats alike.
  bool analyse() {
    merge_.assign(shape_.size() - 1, true);
    for (size_t i = 0; i + 1 < shape_.size(); ++i) merge_[i] = i >= first_;
    for (const Expr& node : order_) {
      if (node->kind() != ExprKind::kCall) {
        if (node->kind() != ExprKind::kVar && node->kind() != ExprKind::kConstant) return false;
        continue;
      }
      const auto* call = as<CallNode>(node);
      if (call->op == nullptr || !node->type().is_tensor()) return false;
      if (reduces(node)) {
        if (!use_reduction(*call)) return false;
        continue;
      }
      const bool conv = is_pointwise_conv(*call), product = is_constant_product(*call);
      if (conv || product) {
        if (anchor_ != nullptr || has_reduction_ || node->tensor_type().shape != shape_ ||
            call->args[0]->kind() != ExprKind::kVar)
          return false;
        anchor_ = call;
        if (conv) {
          for (size_t i = 0; i < merge_.size(); ++i) merge_[i] = merge_[i] && i >= 2;
        } else {
          if (shape_.size() < 2) return false;
          merge_[shape_.size() - 2] = false;
        }
        if (!use(call->args[0], shape_.size(), true)) return false;
        for (size_t i = 2; i < call->args.size(); ++i)
          if (!use_parameter(call->args[i])) return false;
        continue;
      }
      const EmitRule* rule = tensor_program::find_emit_rule(call->op->name);
      if (rule == nullptr || !rule->elementwise || call->op->name == "nn.prelu") return false;
      if (node->tensor_type().shape.size() > shape_.size()) return false;
      for (size_t i = 0; i < call->args.size(); ++i) {
        if (call->op->name == "nn.bias_add" && i == 1) {
          if (!use_bias(*call)) return false;
        } else if (is_quantisation(*call) && i > 0) {
          if (!use_parameter(call->args[i])) return false;
          keep_channels(*call, i);
        } else if (!use(call->args[i], shape_.size(), false)) {
          return false;
        }
      }
      if (!note(node.get(), aligned(node->tensor_type().shape, shape_.size()))) return false;
    }
    return true;
  }

  /// Whether the node is a call of an operator that reduces axes of its only operand.
  static bool reduces(const Expr& node) {
    const auto* call = as<CallNode>(node);
    if (call == nullptr || call->op == nullptr || call->args.size() != 1) return false;
    const EmitRule* rule = tensor_program::find_emit_rule(call->op->name);
    return rule != nullptr && rule->reduces != nullptr && call->args[0]->type().is_tensor() &&
           node->type().is_tensor();
  }

  /// Axes that are reduced merge with one another. What lacks them is the function's result.
  bool use_reduction(const CallNode& call) {
    const Shape& result = call.tensor_type().shape;
    Shape full = call.args[0]->tensor_type().shape;
    if (full.size() != shape_.size() || anchor_ != nullptr) return false;
    if (result.size() != full.size() && &call != function_->body.get()) return false;
    has_reduction_ = true;
    std::vector<bool> reduced(full.size(), false);
    for (const int64_t axis : axes_reduced_by(call)) reduced[static_cast<size_t>(axis)] = true;
    for (size_t i = 0; i < merge_.size(); ++i)
      merge_[i] = merge_[i] && reduced[i] == reduced[i + 1];
    if (!use(call.args[0], shape_.size(), false)) return false;
    for (size_t i = 0; i < full.size(); ++i)
      if (reduced[i] && result != full) full[i] = 1;
    return note(&call, full);
  }

  bool use(const Expr& node, size_t rank, bool data) {
    if (!node->type().is_tensor() || node->tensor_type().shape.size() > rank) return false;
    if (node->kind() == ExprKind::kConstant && num_elements(node->tensor_type().shape) == 1)
      return true;
    Shape full = aligned(node->tensor_type().shape, rank);
    if (data) {  // the anchor's data differs from its result in the channels or columns only
      Shape compared = full;
      const size_t differs = is_pointwise_conv(*anchor_) ? 1 : rank - 1;
      compared[differs] = shape_[differs];
      return note(node.get(), full, compared);
    }
    return note(node.get(), full);
  }

  bool use_bias(const CallNode& call) {
    const Shape& data = call.args[0]->tensor_type().shape;
    const int64_t axis = normal_axis_of(call, "axis", static_cast<int64_t>(data.size()));
    Shape full(shape_.size(), 1);
    full[static_cast<size_t>(axis) + shape_.size() - data.size()] =
        call.args[1]->tensor_type().shape[0];
    return note(call.args[1].get(), full);
  }

  /// A scale or zero point keeps its own shape.
  bool use_parameter(const Expr& parameter) {
    if (parameter->kind() == ExprKind::kCall || full_.count(parameter.get()) != 0) return false;
    parameters_.insert(parameter.get());
    return true;
  }
  /// A vector of scales lies along one dimension, which is not merged with others.
  void keep_channels(const CallNode& call, size_t i) {
    if (call.args[i]->tensor_type().shape.empty()) return;
    const size_t axis = parameter_axis(call);
    for (size_t d = 0; d < merge_.size(); ++d)
      if ((d == axis && shape_[d + 1] != 1) || (d + 1 == axis && shape_[d] != 1)) merge_[d] = false;
  }
  /// Of a call whose data have the result's rank or less, the dimension of the result.
  size_t parameter_axis(const CallNode& call) const {
    const size_t rank = call.tensor_type().shape.size();
    const int64_t axis = normal_axis_of(call, "axis", static_cast<int64_t>(rank));
    return static_cast<size_t>(axis) + shape_.size() - rank;
  }

  bool note(const ExprNode* node, const Shape& full) { return note(node, full, full); }
  bool note(const ExprNode* node, const Shape& full, const Shape& compared) {
    if (parameters_.count(node) != 0) return false;
    auto [entry, fresh] = full_.try_emplace(node, full);
    if (!fresh && entry->second != full) return false;
    for (size_t i = 0; i + 1 < shape_.size(); ++i) {
      const bool whole = compared[i] == shape_[i] && compared[i + 1] == shape_[i + 1];
      const bool broadcast = compared[i] == 1 && compared[i + 1] == 1;
      if (!whole && !broadcast) merge_[i] = false;
    }
    return true;
  }

  Shape merged(const Shape& full) const {
    Shape result{full[0]};
    for (size_t i = 1; i < full.size(); ++i) {
      if (merge_[i - 1]) {
        result.back() *= full[i];
      } else {
        result.push_back(full[i]);
      }
    }
    return result;
  }

  /// Where the dimension is after merging.
  int64_t merged_dimension(size_t dimension) const {
    return std::count(merge_.begin(), merge_.begin() + static_cast<std::ptrdiff_t>(dimension),
                      false);
  }

  Result<Expr> merged_reduction(const CallNode& call, std::vector<Expr> args) const {
    Ints axes;
    for (const int64_t axis : axes_reduced_by(call)) {
      const int64_t dimension = merged_dimension(static_cast<size_t>(axis));
      if (axes.empty() || axes.back() != dimension) axes.push_back(dimension);
    }
    Attrs attrs = call.attrs;
    const AttrValue* given = attrs.find("axis");
    if (given != nullptr && std::holds_alternative<int64_t>(*given) && axes.size() == 1) {
      attrs.set("axis", axes[0]);
    } else {
      attrs.set("axis", axes);
    }
    if (call.attrs.has("exclude")) attrs.set("exclude", false);
    return make_call(*call.op, std::move(args), attrs);
  }

  Function rebuild() {
    std::unordered_map<const ExprNode*, Expr> made;
    std::vector<Expr> params;
    for (const Expr& param : function_->params) {
      auto full = full_.find(param.get());
      const TensorType& type = param->tensor_type();
      Expr var = full == full_.end() ? param
                                     : make_var(as<VarNode>(param)->name,
                                                TensorType{merged(full->second), type.dtype});
      params.push_back(var);
      made[param.get()] = var;
    }
    for (const Expr& node : order_) {
      if (made.count(node.get()) != 0) continue;
      if (node->kind() == ExprKind::kConstant) {
        auto full = full_.find(node.get());
        made[node.get()] =
            full == full_.end()
                ? node
                : make_constant(as<ConstantNode>(node)->value.reshaped(merged(full->second)));
        continue;
      }
      const auto* call = as<CallNode>(node);
      if (call == nullptr) return function_;
      std::vector<Expr> args;
      for (const Expr& arg : call->args) args.push_back(made.at(arg.get()));
      Result<Expr> result = node;
      if (call == anchor_ && is_pointwise_conv(*call)) {
        const Tensor& weight = as<ConstantNode>(call->args[1])->value;
        const size_t spatial = merged(shape_).size() - 2;
        Shape shape{weight.shape()[0], weight.shape()[1]};
        shape.insert(shape.end(), spatial, 1);
        args[1] = make_constant(weight.reshaped(shape));
        Attrs attrs{{"groups", call->attrs.integer("groups")}};
        if (const AttrValue* bits = call->attrs.find(kWeightBits)) attrs.set(kWeightBits, *bits);
        result = make_call(conv_name(*call, spatial), args, attrs);
      } else if (reduces(node)) {
        result = merged_reduction(*call, args);
      } else if (call->op->name == "nn.bias_add") {
        result = make_call("add", args);
      } else if (is_quantisation(*call)) {
        Attrs attrs = call->attrs;
        const bool is_vector = !call->args[1]->tensor_type().shape.empty();
        attrs.set("axis", is_vector ? merged_dimension(parameter_axis(*call)) : -1);
        result = make_call(*call->op, args, attrs);
      } else {
        result = make_call(*call->op, args, call->attrs);
      }
      if (!result.ok()) return function_;
      made[node.get()] = std::move(result).value();
    }
    Expr body = made.at(function_->body.get());
    if (num_elements(body->tensor_type().shape) !=
        num_elements(function_->body->tensor_type().shape))
      return function_;
    return make_function(params, body, function_->attrs);
  }

  Function function_;
  size_t first_;
  Shape shape_;
  std::vector<Expr> order_;
  std::vector<bool> merge_;  // dimension i with i + 1
  const CallNode* anchor_ = nullptr;
  bool has_reduction_ = false;
  std::unordered_map<const ExprNode*, Shape> full_;
  std::unordered_set<const ExprNode*> parameters_;  // scales and zero points
};

}  // namespace

Function collapse_dims(const Function& function, int64_t first) {
  return Collapser(function, first).run();
}

}  // namespace collage::tensor_program
