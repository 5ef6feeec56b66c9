#include "dynamic/foreign.h"

#include <utility>

#include "frontend/onnx/tensor_data.h"

namespace collage {

namespace {

using ::onnx::AttributeProto;

Result<Attribute> value_of(const AttributeProto& attribute) {
  switch (attribute.type()) {
    case AttributeProto::INT:
      return Attribute(attribute.i());
    case AttributeProto::FLOAT:
      return Attribute(static_cast<double>(attribute.f()));
    case AttributeProto::STRING:
      return Attribute(attribute.s());
    case AttributeProto::INTS:
      return Attribute(std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
    case AttributeProto::FLOATS:
      return Attribute(std::vector<double>(attribute.floats().begin(), attribute.floats().end()));
    case AttributeProto::STRINGS:
      return Attribute(
          std::vector<std::string>(attribute.strings().begin(), attribute.strings().end()));
    case AttributeProto::TENSOR: {
      ::onnx::TensorProto copy = attribute.t();
      if (copy.data_location() == ::onnx::TensorProto::EXTERNAL)
        return unsupported("attribute '{}' has its tensor in another file", attribute.name());
      return Attribute(TRY(frontend::TensorData("").take(copy)));
    }
    default:
      return unsupported("attribute '{}' is of type {}", attribute.name(),
                         ::onnx::AttributeProto_AttributeType_Name(attribute.type()));
  }
}

}  // namespace

Result<std::vector<Tensor>> call_foreign(const ForeignOperator& function,
                                         const ::onnx::NodeProto& node, const std::string& label,
                                         const std::vector<Tensor>& inputs) {
  std::map<std::string, Attribute> attributes;
  for (const AttributeProto& attribute : node.attribute())
    attributes.emplace(attribute.name(), TRY(value_of(attribute)));
  const auto wanted = static_cast<size_t>(node.output_size());
  std::vector<Tensor> results = TRY(function({label, attributes, inputs, wanted}));
  if (results.size() < wanted)
    return bad_model("the operator given for it returned {} results, not {}", results.size(),
                     wanted);
  for (size_t i = 0; i < wanted; ++i)
    if (!results[i].defined() && !node.output(static_cast<int>(i)).empty())
      return bad_model("the operator given for it left result {} undefined", i);
  return results;
}

}  // namespace collage
