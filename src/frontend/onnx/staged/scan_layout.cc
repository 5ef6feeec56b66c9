#include "frontend/onnx/staged/scan_layout.h"

#include <string>

#include "frontend/onnx/node_context.h"

namespace collage::frontend {

namespace {

// One number an input or output; all 0 where the attribute is missing.
Result<std::vector<int64_t>> numbers(const ::onnx::NodeProto& node, const std::string& name,
                                     size_t count) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() != name) continue;
    std::vector<int64_t> values(attribute.ints().begin(), attribute.ints().end());
    if (values.size() != count)
      return bad_model("attribute '{}' has {} elements, not {}", name, values.size(), count);
    return values;
  }
  return std::vector<int64_t>(count, 0);
}

}  // namespace

Result<ScanLayout> ScanLayout::of(const ::onnx::NodeProto& node, const ::onnx::GraphProto& body) {
  ScanLayout layout;
  int64_t scanned = -1;
  for (const auto& attribute : node.attribute())
    if (attribute.name() == "num_scan_inputs") scanned = attribute.i();
  if (scanned < 1 || scanned > node.input_size())
    return bad_model("{} scanned inputs of {} inputs", scanned, node.input_size());
  layout.scanned = static_cast<size_t>(scanned);
  layout.carried = static_cast<size_t>(node.input_size()) - layout.scanned;
  const auto outputs = static_cast<size_t>(body.output_size());
  if (body.input_size() != node.input_size() || outputs < layout.carried ||
      static_cast<size_t>(node.output_size()) > outputs)
    return bad_model("a body of {} inputs and {} outputs for {} inputs and {} outputs",
                     body.input_size(), body.output_size(), node.input_size(), node.output_size());
  layout.stacked = outputs - layout.carried;
  layout.input_axes_ = TRY(numbers(node, "scan_input_axes", layout.scanned));
  layout.output_axes_ = TRY(numbers(node, "scan_output_axes", layout.stacked));
  layout.input_backwards_ = TRY(numbers(node, "scan_input_directions", layout.scanned));
  layout.output_backwards_ = TRY(numbers(node, "scan_output_directions", layout.stacked));
  return layout;
}

Result<int64_t> ScanLayout::input_axis(size_t scanned_input, const Shape& shape) const {
  return normal_axis(input_axes_[scanned_input], static_cast<int64_t>(shape.size()));
}

Result<int64_t> ScanLayout::length(const std::vector<Shape>& shapes) const {
  int64_t result = -1;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t extent = shapes[i][static_cast<size_t>(TRY(input_axis(i, shapes[i])))];
    if (result >= 0 && extent != result)
      return bad_model("scanned inputs of {} and {} steps", result, extent);
    result = extent;
  }
  return result;
}

}  // namespace collage::frontend
