// Rules of `simplify` for operators that only move elements.
#include <algorithm>
#include <numeric>

#include "ops/placement.h"
#include "passes/constants.h"
#include "passes/simplify.h"

namespace collage {

namespace {

Result<Expr> reshape(const Expr& data, const Shape& shape, const std::string& origin) {
  if (data->tensor_type().shape == shape) return data;
  return make_call("reshape", {data}, {{"newshape", shape}}, origin);
}

// cast, copy, reshape, tile … to a tensor's own type: nothing
Result<Expr> drop_same_type(const Expr& expr, const Uses&) {
  const Expr& data = call_of(expr).args[0];
  return data->type() == expr->type() ? data : nullptr;
}

// squeeze, expand_dims, nn.batch_flatten to reshape; reshape of a view to one reshape, but of one
// that says where a value lies
Result<Expr> one_reshape(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const auto* inner = as<CallNode>(call.args[0]);
  bool nested = inner != nullptr && inner->op != nullptr && inner->op->is_view &&
                inner->args.size() == 1 && !device_placement(call.args[0]);
  if (!nested && call.op->name == "reshape") return Expr();
  return reshape(nested ? inner->args[0] : call.args[0], expr->tensor_type().shape, expr->origin());
}

Ints axes_of(const CallNode& transpose) {
  int64_t rank = rank_of(transpose.args[0]);
  if (const auto* axes = std::get_if<Ints>(transpose.attrs.find("axes")))
    if (static_cast<int64_t>(axes->size()) == rank) return from_start(*axes, rank);
  Ints reversed(static_cast<size_t>(rank));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return reversed;
}

// transpose of a transpose to one; one that moves only unit dimensions to a reshape
Result<Expr> one_transpose(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  Ints axes = axes_of(call);
  Expr data = call.args[0];
  if (const CallNode* inner = as_op(data, "transpose")) {
    Ints first = axes_of(*inner);
    for (int64_t& axis : axes) axis = first[static_cast<size_t>(axis)];
    return make_call("transpose", {inner->args[0]}, {{"axes", axes}}, expr->origin());
  }
  const Shape& shape = data->tensor_type().shape;
  int64_t last = -1;
  for (int64_t axis : axes) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return Expr();
    last = axis;
  }
  return reshape(data, expr->tensor_type().shape, expr->origin());
}

// (a, b).1 to b
Result<Expr> projection_of_tuple(const Expr& expr, const Uses&) {
  const auto* item = as<TupleGetItemNode>(expr);
  const auto* tuple = as<TupleNode>(item->tuple);
  return tuple != nullptr ? tuple->fields[static_cast<size_t>(item->index)] : nullptr;
}

// split in one part: nothing
Result<Expr> split_in_one(const Expr& expr, const Uses&) {
  const auto* item = as<TupleGetItemNode>(expr);
  const CallNode* split = as_op(item->tuple, "split");
  if (split == nullptr || item->tuple->type().fields().size() != 1) return Expr();
  return split->args[0];
}

// concatenate of one: nothing; empty fields are dropped; concatenate in concatenate to one
Result<Expr> flat_concatenate(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  const auto* tuple = as<TupleNode>(call.args[0]);
  if (tuple == nullptr) return Expr();
  int64_t axis = from_start(call.attrs.integer("axis"), rank_of(expr));
  std::vector<Expr> fields;
  bool changed = false;
  for (const Expr& field : tuple->fields) {
    const CallNode* inner = as_op(field, "concatenate");
    const auto* inner_tuple = inner != nullptr ? as<TupleNode>(inner->args[0]) : nullptr;
    if (inner_tuple != nullptr && uses.once(field) &&
        from_start(inner->attrs.integer("axis"), rank_of(expr)) == axis) {
      fields.insert(fields.end(), inner_tuple->fields.begin(), inner_tuple->fields.end());
      changed = true;
    } else if (field->tensor_type().shape[static_cast<size_t>(axis)] == 0 &&
               num_elements(expr->tensor_type().shape) != 0) {
      changed = true;
    } else {
      fields.push_back(field);
    }
  }
  if (fields.size() == 1) return fields[0];
  if (!changed) return Expr();
  return remake(call, {make_tuple(std::move(fields))});
}

// strided_slice of the whole: nothing
Result<Expr> whole_slice(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  if (!(call.args[0]->type() == expr->type())) return Expr();
  const auto* steps = std::get_if<Ints>(call.attrs.find("strides"));
  if (steps != nullptr &&
      std::any_of(steps->begin(), steps->end(), [](int64_t step) { return step < 0; }))
    return Expr();
  return call.args[0];
}

// strided_slice, along the axis of a concatenate, of what one of its fields holds: of that field
Result<Expr> slice_of_field(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const CallNode* join = as_op(call.args[0], "concatenate");
  const auto* tuple = join == nullptr ? nullptr : as<TupleNode>(join->args[0]);
  if (tuple == nullptr) return Expr();
  const Shape &whole = call.args[0]->tensor_type().shape, &part = expr->tensor_type().shape;
  const int64_t rank = rank_of(expr), axis = from_start(join->attrs.integer("axis"), rank);
  const auto along = static_cast<size_t>(axis);
  const auto *begins = std::get_if<Ints>(call.attrs.find("begin")),
             *steps = std::get_if<Ints>(call.attrs.find("strides")),
             *axes = std::get_if<Ints>(call.attrs.find("axes"));
  if (begins == nullptr || part[along] == 0) return Expr();
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis && whole[static_cast<size_t>(i)] != part[static_cast<size_t>(i)]) return Expr();
  if (steps != nullptr &&
      std::any_of(steps->begin(), steps->end(), [](int64_t step) { return step != 1; }))
    return Expr();
  int64_t begin = 0;
  for (size_t i = 0; i < begins->size(); ++i)
    if ((axes == nullptr ? static_cast<int64_t>(i) : from_start((*axes)[i], rank)) == axis)
      begin = std::clamp<int64_t>(from_start((*begins)[i], whole[along]), 0, whole[along]);
  for (const Expr& field : tuple->fields) {
    const int64_t extent = field->tensor_type().shape[along];
    if (begin >= extent) {
      begin -= extent;
      continue;
    }
    if (begin + part[along] > extent) return Expr();
    return make_call("strided_slice", {field},
                     {{"begin", Ints{begin}},
                      {"end", Ints{begin + part[along]}},
                      {"strides", Ints{1}},
                      {"axes", Ints{axis}}},
                     expr->origin());
  }
  return Expr();
}

