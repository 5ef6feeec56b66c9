// Nodes that mean operators which users defined (include/collage/operators.h).
#include <map>
#include <mutex>

#include "frontend/onnx/converters.h"
#include "frontend/onnx/model_file.h"
#include "ops/half.h"
#include "tensor_program/defined_operator.h"

namespace collage::frontend {

namespace {

using tensor_program::DefinedOperator;

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
  Outputs outputs;
  if (made->type().is_tensor()) outputs.push_back(made);
  for (size_t i = 0; !made->type().is_tensor() && i < made->type().fields().size(); ++i)
    outputs.push_back(node.item(made, static_cast<int64_t>(i)));
  for (Expr& output : outputs)
    if (half && dtype_of(output) == DType::kFloat32) output = TRY(node.cast(output, *half));
  return outputs;
}

}  // namespace

const ConverterRow* find_defined_converter(const std::string& domain, const std::string& op) {
  const DefinedOperator* defined =
      tensor_program::find_defined_node(is_standard_domain(domain) ? "" : domain, op);
  if (defined == nullptr) return nullptr;
  static auto* rows = new std::map<const DefinedOperator*, ConverterRow>;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  const int params = static_cast<int>(defined->program.params());
  return &rows->try_emplace(defined, ConverterRow{defined->definition.name, params, params,
                                                  [defined](NodeContext& node) {
                                                    return convert(node, *defined);
                                                  }})
              .first->second;
}

}  // namespace collage::frontend
