#include <collage/functions.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "backend/targets/backends.h"
#include "backend/targets/plugins.h"
#include "base/check.h"
#include "base/no_exceptions.h"
#include "base/printable.h"
#include "compiler/attributes.h"
#include "tensor_program/defined_operator.h"
#include "tensor_program/external.h"
#include "tensor_program/intrinsic.h"

namespace collage {

namespace {

/// Stands for the result of a function that gives nothing.
const TensorType kNoResult{{}, DType::kBool};

bool is_label(std::string_view label) {
  return !label.empty() && std::all_of(label.begin(), label.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == ':';
  });
}

DType dtype_of(const DLDataType& type) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const DLDataType known = tensor_program::dl_tensor(static_cast<DType>(i), {}, nullptr).dtype;
    if (known.code == type.code && known.bits == type.bits) return static_cast<DType>(i);
  }
  COLLAGE_CHECK(false, "a tensor of no type of ours");
  return {};
}

std::vector<Tensor> views_of(std::span<const DLTensor> arrays) {
  std::vector<Tensor> views;
  for (const DLTensor& array : arrays)
    views.push_back(Tensor::borrow(dtype_of(array.dtype),
                                   Shape(array.shape, array.shape + array.ndim), array.data));
  return views;
}

Result<tensor_program::ExternalFunction> external_of(FunctionDefinition definition) {
  if (!is_label(definition.label))
    return usage_error("'{}' is no function's label", printable(definition.label));
  if (!definition.types || !definition.call)
    return usage_error("function {}: no type rule, or nothing to call", definition.label);
  if (!definition.onnx.empty() && !tensor_program::is_node_name(definition.onnx))
    return usage_error("'{}' is no node's name: \"domain::Operator\"", printable(definition.onnx));
  tensor_program::ExternalFunction function;
  function.label = definition.label;
  const Attrs defaults = attrs_of(definition.attributes);
  for (const auto& [name, value] : defaults.entries()) function.attributes.push_back({name, value});
  function.has_open_attributes = definition.open_attributes;
  function.has_effects = definition.effects;
  if (definition.effects && !definition.onnx.empty())
    return usage_error("function {}: nodes of ONNX have no effects", definition.label);
  function.types = [label = definition.label, types = definition.types,
                    effects = definition.effects](
                       std::span<const TensorType> inputs,
                       const Attrs& attrs) -> Result<std::vector<TensorType>> {
    std::vector<ArrayType> given;
    for (const TensorType& input : inputs) given.push_back({input.shape, input.dtype});
    Result<std::vector<ArrayType>> made =
        without_exceptions([&] { return types(given, attributes_of(attrs)); });
    if (!made) return std::move(made).status().with_context(label);
    if (made->empty() && effects) return std::vector<TensorType>{kNoResult};
    std::vector<TensorType> results;
    for (ArrayType& type : *made) results.push_back({std::move(type.shape), type.dtype});
    return results;
  };
  function.call = [types = definition.types, call = definition.call, effects = definition.effects](
                      std::span<const DLTensor> inputs, std::span<const DLTensor> results,
                      const Attrs& attrs) -> Status {
    const Expression::Attributes attributes = attributes_of(attrs);
    const std::vector<Tensor> given = views_of(inputs);
    std::vector<Tensor> filled = views_of(results);
    if (effects && filled.size() == 1 && filled[0].rank() == 0) {
      std::vector<ArrayType> arrays;
      for (const Tensor& input : given) arrays.push_back({input.shape(), input.dtype()});
      if (TRY(types(arrays, attributes)).empty()) {
        std::memset(filled[0].raw(), 0, filled[0].bytes());
        filled.clear();
      }
    }
    return call(given, filled, attributes);
  };
  function.updates = definition.updates;
  function.onnx = definition.onnx;
  function.is_local = !is_loading_plugin();
  return function;
}

}  // namespace

Status register_function(FunctionDefinition definition) {
  return without_exceptions([&]() -> Status {
    register_all();
    const std::string label = definition.label;
    tensor_program::ExternalFunction function = TRY(external_of(std::move(definition)));
    const bool is_operator =
        !function.onnx.empty() && tensor_program::find_defined_node(function.onnx) != nullptr;
    if (is_operator || !tensor_program::register_external(std::move(function)))
      return usage_error("function {}: its label or its ONNX node is taken", label);
    return {};
  });
}

Status register_functions(
    const std::string& prefix,
    std::function<Result<FunctionDefinition>(const std::string& label)> make) {
  return without_exceptions([&]() -> Status {
    const auto made = [make = std::move(make), is_local = !is_loading_plugin()](
                          const std::string& label) -> Result<tensor_program::ExternalFunction> {
      FunctionDefinition definition = TRY(make(label));
      definition.label = label;
      definition.onnx.clear();
      tensor_program::ExternalFunction function = TRY(external_of(std::move(definition)));
      function.is_local = is_local;
      return function;
    };
    if (!is_label(prefix) || !tensor_program::register_externals(prefix, made))
      return usage_error("'{}' is no prefix of labels, or taken", printable(prefix));
    return {};
  });
}

Status register_node(const std::string& node, const std::string& label) {
  return without_exceptions([&]() -> Status {
    register_all();
    if (!tensor_program::is_node_name(node))
      return usage_error("'{}' is no node's name: \"domain::Operator\"", printable(node));
    if (TRY(tensor_program::require_external(label))->has_effects)
      return usage_error("function {}: nodes of ONNX have no effects", label);
    if (tensor_program::find_defined_node(node) != nullptr ||
        !tensor_program::register_external_node(node, label))
      return usage_error("nodes {} have a meaning already", printable(node));
    return {};
  });
}

Status register_intrinsic(const IntrinsicDefinition& definition) {
  return without_exceptions([&] {
    register_all();
    return tensor_program::register_intrinsic(definition.name, definition.program,
                                              definition.lowering, !is_loading_plugin());
  });
}

}  // namespace collage
