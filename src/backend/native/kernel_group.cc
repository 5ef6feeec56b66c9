#include "backend/native/kernel_group.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "backend/native/codegen/array_size.h"
#include "backend/native/integers/real_products.h"
#include "backend/native/templates/depthwise_template.h"
#include "ir/visitor.h"
#include "ops/quantised.h"
#include "ops/resize.h"
#include "tensor_program/call.h"
#include "tensor_program/emit/emitter.h"

namespace collage::native {
namespace {

bool is_conv(const CallNode& call) {
  return call.op->name == "nn.conv1d" || call.op->name == "nn.conv2d" ||
         call.op->name == "nn.conv3d";
}
bool is_product(const CallNode& call) {
  return call.op->name == "nn.dense" || call.op->name == "nn.matmul" ||
         call.op->name == "nn.batch_matmul";
}

Status check_conv(const CallNode& call) {
  if (call.args[1]->kind() != ExprKind::kConstant)
    return unsupported("native: {} with weights that are not constant", call.op->name);
  return {};
}

Status check_size(const Type& type) {
  for (const TensorType& leaf : type.leaves()) {
    if (num_elements(leaf.shape) == 0) return unsupported("native: an empty tensor");
    TRY(check_array_size("a tensor", leaf));
    if (leaf.shape.size() > 8) return unsupported("native: a tensor of rank {}", leaf.shape.size());
  }
  return {};
}

bool is_view_call(const Expr& node) {
  const auto* call = as<CallNode>(node);
  return call != nullptr && call->op != nullptr && call->op->is_view;
}

ConvShape conv_shape_of(const CallNode& call) {
  const Shape &data = call.args[0]->tensor_type().shape,
              &weight = call.args[1]->tensor_type().shape, &out = call.tensor_type().shape;
  const size_t spatial = data.size() - 2, skip = 3 - spatial;
  ConvShape s;
  s.batch = data[0];
  s.in_channels = data[1];
  s.out_channels = out[1];
  s.groups = call.attrs.integer("groups");
  for (size_t d = 0; d < spatial; ++d) {
    s.in[skip + d] = data[d + 2];
    s.out[skip + d] = out[d + 2];
    s.kernel[skip + d] = weight[d + 2];
    s.stride[skip + d] = call.attrs.ints("strides")[d];
    s.dilation[skip + d] = call.attrs.ints("dilation")[d];
    s.pad[skip + d] = call.attrs.ints("padding")[d];
  }
  return s;
}

/// Whether the call leaves one element along some axes of an image, and its channels as they are.
bool reduces_image(const CallNode& call) {
  const Ints axes = tensor_program::axes_reduced_by(call);
  if (axes.empty() || axes.front() < 2) return false;
  const Shape &in = call.args[0]->tensor_type().shape, &out = call.tensor_type().shape;
  return in.size() >= 4 && out.size() == in.size() &&
         std::all_of(axes.begin(), axes.end(),
                     [&](int64_t d) { return out[static_cast<size_t>(d)] == 1; });
}

/// Whether channel blocks can be followed through the call.
bool follows_blocks(const CallNode& call) {
  const std::string_view name = call.op->name;
  const tensor_program::EmitRule* rule = tensor_program::find_emit_rule(name);
  if (is_conv(call)) return true;
  if (rule == nullptr) return false;
  if (rule->elementwise) return true;
  auto whole = [](int64_t channels) { return channels % kChannelBlock == 0; };
  if (name.starts_with("nn.max_pool") || name.starts_with("nn.avg_pool") ||
      name.starts_with("image.resize"))
    return true;
  if (reduces_image(call)) return true;
  if (name == "concatenate") {
    const auto rank = static_cast<int64_t>(call.tensor_type().shape.size());
    if (rank < 3) return false;
    if (tensor_program::normal_axis_of(call, "axis", rank) != 1) return true;
    const auto& fields = call.args[0]->type().fields();
    return std::all_of(fields.begin(), fields.end(),
                       [&](const Type& f) { return whole(f.tensor().shape[1]); });
  }
  if (name == "split") {
    if (tensor_program::normal_axis_of(
            call, "axis", static_cast<int64_t>(call.args[0]->tensor_type().shape.size())) != 1)
      return true;
    const auto& fields = call.type().fields();
    return std::all_of(fields.begin(), fields.end(),
                       [&](const Type& f) { return whole(f.tensor().shape[1]); });
  }
  if (name == "nn.pad") {
    const IntLists& widths = call.attrs.int_lists("pad_width");
    return widths.size() >= 3 && widths[1][0] == 0 && widths[1][1] == 0;
  }
  return false;
}

/// Whether neighbours along the channels stay neighbours, or a result of the call has few elements.
bool keeps_channels_last(const CallNode& call) {
  const std::string_view name = call.op->name;
  const tensor_program::EmitRule* rule = tensor_program::find_emit_rule(name);
  if (rule == nullptr) return false;
  if (rule->elementwise || name.starts_with("nn.max_pool") || name.starts_with("nn.avg_pool") ||
      name.starts_with("image.resize") || name == "concatenate" || name == "split" ||
      name == "strided_slice" || name == "nn.pad")
    return true;
  return reduces_image(call) &&
         tensor_program::axes_reduced_by(call).size() == call.tensor_type().shape.size() - 2;
}

/// Whether the expression enlarges a two-dimensional image twice by nearest neighbour.
bool doubles_image(const Expr& node) {
  const auto* call = as<CallNode>(node);
  return call != nullptr && repeat_factors(*call) == Ints{2, 2};
}

class Analysis {
 public:
  explicit Analysis(Function function) { group_.function = std::move(function); }

