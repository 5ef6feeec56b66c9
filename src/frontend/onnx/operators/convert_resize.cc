// Resize and its forerunner Upsample, as image.resize of the axes that change. Axes that keep their
// extent go in front as batch and channel; where they stand elsewhere the data is transposed.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

struct Scaling {
  Shape shape;                 // of the result
  std::vector<double> scales;  // of each axis, as given or as computed from sizes
  std::vector<double> roi;     // of each axis: begins, then ends; empty when there is none
};

Status set_size(Scaling& scaling, size_t axis, double extent) {
  if (!(extent >= 0 && extent <= static_cast<double>(kMaxDimension)))
    return bad_model("axis {} becomes {} long", axis, extent);
  scaling.shape[axis] = static_cast<int64_t>(extent);
  return {};
}

Status apply_scales(const NodeContext& node, Scaling& scaling, const std::vector<double>& scales,
                    const Ints& axes) {
  if (scales.size() != axes.size())
    return bad_model("{} scales for {} axes", scales.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(axes[i]);
    if (!(scales[i] > 0) || !std::isfinite(scales[i]))
      return bad_model("the scale of axis {} is {}", axis, scales[i]);
    scaling.scales[axis] = scales[i];
    // Scales are single precision: their product with the extent is taken there too.
    const float extent = static_cast<float>(node.shape(0)[axis]) * static_cast<float>(scales[i]);
    TRY(set_size(scaling, axis, std::floor(static_cast<double>(extent))));
  }
  return {};
}

Status apply_sizes(const NodeContext& node, Scaling& scaling, const Ints& sizes, const Ints& axes) {
  if (sizes.size() != axes.size())
    return bad_model("{} sizes for {} axes", sizes.size(), axes.size());
  const std::string policy = TRY(node.text("keep_aspect_ratio_policy", "stretch"));
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return bad_model("keep_aspect_ratio_policy '{}' is unknown", policy);
  double common = policy == "not_larger" ? INFINITY : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = node.shape(0)[static_cast<size_t>(axes[i])];
    if (extent == 0) return bad_model("axis {} is empty", axes[i]);
    const double scale = static_cast<double>(sizes[i]) / static_cast<double>(extent);
    common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(axes[i]);
    const double extent = static_cast<double>(node.shape(0)[axis]);
    const double size =
        policy == "stretch" ? static_cast<double>(sizes[i]) : std::floor(common * extent + 0.5);
    TRY(set_size(scaling, axis, size));
    scaling.scales[axis] = policy == "stretch" ? size / extent : common;
  }
  return {};
}

Result<Scaling> read_scaling(const NodeContext& node) {
  const size_t rank = static_cast<size_t>(node.rank(0));
  Scaling scaling{node.shape(0), std::vector<double>(rank, 1.0), {}};
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has_attr("axes")) {
    axes = TRY(node.ints("axes"));
    TRY(normal_axes(axes, node.rank(0)));
    for (int64_t& axis : axes) axis = TRY(normal_axis(axis, node.rank(0)));
  }
  const size_t scales_at = node.opset() < 11 ? 1 : 2;
  auto given = [&](size_t i) { return node.has(i) && num_elements(node.shape(i)) > 0; };
  if (node.opset() >= 11 && given(1)) {
    const std::vector<double> roi = TRY(node.constant_reals(1, "roi"));
    if (roi.size() != 2 * axes.size())
      return bad_model("roi has {} values for {} axes", roi.size(), axes.size());
    scaling.roi.assign(2 * rank, 0.0);
    std::fill(scaling.roi.begin() + static_cast<std::ptrdiff_t>(rank), scaling.roi.end(), 1.0);
    for (size_t i = 0; i < axes.size(); ++i) {
      scaling.roi[static_cast<size_t>(axes[i])] = roi[i];
      scaling.roi[static_cast<size_t>(axes[i]) + rank] = roi[i + axes.size()];
    }
  }
  if (given(scales_at)) {
    TRY(apply_scales(node, scaling, TRY(node.constant_reals(scales_at, "scales")), axes));
  } else if (node.opset() >= 11 && given(3)) {
    TRY(apply_sizes(node, scaling, TRY(node.constant_ints(3, "sizes")), axes));
  } else if (node.has_attr("scales")) {  // Upsample before operator set 9
    TRY(apply_scales(node, scaling, TRY(node.reals("scales")), axes));
  } else {
    return bad_model("neither scales nor sizes are given");
  }
  return scaling;
}

