// vision.roi_align(data, rois, batch_indices): regions of an image, each as an image of pooled_size
// (ONNX RoiAlign). A region is (x1, y1, x2, y2), times spatial_scale in pixels; with half_pixel its
// corners count from the outer edges of pixels, without it a region is at least one pixel wide and
// high. It is cut into pooled_size bins, a bin into sample_ratio by sample_ratio cells (0: cells of
// at most one pixel), and at the middle of each the image is read by bilinear interpolation. A bin
// is the mean of what was read, or in mode "max" the largest of the samples' weighted pixels: of
// the products, not of their sums, as ONNX defines it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "ops/families.h"
#include "ops/indices.h"

namespace collage {

namespace {

constexpr int64_t kMaxPooled = int64_t{1} << 20;
constexpr double kMaxCells = 1 << 12;    // of a bin, along one axis
constexpr double kMaxSamples = 1 << 22;  // of a region, along one axis

Result<Type> infer_roi_align(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), rois = TRY(tensor_arg(args, 1));
  TensorType batches = TRY(tensor_arg(args, 2));
  TRY(require_float(data, "data"));
  TRY(require_same_dtype(data, rois));
  TRY(require_integer(batches, "batch_indices"));
  TRY(require_rank(data, 4, "data"));
  TRY(require_rank(batches, 1, "batch_indices"));
  TRY(require_shape(rois, {batches.shape[0], 4}, "rois"));
  TRY(require_one_of(attrs.string("mode"), {"avg", "max"}, "mode"));
  const Ints& size = attrs.ints("pooled_size");
  if (size.size() != 2) return bad_model("pooled_size has {} entries, not 2", size.size());
  for (int64_t extent : size)
    if (extent < 1 || extent > kMaxPooled)
      return bad_model("pooled_size {} is out of range", extent);
  const int64_t ratio = attrs.integer("sample_ratio");
  if (ratio < 0 || ratio > static_cast<int64_t>(kMaxCells))
    return bad_model("sample_ratio {} is out of range", ratio);
  if (!std::isfinite(attrs.real("spatial_scale")))
    return bad_model("spatial_scale {} is no number", attrs.real("spatial_scale"));
  if (data.shape[2] == 0 || data.shape[3] == 0)
    return bad_model("data {} has no pixels", shape_to_string(data.shape));
  return tensor_result({batches.shape[0], data.shape[1], size[0], size[1]}, data.dtype);
}

// Where a sample reads along one axis, and with which weights.
struct Reading {
  std::array<int64_t, 2> at;
  std::array<double, 2> weight;
};

// The samples of one axis of a region that read the image; the others give zeros.
struct Axis {
  int64_t cells = 0;              // a bin, read or not
  std::vector<Reading> readings;  // those of the first bin, then those of the next ones
  std::vector<size_t> begins;     // of each bin, and the end of the last

