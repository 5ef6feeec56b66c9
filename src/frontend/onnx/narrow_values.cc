#include "frontend/onnx/narrow_values.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace collage::frontend {

namespace {

// They ask NodeContext::narrow, or do not look at elements.
constexpr std::string_view kAware[] = {"Cast",           "CastLike", "DequantizeLinear",
                                       "QuantizeLinear", "Shape",    "Size"};

bool is_aware(const std::string& op) {
  return std::find(std::begin(kAware), std::end(kAware), op) != std::end(kAware);
}

}  // namespace

const NarrowType* NarrowValues::find(const std::string& name) const {
  const auto it = types_.find(name);
  return it == types_.end() ? nullptr : it->second;
}

void NarrowValues::declare(const std::string& name, int32_t data_type) {
  if (const NarrowType* type = narrow_type(data_type)) types_[name] = type;
}

Status NarrowValues::before(const ::onnx::NodeProto& node, NodeContext& context) const {
  const bool moves = only_moves(node.op_type());
  std::vector<const NarrowType*> inputs;
  for (const std::string& name : node.input()) {
    inputs.push_back(find(name));
    if (inputs.back() != nullptr && !moves && !is_aware(node.op_type()))
      return unsupported("an input of type {}", onnx_type_name(inputs.back()->onnx));
  }
  if (moves && !inputs.empty()) context.make_narrow(inputs[0]);
  context.set_narrow(std::move(inputs));
  return {};
}

void NarrowValues::after(const ::onnx::NodeProto& node, const NodeContext& context) {
  if (context.made_narrow() == nullptr) return;
  for (const std::string& name : node.output())
    if (!name.empty()) types_[name] = context.made_narrow();
}

}  // namespace collage::frontend