  Result<KernelGroup> run() {
    group_.order = post_order(group_.function->body);
    for (const Expr& node : group_.order) {
      TRY(check_size(node->type()));
      const auto* call = as<CallNode>(node);
      if (call == nullptr) continue;
      if (call->op == nullptr) return unsupported("native: a call of a function");
      TRY(check_call(*call));
      if (call->op->name == tensor_program::kCallOp && !tensor_program::is_elementwise(*call))
        return unsupported("native: a tensor program of stages beside an anchor");
      if (!is_template_anchor(*call)) continue;
      if (group_.anchor != nullptr)
        return unsupported("native: {} and {} in one kernel", group_.anchor->op->name,
                           call->op->name);
      group_.anchor = call;
    }
    TRY(find_results());
    find_layouts();
    if (group_.anchor != nullptr) {
      TRY(check_anchor());
    } else {
      find_rows();
    }
    group_.channels_last = group_.channels_last && !group_.row_stages;
    return std::move(group_);
  }

 private:
  Status find_results() {
    const Expr& body = group_.function->body;
    if (const auto* tuple = as<TupleNode>(body)) {
      group_.results = tuple->fields;
    } else if (body->type().is_tensor()) {
      group_.results = {body};
    } else {
      // A call with several results: one projection each.
      for (size_t i = 0; i < body->type().fields().size(); ++i) {
        group_.results.push_back(TRY(make_tuple_get_item(body, static_cast<int64_t>(i))));
      }
    }
    for (const Expr& result : group_.results) {
      if (!result->type().is_tensor()) return unsupported("native: a nested result");
    }
    // A trailing view of a single result is the same bytes.
    if (group_.results.size() == 1) {
      while (is_view_call(group_.results[0]))
        group_.results[0] = as<CallNode>(group_.results[0])->args[0];
    }
    return {};
  }

  void find_layouts() {
    if (group_.results.size() != 1 || !is_image(group_.results[0]->tensor_type()) ||
        group_.results[0] != group_.function->body)
      return;
    bool image_in = false, bytes = dtype_size(group_.results[0]->tensor_type().dtype) == 1;
    for (const Expr& param : group_.function->params) {
      if (!is_image(param->tensor_type())) continue;
      image_in = true;
      bytes = bytes || dtype_size(param->tensor_type().dtype) == 1;
    }
    const auto all = [&](bool (*follows)(const CallNode&)) {
      return std::all_of(group_.order.begin(), group_.order.end(), [&](const Expr& node) {
        const auto* call = as<CallNode>(node);
        return call == nullptr || follows(*call);
      });
    };
    group_.blockable = image_in && all(follows_blocks);
    group_.channels_last =
        image_in && bytes && group_.anchor == nullptr && all(keeps_channels_last);
  }