  std::span<const Reading> bin(int64_t index) const {
    const auto i = static_cast<size_t>(index);
    return std::span(readings).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

void add_reading(Axis& axis, double x, int64_t extent) {
  if (!(x >= -1.0 && x <= static_cast<double>(extent))) return;
  x = std::max(x, 0.0);
  const auto low = static_cast<int64_t>(x);
  const double above = x - static_cast<double>(low);
  if (low >= extent - 1)
    axis.readings.push_back({{extent - 1, extent - 1}, {1, 0}});
  else
    axis.readings.push_back({{low, low + 1}, {1 - above, above}});
}

Result<Axis> axis_of(double begin, double end, const Attrs& attrs, int64_t bins, int64_t extent) {
  const double scale = attrs.real("spatial_scale");
  const bool half_pixel = attrs.flag("half_pixel");
  const double offset = half_pixel ? 0.5 : 0.0;
  begin = begin * scale - offset;
  double length = end * scale - offset - begin;
  if (!half_pixel) length = std::max(length, 1.0);
  const double bin = length / static_cast<double>(bins);
  const int64_t ratio = attrs.integer("sample_ratio");
  // Rounded to float32 as in other runtimes, so that 7.0000000001 pixels are 7 cells.
  const double cells = ratio > 0 ? static_cast<double>(ratio)
                                 : std::max<double>(std::ceil(static_cast<float>(bin)), 0.0);
  if (!std::isfinite(begin) || !std::isfinite(bin) || !(cells <= kMaxCells) ||
      cells * static_cast<double>(bins) > kMaxSamples)
    return bad_model("a region of {} pixels from {} on", length, begin);
  Axis axis;
  axis.cells = static_cast<int64_t>(cells);
  for (int64_t i = 0; i < bins; ++i) {
    axis.begins.push_back(axis.readings.size());
    for (int64_t k = 0; k < axis.cells; ++k)
      add_reading(
          axis, begin + static_cast<double>(i) * bin + (static_cast<double>(k) + 0.5) * bin / cells,
          extent);
  }
  axis.begins.push_back(axis.readings.size());
  return axis;
}

template <typename T>
double sum_of(const T* image, int64_t width, std::span<const Reading> rows,
              std::span<const Reading> columns) {
  double sum = 0;
  for (const Reading& y : rows)
    for (size_t i = 0; i < 2; ++i) {
      const T* line = image + y.at[i] * width;
      double part = 0;
      for (const Reading& x : columns)
        part += x.weight[0] * static_cast<double>(line[x.at[0]]) +
                x.weight[1] * static_cast<double>(line[x.at[1]]);
      sum += y.weight[i] * part;
    }
  return sum;
}

template <typename T>
double largest_of(const T* image, int64_t width, std::span<const Reading> rows,
                  std::span<const Reading> columns, double most) {
  for (const Reading& y : rows)
    for (const Reading& x : columns)
      for (size_t i = 0; i < 4; ++i) {
        const T pixel = image[y.at[i / 2] * width + x.at[i % 2]];
        most = std::max(most, y.weight[i / 2] * x.weight[i % 2] * static_cast<double>(pixel));
      }
  return most;
}

struct Region {
  Axis rows, columns;
  int64_t width;  // of the image
  const Ints& size;
  bool largest;  // else the mean
};

// One channel of one region.
template <typename T>
void pool_region(const T* image, const Region& region, T* to) {
  const auto& [rows, columns, width, size, largest] = region;
  const int64_t cells = rows.cells * columns.cells;
  const auto count = static_cast<double>(std::max<int64_t>(cells, 1));
  for (int64_t i = 0; i < size[0]; ++i)
    for (int64_t j = 0; j < size[1]; ++j) {
      const std::span<const Reading> y = rows.bin(i), x = columns.bin(j);
      const bool all = cells > 0 && y.size() * x.size() == static_cast<size_t>(cells);
      const double least = all ? -std::numeric_limits<double>::infinity() : 0;
      *to++ = static_cast<T>(largest ? largest_of(image, width, y, x, least)
                                     : sum_of(image, width, y, x) / count);
    }
}

Status run_roi_align(std::span<const Tensor> inputs, const Attrs& attrs,
                     std::span<Tensor> outputs) {
  const Tensor &data = inputs[0], &rois = inputs[1];
  const Tensor batches = TRY(read_indices(inputs[2], data.shape()[0]));
  if (outputs[0].size() == 0) return {};
  const Ints& size = attrs.ints("pooled_size");
  const bool largest = attrs.string("mode") == "max";
  const int64_t channels = data.shape()[1], height = data.shape()[2], width = data.shape()[3];
  return dispatch_float(data.dtype(), [&]<typename T>(Tag<T>) -> Status {
    for (int64_t region = 0; region < batches.size(); ++region) {
      const T* corners = rois.data<T>() + 4 * region;
      auto corner = [&](size_t i) { return static_cast<double>(corners[i]); };
      const Region pooled{TRY(axis_of(corner(1), corner(3), attrs, size[0], height)),
                          TRY(axis_of(corner(0), corner(2), attrs, size[1], width)), width, size,
                          largest};
      const T* image = data.data<T>() + batches.data<int64_t>()[region] * channels * height * width;
      T* to = outputs[0].data<T>() + region * channels * size[0] * size[1];
#pragma omp parallel for schedule(static)
      for (int64_t channel = 0; channel < channels; ++channel)
        pool_region(image + channel * height * width, pooled, to + channel * size[0] * size[1]);
    }
    return {};
  });
}

// Four products a sample; where the number of samples depends on the regions, four samples a bin.
double roi_align_work(Types, const Attrs& attrs, const Type& result) {
  const auto ratio = static_cast<double>(attrs.integer("sample_ratio"));
  return 4 * (ratio > 0 ? ratio * ratio : 4) *
         static_cast<double>(num_elements(result.tensor().shape));
}

}  // namespace

void register_roi_ops() {
  register_op(make_op("vision.roi_align", 3,
                      {{"pooled_size", Ints{}, true},
                       {"spatial_scale", 1.0},
                       {"sample_ratio", int64_t{0}},
                       {"mode", std::string("avg")},
                       {"half_pixel", false}},
                      FusionKind::kOpaque, infer_roi_align, with_halves(run_roi_align),
                      roi_align_work));
}

}  // namespace collage