// nn.pad by nothing: nothing
Result<Expr> pad_by_nothing(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  for (const Ints& pair : call.attrs.int_lists("pad_width"))
    for (int64_t width : pair)
      if (width != 0) return Expr();
  return call.args[0];
}

// take of one constant index to a slice
Result<Expr> take_to_slice(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const auto* indices = as<ConstantNode>(call.args[1]);
  if (indices == nullptr || indices->value.size() != 1 || call.attrs.is_none("axis")) return Expr();
  const Shape& shape = call.args[0]->tensor_type().shape;
  int64_t axis = from_start(call.attrs.integer("axis"), rank_of(call.args[0]));
  int64_t extent = shape[static_cast<size_t>(axis)];
  int64_t index = from_start(indices->value.element_as_int64(0), extent);
  if (index < 0 || index >= extent) return Expr();
  Expr slice = TRY(make_call("strided_slice", {call.args[0]},
                             {{"begin", Ints{index}},
                              {"end", Ints{index + 1}},
                              {"strides", Ints{1}},
                              {"axes", Ints{axis}}},
                             expr->origin()));
  return reshape(slice, expr->tensor_type().shape, expr->origin());
}

// sum, mean, max … over unit dimensions to a reshape
Result<Expr> reduce_nothing(const Expr& expr, const Uses&) {
  const Expr& data = call_of(expr).args[0];
  if (num_elements(data->tensor_type().shape) != num_elements(expr->tensor_type().shape) ||
      num_elements(expr->tensor_type().shape) == 0 ||
      data->tensor_type().dtype != expr->tensor_type().dtype)
    return Expr();
  return reshape(data, expr->tensor_type().shape, expr->origin());
}

const std::vector<RewriteRule> kSimplifyShapesRules = {
    {"drop a conversion to the same type",
     {"cast", "copy", "reshape", "squeeze", "expand_dims", "nn.batch_flatten", "broadcast_to",
      "tile", "repeat"},
     drop_same_type},
    {"one reshape", {"reshape", "squeeze", "expand_dims", "nn.batch_flatten"}, one_reshape},
    {"one transpose", {"transpose"}, one_transpose},
    {"project a tuple", {kProjection}, projection_of_tuple},
    {"drop a split in one", {kProjection}, split_in_one},
    {"flatten concatenate", {"concatenate"}, flat_concatenate},
    {"drop a slice of the whole", {"strided_slice"}, whole_slice},
    {"slice a field of a concatenate", {"strided_slice"}, slice_of_field},
    {"drop padding by nothing", {"nn.pad"}, pad_by_nothing},
    {"take to slice", {"take"}, take_to_slice},
    {"drop an empty reduction", {"sum", "mean", "max", "min", "prod"}, reduce_nothing},
};

}  // namespace

std::span<const RewriteRule> shape_rules() { return kSimplifyShapesRules; }

}  // namespace collage
