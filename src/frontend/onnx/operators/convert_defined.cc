// Nodes that mean operators which users defined (include/collage/operators.h), or functions that
// they registered (include/collage/functions.h).
#include <map>
#include <mutex>

#include "frontend/onnx/model_file.h"
#include "frontend/onnx/operators/converters.h"
#include "ops/half.h"
#include "tensor_program/defined_operator.h"
#include "tensor_program/external.h"
#include "tensor_program/external_call.h"

namespace collage::frontend {

namespace {

using tensor_program::DefinedOperator;
using tensor_program::ExternalFunction;

Outputs outputs_of(const NodeContext& node, const Expr& made) {
  if (made->type().is_tensor()) return {made};
  Outputs outputs;
  for (size_t i = 0; i < made->type().fields().size(); ++i)
    outputs.push_back(node.item(made, static_cast<int64_t>(i)));
  return outputs;
}

Result<Outputs> convert(NodeContext& node, const DefinedOperator& op) {
  Attrs attrs;
  for (const AttrSpec& attribute : op.program.attributes()) {
    const auto set = [&]<typename T>(T fallback, auto read) -> Status {
      std::optional<T> otherwise;
      if (!attribute.required) otherwise = fallback;
      attrs.set(attribute.name, TRY(read(otherwise)));
      return {};
    };
    if (const auto* integer = std::get_if<int64_t>(&attribute.default_value)) {
      TRY(set(*integer, [&](auto otherwise) { return node.integer(attribute.name, otherwise); }));
    } else {
      TRY(set(std::get<double>(attribute.default_value),
              [&](auto otherwise) { return node.real(attribute.name, otherwise); }));
    }
  }
  // Models of half precision are computed in float32, and so are their nodes of such operators.
  std::optional<DType> half;
  std::vector<Expr> args = node.inputs();
  for (size_t i = 0; i < args.size(); ++i) {
    if (!is_half(dtype_of(args[i])) || op.program.dtype_of_param(i) != DType::kFloat32) continue;
    half = dtype_of(args[i]);
    args[i] = TRY(node.cast(args[i], DType::kFloat32));
  }
  const Expr made = TRY(node.call(op.definition.name, std::move(args), std::move(attrs)));
  Outputs outputs = outputs_of(node, made);
  for (Expr& output : outputs)
    if (half && dtype_of(output) == DType::kFloat32) output = TRY(node.cast(output, *half));
  return outputs;
}

/// The node's value of an attribute, of its default's kind.
Result<AttrValue> value_of(const NodeContext& node, const AttrSpec& spec) {
  return std::visit(
      [&](const auto& fallback) -> Result<AttrValue> {
        using Kind = std::decay_t<decltype(fallback)>;
        if constexpr (std::is_same_v<Kind, bool>)
          return AttrValue(TRY(node.flag(spec.name, fallback)));
        else if constexpr (std::is_same_v<Kind, int64_t>)
          return AttrValue(TRY(node.integer(spec.name)));
        else if constexpr (std::is_same_v<Kind, double>)
          return AttrValue(TRY(node.real(spec.name)));
        else if constexpr (std::is_same_v<Kind, std::string>)
          return AttrValue(TRY(node.text(spec.name)));
        else if constexpr (std::is_same_v<Kind, Ints>)
          return AttrValue(TRY(node.ints(spec.name)));
        else if constexpr (std::is_same_v<Kind, std::vector<double>>)
          return AttrValue(TRY(node.reals(spec.name)));
        else
          return unsupported("attribute '{}': ONNX has none of its kind", spec.name);
      },
      spec.default_value);
}

Result<Outputs> convert(NodeContext& node, const ExternalFunction& function) {
  tensor_program::ExternalDeclaration declaration;
  declaration.label = function.label;
  if (function.has_open_attributes) declaration.attrs = TRY(node.all());
  for (const AttrSpec& spec : function.attributes)
    if (node.has_attr(spec.name)) declaration.attrs.set(spec.name, TRY(value_of(node, spec)));
  if (declaration.attrs.entries().size() != node.num_attrs())
    return unsupported("attributes that the function {} does not declare", function.label);
  for (size_t i = 0; i < node.num_inputs(); ++i)
    if (!node.has(i)) return unsupported("no input {}: {} is a function", i, function.label);
  tensor_program::OperatorWithAttrs called =
      TRY(tensor_program::external_operator(declaration, node.inputs(), ""));
  return outputs_of(node,
                    TRY(node.call(called.op, std::move(called.args), std::move(called.attrs))));
}

}  // namespace

const ConverterRow* find_defined_converter(const std::string& domain, const std::string& op) {
  const std::string node_name = (is_standard_domain(domain) ? "" : domain) + "::" + op;
  static auto* rows = new std::map<std::string, ConverterRow>;  // by node
  static std::mutex mutex;
  const auto row = [&](const std::string& name, int least, int most, auto convert_node) {
    std::lock_guard lock(mutex);
    return &rows->try_emplace(node_name, ConverterRow{name, least, most, convert_node})
                .first->second;
  };
  if (const DefinedOperator* defined = tensor_program::find_defined_node(node_name)) {
    const int params = static_cast<int>(defined->program.params());
    return row(defined->definition.name, params, params,
               [defined](NodeContext& node) { return convert(node, *defined); });
  }
  if (const ExternalFunction* function = tensor_program::find_external_node(node_name))
    return row(function->label, 0, -1,
               [function](NodeContext& node) { return convert(node, *function); });
  return nullptr;
}

}  // namespace collage::frontend
