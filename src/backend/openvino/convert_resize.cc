// image.resize…d as Interpolate over the spatial axes.
#include <cmath>
#include <map>
#include <openvino/op/interpolate.hpp>

#include "backend/openvino/converter.h"

namespace collage::openvino {

namespace {

using Base = ov::op::util::InterpolateBase;

Result<Base::CoordinateTransformMode> coordinates(const std::string& name) {
  using Mode = Base::CoordinateTransformMode;
  static const std::map<std::string, Mode> kModes = {
      {"half_pixel", Mode::HALF_PIXEL},       {"pytorch_half_pixel", Mode::PYTORCH_HALF_PIXEL},
      {"asymmetric", Mode::ASYMMETRIC},       {"tf_half_pixel_for_nn", Mode::TF_HALF_PIXEL_FOR_NN},
      {"align_corners", Mode::ALIGN_CORNERS},
  };
  auto it = kModes.find(name);
  if (it == kModes.end()) return unsupported("coordinate_transformation_mode {}", name);
  return it->second;
}

Base::NearestMode nearest(const std::string& rounding) {
  if (rounding == "floor") return Base::NearestMode::FLOOR;
  if (rounding == "ceil") return Base::NearestMode::CEIL;
  if (rounding == "round" || rounding == "round_prefer_ceil")
    return Base::NearestMode::ROUND_PREFER_CEIL;
  return Base::NearestMode::ROUND_PREFER_FLOOR;
}

Result<ov::OutputVector> convert_resize(const CallView& view) {
  Base::InterpolateAttrs attrs;
  const std::string& method = view.attrs.string("method");
  attrs.mode = method == "nearest_neighbor" ? Base::InterpolateMode::NEAREST
               : method == "cubic"          ? Base::InterpolateMode::CUBIC
                                            : Base::InterpolateMode::LINEAR_ONNX;
  attrs.coordinate_transformation_mode =
      TRY(coordinates(view.attrs.string("coordinate_transformation_mode")));
  attrs.nearest_mode = nearest(view.attrs.string("rounding_method"));
  attrs.cube_coeff = view.attrs.real("cubic_alpha");
  if (view.attrs.flag("cubic_exclude") && method == "cubic") return unsupported("cubic_exclude");
  if (view.attrs.flag("antialias") && method != "nearest_neighbor") return unsupported("antialias");

  // Scales that are not just output over input enter the coordinates as they are.
  const auto& scales = std::get<std::vector<double>>(*view.attrs.find("scales"));
  const Ints& size = view.attrs.ints("size");
  Ints axes;
  std::vector<float> given;
  bool exact = true;
  for (size_t d = 0; d < size.size(); ++d) {
    axes.push_back(static_cast<int64_t>(d) + 2);
    if (scales.empty()) continue;
    given.push_back(static_cast<float>(scales[d]));
    double derived = static_cast<double>(size[d]) / static_cast<double>(view.shape(0)[d + 2]);
    exact = exact && std::abs(derived - scales[d]) < 1e-9 * derived;
  }
  if (scales.empty() || exact) {
    attrs.shape_calculation_mode = Base::ShapeCalcMode::SIZES;
    return one(make<ov::op::v11::Interpolate>(view[0], ints(size), ints(axes), attrs));
  }
  attrs.shape_calculation_mode = Base::ShapeCalcMode::SCALES;
  Value factors = make<ov::op::v0::Constant>(ov::element::f32, ov::Shape{given.size()}, given);
  return one(make<ov::op::v11::Interpolate>(view[0], factors, ints(axes), attrs));
}

}  // namespace

ConverterTable resize_converters() {
  return {
      {"image.resize1d", kFloat, convert_resize},
      {"image.resize2d", kFloat, convert_resize},
      {"image.resize3d", kFloat, convert_resize},
  };
}

}  // namespace collage::openvino