  /// After attention only one transpose that keeps the last dimension last may follow.
  Status check_attention() {
    const CallNode& anchor = *group_.anchor;
    const Shape& out = anchor.tensor_type().shape;
    const auto rank = static_cast<int64_t>(out.size());
    AttentionShape& s = group_.attention;
    s.batch = {out.begin(), out.end() - 2};
    s.queries = out[out.size() - 2];
    s.value_width = out.back();
    const Shape& keys = anchor.args[1]->tensor_type().shape;
    s.keys = keys[keys.size() - 2];
    s.width = keys.back();
    s.scale = static_cast<float>(anchor.attrs.real("scale"));
    s.causal = anchor.attrs.flag("causal");
    for (int64_t d = 0; d < rank; ++d) group_.result_order.push_back(d);
    if (group_.results.size() != 1) return unsupported("native: attention with several results");
    if (group_.results[0].get() != &anchor) {
      const auto* call = as<CallNode>(group_.results[0]);
      if (call == nullptr || call->op->name != "transpose" || call->args[0].get() != &anchor ||
          call->attrs.is_none("axes")) {
        return unsupported("native: {} after attention in one kernel",
                           call != nullptr ? call->op->name : "a tuple");
      }
      group_.result_order = call->attrs.ints("axes");
      for (int64_t& d : group_.result_order) d = d < 0 ? d + rank : d;
      if (group_.result_order.back() != rank - 1)
        return unsupported("native: attention whose columns are moved");
    }
    group_.kind = KernelGroup::Kind::kAttention;
    return {};
  }

  /// After the anchor only element-wise calls of its shape may follow.
  Status check_anchor() {
    const CallNode& anchor = *group_.anchor;
    if (anchor.op->name == "nn.attention") return check_attention();
    if (group_.results.size() != 1)
      return unsupported("native: {} in a kernel with several results", anchor.op->name);
    std::unordered_set<const ExprNode*> after{&anchor};
    for (const Expr& node : group_.order) {
      const std::vector<Expr> inputs = expr_inputs(node);
      if (std::none_of(inputs.begin(), inputs.end(),
                       [&](const Expr& e) { return after.count(e.get()) != 0; }))
        continue;
      if (after.count(group_.results[0].get()) != 0 && node->kind() == ExprKind::kCall &&
          is_view_call(node))
        continue;
      const auto* call = as<CallNode>(node);
      if (call == nullptr || !tensor_program::is_elementwise(*call) ||
          call->tensor_type().shape != anchor.tensor_type().shape) {
        return unsupported("native: {} after {} in one kernel",
                           call != nullptr ? call->op->name : "a tuple", anchor.op->name);
      }
      after.insert(node.get());
    }
    if (after.count(group_.results[0].get()) == 0)
      return unsupported("native: {} whose value is not the result", anchor.op->name);
    if (is_conv(anchor)) {
      group_.conv = conv_shape_of(anchor);
      if (doubles_image(anchor.args[0])) group_.small_image = as<CallNode>(anchor.args[0])->args[0];
      group_.kind =
          is_depthwise(group_.conv) ? KernelGroup::Kind::kDepthwise : KernelGroup::Kind::kConv;
      return {};
    }
    group_.kind = KernelGroup::Kind::kMatmul;
    const Shape& out = anchor.tensor_type().shape;
    const Shape &a = anchor.args[0]->tensor_type().shape, &b = anchor.args[1]->tensor_type().shape;
    const bool dense = anchor.op->name == "nn.dense";
    if (out.size() < 2) return unsupported("native: nn.dense of a vector");
    group_.matmul.batch = {out.begin(), out.end() - 2};
    group_.matmul.m = out[out.size() - 2];
    group_.matmul.n = out.back();
    group_.matmul.k = !dense && anchor.attrs.flag("transpose_a") ? a[a.size() - 2] : a.back();
    const bool one_matrix = std::all_of(b.begin(), b.end() - 2, [](int64_t d) { return d == 1; });
    group_.constant_b = anchor.args[1]->kind() == ExprKind::kConstant && one_matrix;
    return {};
  }