struct Method {
  std::string method, coordinates, rounding;
};

Result<Method> read_method(const NodeContext& node) {
  const std::string mode = TRY(node.text("mode", "nearest"));
  Method method;
  if (mode == "nearest") {
    method.method = "nearest_neighbor";
  } else if (mode == "linear" || mode == "bilinear") {
    method.method = "linear";
  } else if (mode == "cubic") {
    method.method = "cubic";
  } else {
    return bad_model("mode '{}' is unknown", mode);
  }
  const bool legacy = node.opset() < 11;
  method.coordinates =
      TRY(node.text("coordinate_transformation_mode", legacy ? "asymmetric" : "half_pixel"));
  method.rounding = TRY(node.text("nearest_mode", legacy ? "floor" : "round_prefer_floor"));
  return method;
}

// Reads one element per axis in `order` from the per-axis values that start at `offset`.
std::vector<double> pick(const std::vector<double>& values, const Ints& order, size_t offset = 0) {
  std::vector<double> result;
  for (int64_t axis : order) result.push_back(values[static_cast<size_t>(axis) + offset]);
  return result;
}

Result<Expr> convert_resize(NodeContext& node) {
  const Scaling scaling = TRY(read_scaling(node));
  const Method method = TRY(read_method(node));
  const size_t rank = static_cast<size_t>(node.rank(0));
  TRY(check_computed_shape(scaling.shape));
  const bool crop = method.coordinates == "tf_crop_and_resize";
  if (crop && scaling.roi.empty()) return bad_model("tf_crop_and_resize needs a roi");
  Ints same, changed;
  for (size_t axis = 0; axis < rank; ++axis) {
    bool changes = scaling.shape[axis] != node.shape(0)[axis] || scaling.scales[axis] != 1.0;
    if (crop) changes |= scaling.roi[axis] != 0.0 || scaling.roi[axis + rank] != 1.0;
    (changes ? changed : same).push_back(static_cast<int64_t>(axis));
  }
  if (changed.empty()) return node.in(0);
  // An image stays one: its spatial axes are resized together even if one keeps its extent.
  if (rank >= 3 && rank <= 5 && changed[0] >= 2) {
    same = {0, 1};
    changed.clear();
    for (size_t axis = 2; axis < rank; ++axis) changed.push_back(static_cast<int64_t>(axis));
  }
  if (changed.size() > 3)
    return unsupported("{} axes are resized, at most 3 can be", changed.size());

  Ints order = same;
  order.insert(order.end(), changed.begin(), changed.end());
  Expr data = TRY(node.transpose(node.in(0), order));
  Shape image = {1, 1}, size, result;
  for (size_t i = 0; i < same.size(); ++i)
    image[i == 0 ? 0 : 1] *= node.shape(0)[static_cast<size_t>(same[i])];
  for (int64_t axis : changed) {
    image.push_back(node.shape(0)[static_cast<size_t>(axis)]);
    size.push_back(scaling.shape[static_cast<size_t>(axis)]);
  }
  for (int64_t axis : order) result.push_back(scaling.shape[static_cast<size_t>(axis)]);
  std::vector<double> roi;
  if (crop) {
    roi = pick(scaling.roi, changed);
    const std::vector<double> ends = pick(scaling.roi, changed, rank);
    roi.insert(roi.end(), ends.begin(), ends.end());
  }
  data = TRY(node.reshape(data, image));
  data = TRY(node.call(fmt::format("image.resize{}d", changed.size()), {data},
                       {{"size", size},
                        {"scales", pick(scaling.scales, changed)},
                        {"roi", roi},
                        {"method", method.method},
                        {"coordinate_transformation_mode", method.coordinates},
                        {"rounding_method", method.rounding},
                        {"cubic_alpha", TRY(node.real("cubic_coeff_a", -0.75))},
                        {"cubic_exclude", TRY(node.flag("exclude_outside", false))},
                        {"extrapolation_value", TRY(node.real("extrapolation_value", 0.0))},
                        {"antialias", TRY(node.flag("antialias", false))}}));
  data = TRY(node.reshape(data, result));
  Ints back(rank);
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return node.transpose(data, back);
}

}  // namespace

ConverterRows resize_converters() {
  return {
      {"Resize", 1, 4, single(convert_resize)},
      {"Upsample", 1, 2, single(convert_resize)},
  };
}

}  // namespace collage::frontend
