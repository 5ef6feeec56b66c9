// RoiAlign: regions of an image, pooled to one size.
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// Operator set 16 moved the corners by half a pixel, and says so in an attribute.
Result<Expr> convert_roi_align(NodeContext& node) {
  const bool names_mode = node.opset() >= 16;
  const std::string coordinates = TRY(
      node.text("coordinate_transformation_mode", names_mode ? "half_pixel" : "output_half_pixel"));
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return bad_model("coordinate_transformation_mode '{}' is unknown", coordinates);
  const std::string mode = TRY(node.text("mode", "avg"));
  if (mode != "avg" && mode != "max") return bad_model("mode '{}' is neither avg nor max", mode);
  const Ints size = {TRY(node.integer("output_height", 1)), TRY(node.integer("output_width", 1))};
  return node.call("vision.roi_align", {node.in(0), node.in(1), node.in(2)},
                   {{"pooled_size", size},
                    {"spatial_scale", TRY(node.real("spatial_scale", 1.0))},
                    {"sample_ratio", TRY(node.integer("sampling_ratio", 0))},
                    {"mode", mode},
                    {"half_pixel", coordinates == "half_pixel"}});
}

}  // namespace

ConverterRows roi_converters() {
  return {
      {"RoiAlign", 3, 3, single(convert_roi_align)},
  };
}

}  // namespace collage::frontend
