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
#include "runtime/dlpack_type.h"
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
    const DLDataType known = dl_data_type(static_cast<DType>(i));
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

}  // namespace

Status register_function(FunctionDefinition definition) {
  return without_exceptions([&]() -> Status {
    register_all();
    if (!is_label(definition.label))
      return usage_error("'{}' is no function's label", printable(definition.label));
    if (!definition.types || !definition.call)
      return usage_error("function {}: no type rule, or nothing to call", definition.label);
    if (!definition.onnx.empty() && !tensor_program::is_node_name(definition.onnx))
      return usage_error("'{}' is no node's name: \"domain::Operator\"",
                         printable(definition.onnx));
    tensor_program::ExternalFunction function;
    function.label = definition.label;
    const Attrs defaults = attrs_of(definition.attributes);
    for (const auto& [name, value] : defaults.entries())
      function.attributes.push_back({name, value});
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
    function.call = [types = definition.types, call = definition.call,
                     effects = definition.effects](std::span<const DLTensor> inputs,
                                                   std::span<const DLTensor> results,
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
    const bool is_operator =
        !function.onnx.empty() && tensor_program::find_defined_node(function.onnx) != nullptr;
    if (is_operator || !tensor_program::register_external(std::move(function)))
      return usage_error("function {}: its label or its ONNX node is taken", definition.label);
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
