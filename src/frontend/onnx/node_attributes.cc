#include "frontend/onnx/node_attributes.h"

#include <algorithm>

#include "frontend/onnx/tensor_data.h"

namespace collage::frontend {

using ::onnx::AttributeProto;

const AttributeProto* NodeAttributes::find(std::string_view name) const {
  for (const AttributeProto& attribute : node_.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

Result<const AttributeProto*> NodeAttributes::find(std::string_view name,
                                                   AttributeProto::AttributeType type,
                                                   bool required) const {
  const AttributeProto* attribute = find(name);
  if (attribute == nullptr) {
    if (required) return bad_model("attribute '{}' is missing", name);
    return attribute;
  }
  if (attribute->type() != type)
    return bad_model("attribute '{}' has type {}, not {}", name,
                     ::onnx::AttributeProto_AttributeType_Name(attribute->type()),
                     ::onnx::AttributeProto_AttributeType_Name(type));
  return attribute;
}

Result<int64_t> NodeAttributes::integer(std::string_view name,
                                        std::optional<int64_t> fallback) const {
  const auto* attribute = TRY(find(name, AttributeProto::INT, !fallback.has_value()));
  return attribute == nullptr ? *fallback : attribute->i();
}

Result<bool> NodeAttributes::flag(std::string_view name, bool fallback) const {
  const int64_t value = TRY(integer(name, fallback ? 1 : 0));
  if (value != 0 && value != 1) return bad_model("attribute '{}' is {}, not 0 or 1", name, value);
  return value != 0;
}

Result<double> NodeAttributes::real(std::string_view name, std::optional<double> fallback) const {
  const auto* attribute = TRY(find(name, AttributeProto::FLOAT, !fallback.has_value()));
  return attribute == nullptr ? *fallback : static_cast<double>(attribute->f());
}

Result<std::string> NodeAttributes::text(std::string_view name,
                                         std::optional<std::string> fallback) const {
  const auto* attribute = TRY(find(name, AttributeProto::STRING, !fallback.has_value()));
  return attribute == nullptr ? *fallback : attribute->s();
}

Result<Ints> NodeAttributes::ints(std::string_view name, std::optional<Ints> fallback) const {
  const auto* attribute = TRY(find(name, AttributeProto::INTS, !fallback.has_value()));
  if (attribute == nullptr) return *fallback;
  return Ints(attribute->ints().begin(), attribute->ints().end());
}

Result<std::vector<double>> NodeAttributes::reals(std::string_view name) const {
  const auto* attribute = TRY(find(name, AttributeProto::FLOATS, true));
  return std::vector<double>(attribute->floats().begin(), attribute->floats().end());
}

Result<std::vector<std::string>> NodeAttributes::texts(std::string_view name) const {
  const auto* attribute = TRY(find(name, AttributeProto::STRINGS, true));
  return std::vector<std::string>(attribute->strings().begin(), attribute->strings().end());
}

Result<DType> NodeAttributes::element_type(std::string_view name) const {
  const int64_t value = TRY(integer(name));
  if (value < 0 || value > INT32_MAX) return bad_model("attribute '{}' is {}", name, value);
  return dtype_from_onnx(static_cast<int32_t>(value));
}

Result<Attrs> NodeAttributes::all() const {
  Attrs attrs;
  for (const AttributeProto& attribute : node_.attribute()) {
    const std::string& name = attribute.name();
    switch (attribute.type()) {
      case AttributeProto::INT:
        attrs.set(name, TRY(integer(name)));
        break;
      case AttributeProto::FLOAT:
        attrs.set(name, TRY(real(name)));
        break;
      case AttributeProto::STRING:
        attrs.set(name, TRY(text(name)));
        break;
      case AttributeProto::INTS:
        attrs.set(name, TRY(ints(name)));
        break;
      case AttributeProto::FLOATS:
        attrs.set(name, TRY(reals(name)));
        break;
      default:
        return unsupported("attribute '{}' is neither numbers nor a text", name);
    }
  }
  return attrs;
}

Result<int64_t> normal_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return bad_model("axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

Result<Ints> normal_axes(const Ints& axes, int64_t rank) {
  Ints result;
  for (int64_t axis : axes) result.push_back(TRY(normal_axis(axis, rank)));
  std::sort(result.begin(), result.end());
  auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end()) return bad_model("axis {} is named twice", *twice);
  return result;
}

}  // namespace collage::frontend