  /// Row by row: all statistics are over the same trailing axes, and nothing after them moves
  /// elements.
  void find_rows() {
    if (group_.results.size() != 1) return;
    const Shape& out = group_.results[0]->tensor_type().shape;
    const auto rank = static_cast<int64_t>(out.size());
    int64_t axis = rank;
    std::unordered_set<const ExprNode*> after;
    for (const Expr& node : group_.order) {
      const auto* call = as<CallNode>(node);
      if (call == nullptr) continue;
      const Ints axes = tensor_program::axes_reduced_by(*call);
      const std::vector<Expr> inputs = expr_inputs(node);
      const bool follows = std::any_of(inputs.begin(), inputs.end(),
                                       [&](const Expr& e) { return after.count(e.get()) != 0; });
      if (!axes.empty()) {
        if (call->args[0]->tensor_type().shape != out ||
            call->tensor_type().shape.size() != out.size() || axes.back() != rank - 1 ||
            axes.front() != rank - static_cast<int64_t>(axes.size()))
          return;
        if (axis != rank && axis != axes.front()) return;
        axis = axes.front();
        after.insert(node.get());
      } else if (follows) {
        const tensor_program::EmitRule* rule = tensor_program::find_emit_rule(call->op->name);
        if (rule == nullptr || !rule->elementwise || call->tensor_type().shape.size() != out.size())
          return;
        after.insert(node.get());
      }
    }
    if (axis == rank || axis == 0) return;
    group_.row_stages = true;
  }

  KernelGroup group_;
};

}  // namespace

bool is_image(const TensorType& type) {
  return type.shape.size() >= 4 && type.shape.size() <= 5 && type.shape[1] > 1 &&
         (type.dtype == DType::kFloat32 || type.dtype == DType::kInt8 ||
          type.dtype == DType::kUInt8);
}

bool is_template_anchor(const CallNode& call) {
  return is_conv(call) || is_product(call) || call.op->name == "nn.attention" ||
         is_quantised_product(call.op->name);
}

Status check_call(const CallNode& call) {
  if (call.op == nullptr) return unsupported("native: a call of a function");
  if (is_template_anchor(call)) {
    const bool quantised = is_quantised_product(call.op->name);
    for (const Expr& arg : call.args) {
      if (!quantised && arg->tensor_type().dtype != DType::kFloat32)
        return unsupported("native: {} of {}", call.op->name, arg->type().to_string());
    }
    TRY(check_size(call.type()));
    for (const Expr& arg : call.args) TRY(check_size(arg->type()));
    if (quantised) return check_quantised_product(call);
    return is_conv(call) ? check_conv(call) : Status();
  }
  const tensor_program::EmitRule* rule = tensor_program::find_emit_rule(call.op->name);
  if (rule == nullptr) return unsupported("native: no operator {}", call.op->name);
  TRY(check_size(call.type()));
  for (const Expr& arg : call.args) TRY(check_size(arg->type()));
  Status checked = rule->check(call);
  return checked.ok() ? checked : std::move(checked).with_context("native");
}

Result<KernelGroup> analyse_group(const Function& function) { return Analysis(function).run(); }

std::string program_text(const Function& function) {
  std::unordered_map<const ExprNode*, size_t> ids;
  std::string text;
  auto id = [&](const Expr& e) { return ids.at(e.get()); };
  for (const Expr& param : function->params) {
    const size_t number = ids.size();
    ids[param.get()] = number;
    text += fmt::format("%{}: {}\n", number, param->type().to_string());
  }
  for (const Expr& node : post_order(function->body)) {
    if (ids.count(node.get()) != 0) continue;
    const size_t number = ids.size();
    ids[node.get()] = number;
    text += fmt::format("%{} = ", number);
    if (const auto* constant = as<ConstantNode>(node)) {
      text += fmt::format("constant {}", node->type().to_string());
      if (constant->value.size() == 1) {
        const bool whole = is_integer(constant->value.dtype());
        text += whole ? fmt::format(" {}", constant->value.element_as_int64(0))
                      : fmt::format(" {:a}", constant->value.element_as_double(0));
      }
    } else if (const auto* get = as<TupleGetItemNode>(node)) {
      text += fmt::format("%{}.{}", id(get->tuple), get->index);
    } else {
      const auto* call = as<CallNode>(node);
      text += call != nullptr && call->op != nullptr ? call->op->name : "tuple";
      for (const Expr& input : expr_inputs(node)) text += fmt::format(" %{}", id(input));
      if (call != nullptr) {
        for (const auto& [name, value] : call->attrs.entries()) {
          const auto* real = std::get_if<double>(&value);
          text += fmt::format(" {}={}", name,
                              real != nullptr ? fmt::format("{:a}", *real) : attr_to_string(value));
        }
      }
      text += " : " + node->type().to_string();
    }
    text += '\n';
  }
  return text;
}

}  // namespace collage::native
