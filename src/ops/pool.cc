// Pooling over 1 to 3 spatial dimensions: nn.max_pool…d, nn.avg_pool…d and their global forms,
// which keep unit spatial extents. A window that lies wholly in the padding gives the least value
// (max) or 0 (average).
#include <array>
#include <limits>

#include "ops/families.h"
#include "ops/window.h"

namespace collage {

namespace {

Result<TensorType> pooled_arg(Types args, size_t spatial, bool average) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_rank(data, static_cast<int64_t>(spatial) + 2, "data"));
  TRY(average ? require_float(data, "data") : require_number(data, "data"));
  return data;
}

Result<Type> infer_pool(Types args, const Attrs& attrs, size_t spatial, bool average) {
  TensorType data = TRY(pooled_arg(args, spatial, average));
  const Ints& size = attrs.ints("pool_size");
  if (size.size() != spatial)
    return bad_model("pool_size has {} entries, not {}", size.size(), spatial);
  Window window = TRY(make_window(attrs, size));
  Shape shape = {data.shape[0], data.shape[1]};
  for (size_t d = 0; d < spatial; ++d)
    shape.push_back(TRY(window_positions(window, d, data.shape[d + 2], attrs.flag("ceil_mode"))));
  return tensor_result(std::move(shape), data.dtype);
}

// The part of a window that lies inside the input along one axis, and its length where padding
// counts too (but not what ceil_mode adds beyond the padding).
struct Taps {
  int64_t first = 0, count = 0, with_padding = 0;  // first: input position
};

Taps taps_at(const Window& w, size_t d, int64_t extent, int64_t position) {
  const int64_t start = position * w.strides[d] - w.pad_begin[d], step = w.dilation[d];
  auto below = [&](int64_t limit) {  // how many of the taps start + i * step are < limit
    if (start >= limit) return int64_t{0};
    return std::min(w.kernel[d], (limit - start - 1) / step + 1);
  };
  const int64_t skipped = below(0);
  return {start + skipped * step, below(extent) - skipped, below(extent + w.pad_end[d])};
}

template <typename T>
void run_pool(const Tensor& in, Tensor& out, const Window& window, bool average, bool include_pad) {
  const size_t skip = 3 - window.rank();
  std::array<int64_t, 3> input = {1, 1, 1}, output = {1, 1, 1}, step = {1, 1, 1};
  std::array<std::vector<Taps>, 3> taps;
  for (size_t d = 0; d < 3; ++d) {
    if (d >= skip) {
      input[d] = in.shape()[d - skip + 2];
      output[d] = out.shape()[d - skip + 2];
      step[d] = window.dilation[d - skip];
    }
    for (int64_t i = 0; i < output[d]; ++i)
      taps[d].push_back(d < skip ? Taps{0, 1, 1} : taps_at(window, d - skip, input[d], i));
  }
  const int64_t planes = in.shape()[0] * in.shape()[1];
  const int64_t in_plane = input[0] * input[1] * input[2];
  const int64_t out_plane = output[0] * output[1] * output[2];
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < planes * output[0] * output[1]; ++task) {
    const int64_t plane = task / (output[0] * output[1]);
    const int64_t row = task % (output[0] * output[1]);
    const Taps& td = taps[0][static_cast<size_t>(row / output[1])];
    const Taps& th = taps[1][static_cast<size_t>(row % output[1])];
    const T* x = in.data<T>() + plane * in_plane;
    T* y = out.data<T>() + plane * out_plane + row * output[2];
    for (int64_t ow = 0; ow < output[2]; ++ow) {
      const Taps& tw = taps[2][static_cast<size_t>(ow)];
      double sum = 0;
      T best = std::numeric_limits<T>::lowest();
      if constexpr (std::is_floating_point_v<T>) best = -std::numeric_limits<T>::infinity();
      for (int64_t d = 0; d < td.count; ++d)
        for (int64_t h = 0; h < th.count; ++h) {
          const T* line =
              x + ((td.first + d * step[0]) * input[1] + th.first + h * step[1]) * input[2] +
              tw.first;
          for (int64_t w = 0; w < tw.count; ++w) {
            const T value = line[w * step[2]];
            if (average)
              sum += static_cast<double>(value);
            else if (value > best || value != value)
              best = value;
          }
        }
      const int64_t count = include_pad ? td.with_padding * th.with_padding * tw.with_padding
                                        : td.count * th.count * tw.count;
      if (!average)
        y[ow] = best;
      else
        y[ow] = count == 0 ? T{0} : static_cast<T>(sum / static_cast<double>(count));
    }
  }
}

OpDef pool_op(size_t spatial, bool average) {
  OpDef op;
  op.name = spatial_name(average ? "nn.avg_pool" : "nn.max_pool", spatial);
  op.attrs = {{"pool_size", Ints{}, true},
              {"strides", Ints(spatial, 1)},
              {"dilation", Ints(spatial, 1)},
              {"padding", Ints(2 * spatial, 0)},
              {"ceil_mode", false}};
  if (average) op.attrs.push_back({"count_include_pad", false});
  op.kind = FusionKind::kAnchor;
  op.infer_type = [=](Types args, const Attrs& attrs) {
    return infer_pool(args, attrs, spatial, average);
  };
  op.reference = with_halves([average](std::span<const Tensor> inputs, const Attrs& attrs,
                                       std::span<Tensor> outputs) -> Status {
    if (outputs[0].size() == 0) return {};
    const Window window = known_window(attrs, attrs.ints("pool_size"));
    const bool include_pad = average && attrs.flag("count_include_pad");
    dispatch_number(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
      run_pool<T>(inputs[0], outputs[0], window, average, include_pad);
    });
    return {};
  });
  op.flops = [](Types, const Attrs& attrs, const Type& result) {
    double taps = 1;
    for (int64_t extent : attrs.ints("pool_size")) taps *= static_cast<double>(extent);
    return taps * static_cast<double>(num_elements(result.tensor().shape));
  };
  return op;
}

OpDef global_pool_op(size_t spatial, bool average) {
  OpDef op;
  op.name = spatial_name(average ? "nn.global_avg_pool" : "nn.global_max_pool", spatial);
  op.kind = FusionKind::kAnchor;
  op.infer_type = [=](Types args, const Attrs&) -> Result<Type> {
    TensorType data = TRY(pooled_arg(args, spatial, average));
    for (size_t d = 2; d < data.shape.size(); ++d) {
      if (data.shape[d] == 0) return bad_model("data {} is empty", shape_to_string(data.shape));
      data.shape[d] = 1;
    }
    return Type(data);
  };
  op.reference = with_halves([average](std::span<const Tensor> inputs, const Attrs&,
                                       std::span<Tensor> outputs) -> Status {
    if (outputs[0].size() == 0) return {};
    const Shape& shape = inputs[0].shape();
    Ints kernel(shape.begin() + 2, shape.end()), ones(kernel.size(), 1), zeros(kernel.size(), 0);
    dispatch_number(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
      run_pool<T>(inputs[0], outputs[0], {kernel, ones, ones, zeros, zeros}, average, false);
    });
    return {};
  });
  op.flops = work_per_element(0);
  return op;
}

}  // namespace

void register_pool_ops() {
  for (size_t spatial = 1; spatial <= 3; ++spatial)
    for (bool average : {false, true}) {
      register_op(pool_op(spatial, average));
      register_op(global_pool_op(spatial, average));
    }
}

}  // namespace collage
