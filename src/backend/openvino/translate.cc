#include "backend/openvino/translate.h"

#include <algorithm>
#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "backend/openvino/converter.h"
#include "ir/visitor.h"
#include "ops/indices.h"

namespace collage::openvino {

namespace {

const std::unordered_map<std::string_view, ConverterRow>& all_converters() {
  static const auto* table = [] {
    auto* rows = new std::unordered_map<std::string_view, ConverterRow>();
    for (const ConverterTable& family :
         {conv_converters(), elementwise_converters(), index_converters(), matmul_converters(),
          norm_converters(), pool_converters(), quantised_converters(), recurrent_converters(),
          reduce_converters(), resize_converters(), sample_converters(), shape_converters()})
      for (const ConverterRow& row : family) rows->emplace(row.op, row);
    return rows;
  }();
  return *table;
}

unsigned type_set(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return kFloat;
    case DType::kInt32:
      return kInt;
    case DType::kInt64:
      return kLong;
    case DType::kInt8:
    case DType::kUInt8:
      return kByte;
    case DType::kBool:
      return kBool;
    default:
      return 0;
  }
}

Status check_type(const TensorType& type, unsigned allowed) {
  if ((type_set(type.dtype) & allowed) == 0)
    return unsupported("element type {}", dtype_name(type.dtype));
  if (num_elements(type.shape) == 0)
    return unsupported("empty tensor {}", shape_to_string(type.shape));
  return {};
}

Status check_types(const CallView& view, const ConverterRow& row) {
  const size_t arguments = view.size();
  for (size_t i = 0; i < arguments + view.results().size(); ++i) {
    const TensorType& leaf = i < arguments ? view.type(i) : view.results()[i - arguments];
    TRY(check_type(leaf, row.types | (row.positions == i ? kInt | kLong : 0U)));
  }
  return {};
}

Status check_output(const Value& value, const TensorType& wanted) {
  const ov::Shape expected(wanted.shape.begin(), wanted.shape.end());
  if (value.get_element_type() == element_type(wanted.dtype) &&
      value.get_partial_shape() == ov::PartialShape(expected))
    return {};
  return unsupported("OpenVINO computes {} {}, not {}", value.get_element_type().get_type_name(),
                     value.get_partial_shape().to_string(), wanted.to_string());
}

// OpenVINO's messages begin with source positions and go on for lines; the last line that says
// something is the reason.
std::string short_message(const std::exception& exception) {
  std::string text = exception.what(), last;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t") != std::string::npos) last = line;
    begin = end + 1;
  }
  return last.substr(0, 300);
}

Result<ov::OutputVector> convert_call(const CallNode& call, const ov::OutputVector& inputs) {
  if (call.op == nullptr) return unsupported("a call of a function");
  auto row = all_converters().find(call.op->name);
  if (row == all_converters().end()) return unsupported("{}: no translation", call.op->name);
  CallView view(call, inputs);
  auto convert = [&]() -> Result<ov::OutputVector> {
    TRY(check_types(view, row->second));
    ov::OutputVector outputs = TRY(row->second.convert(view));
    if (outputs.size() < view.results().size()) return internal_error("too few outputs");
    for (size_t i = 0; i < view.results().size(); ++i)
      TRY(check_output(outputs[i], view.results()[i]));
    return outputs;
  };
  try {
    return convert().with_context(call.op->name);
  } catch (const std::exception& exception) {
    return unsupported("{}: {}", call.op->name, short_message(exception));
  }
}

Result<Value> make_ov_constant(const ConstantNode& node) {
  ov::element::Type type = element_type(node.value.dtype());
  TRY(check_type(node.tensor_type(), kAny | kLong));
  auto owner = std::make_shared<Tensor>(node.value);
  const Shape& shape = node.value.shape();
  return make<ov::op::v0::Constant>(type, ov::Shape(shape.begin(), shape.end()), owner->raw(),
                                    std::static_pointer_cast<void>(owner));
}

Result<std::shared_ptr<ov::op::v0::Parameter>> make_ov_parameter(const TensorType& type) {
  TRY(check_type(type, kAny | kLong));
  return std::make_shared<ov::op::v0::Parameter>(element_type(type.dtype),
                                                 ov::Shape(type.shape.begin(), type.shape.end()));
}

// Stands for a tuple in calls' arguments and results.
Result<ov::OutputVector> placeholders(const Expr& expr) {
  ov::OutputVector values;
  if (const auto* constant = as<ConstantNode>(expr)) {
    values.push_back(TRY(make_ov_constant(*constant)));
  } else if (const auto* tuple = as<TupleNode>(expr)) {
    for (const Expr& field : tuple->fields)
      for (const Value& value : TRY(placeholders(field))) values.push_back(value);
  } else {
    for (const TensorType& leaf : expr->type().leaves())
      values.push_back(TRY(make_ov_parameter(leaf))->output(0));
  }
  return values;
}

class Translator {
 public:
  explicit Translator(const Function& function) : function_(function) {}

  Result<Translation> run() {
    for (size_t i = 0; i < function_->params.size(); ++i) {
      const Expr& param = function_->params[i];
      if (!param->type().is_tensor()) return unsupported("a parameter that is a tuple");
      auto parameter = TRY(make_ov_parameter(param->tensor_type()));
      parameters_.push_back(parameter);
      parameter_index_[param.get()] = i;
      values_[param.get()] = {parameter->output(0)};
    }
    for (const Expr& expr : post_order(function_->body)) TRY(visit(expr));
    return finish();
  }

 private:
  Status visit(const Expr& expr) {
    ov::OutputVector values;
    switch (expr->kind()) {
      case ExprKind::kVar:
        if (values_.count(expr.get()) == 0)
          return internal_error("free variable '{}'", as<VarNode>(expr)->name);
        return {};
      case ExprKind::kConstant: {
        const auto* constant = as<ConstantNode>(expr);
        values = {TRY(make_ov_constant(*constant))};
        if (is_float(constant->value.dtype()) || dtype_size(constant->value.dtype()) == 1)
          translation_.constant_bytes += constant->value.bytes();
        break;
      }
      case ExprKind::kTuple:
        for (const Expr& field : as<TupleNode>(expr)->fields) append(values, field);
        break;
      case ExprKind::kTupleGetItem: {
        const auto* item = as<TupleGetItemNode>(expr);
        if (!item->type().is_tensor()) return unsupported("a nested tuple");
        values = {values_.at(item->tuple.get())[static_cast<size_t>(item->index)]};
        break;
      }
      case ExprKind::kCall: {
        const auto* call = as<CallNode>(expr);
        ov::OutputVector inputs;
        for (const Expr& arg : call->args) append(inputs, arg);
        values = TRY(convert_call(*call, inputs));
        note_indices(*call);
        break;
      }
      default:
        return unsupported("an expression that is no dataflow");
    }
    values_[expr.get()] = std::move(values);
    return {};
  }

  void append(ov::OutputVector& values, const Expr& expr) {
    const ov::OutputVector& more = values_.at(expr.get());
    size_t count = expr->type().leaves().size();
    values.insert(values.end(), more.begin(), more.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void note_indices(const CallNode& call) {
    Ints extents = index_extents(call);
    if (extents.empty()) return;
    auto it = parameter_index_.find(index_origin(call.args[1]));
    if (it != parameter_index_.end()) translation_.checks.push_back({it->second, extents});
  }

  Result<Translation> finish() {
    ov::OutputVector leaves;
    append(leaves, function_->body);
    ov::ResultVector results;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Value& leaf = leaves[i];
      auto same = std::find(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(i), leaf);
      auto first = static_cast<size_t>(same - leaves.begin());
      using Kind = ResultSource::Kind;
      if (first < i) {
        translation_.results.push_back({Kind::kResult, first});
      } else if (ov::is_type<ov::op::v0::Constant>(leaf.get_node())) {
        const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(leaf.get_node_shared_ptr());
        translation_.results.push_back(
            {Kind::kConstant,
             0,
             {{constant, constant->get_data_ptr()}, constant->get_byte_size()}});
      } else if (ov::is_type<ov::op::v0::Parameter>(leaf.get_node())) {
        auto param = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const auto& p) { return p.get() == leaf.get_node(); });
        translation_.results.push_back(
            {Kind::kParameter, static_cast<size_t>(param - parameters_.begin())});
      } else {
        translation_.results.push_back({Kind::kComputed, results.size()});
        results.push_back(std::make_shared<ov::op::v0::Result>(leaf));
      }
    }
    if (!results.empty())
      translation_.model = std::make_shared<ov::Model>(results, parameters_, "collage");
    return std::move(translation_);
  }

  const Function& function_;
  ov::ParameterVector parameters_;
  std::unordered_map<const ExprNode*, size_t> parameter_index_;
  std::unordered_map<const ExprNode*, ov::OutputVector> values_;
  Translation translation_;
};

}  // namespace

Status can_translate(const CallNode& call) {
  try {
    ov::OutputVector inputs;
    for (const Expr& arg : call.args)
      for (const Value& value : TRY(placeholders(arg))) inputs.push_back(value);
    TRY(convert_call(call, inputs));
    return {};
  } catch (const std::exception& exception) {
    return unsupported("{}", short_message(exception));
  }
}

Result<Translation> translate(const Function& function) {
  try {
    return Translator(function).run();
  } catch (const std::exception& exception) {
    return unsupported("OpenVINO refuses the model: {}", short_message(exception));
  }
}

}  // namespace collage::openvino
