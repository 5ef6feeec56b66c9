// nn.pad: extends (or, by negative widths, crops) each dimension, with a value or with the tensor's
// own elements.
#include <algorithm>

#include "ops/families.h"
#include "ops/rearrange.h"
#include "ops/strided.h"

namespace collage {

Ints pad_sources(int64_t extent, int64_t before, int64_t after, const std::string& mode) {
  Ints sources(static_cast<size_t>(extent + before + after));
  const int64_t period = std::max<int64_t>(1, 2 * (extent - 1));
  for (size_t i = 0; i < sources.size(); ++i) {
    int64_t at = static_cast<int64_t>(i) - before;
    if (mode == "edge") {
      at = std::clamp<int64_t>(at, 0, extent - 1);
    } else if (mode == "wrap") {
      at = (at % extent + extent) % extent;
    } else if (mode == "reflect") {
      at = (at % period + period) % period;
      if (at >= extent) at = period - at;
    } else if (at < 0 || at >= extent) {
      at = -1;
    }
    sources[i] = at;
  }
  return sources;
}

namespace {

Result<Type> infer_pad(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), value = TRY(tensor_arg(args, 1));
  TRY(require_same_dtype(data, value));
  if (num_elements(value.shape) != 1)
    return bad_model("the pad value has shape {}", shape_to_string(value.shape));
  const std::string& mode = attrs.string("pad_mode");
  TRY(require_one_of(mode, {"constant", "edge", "reflect", "wrap"}, "pad_mode"));
  const IntLists& widths = attrs.int_lists("pad_width");
  if (widths.size() != data.shape.size())
    return bad_model("{} pad widths for rank {}", widths.size(), data.shape.size());
  Shape shape = data.shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (widths[d].size() != 2) return bad_model("a pad width must have two entries");
    for (int64_t width : widths[d]) shape[d] = TRY(checked_add(shape[d], width, "padding"));
    if (shape[d] < 0)
      return bad_model("pad widths {} and {} remove more than extent {}", widths[d][0],
                       widths[d][1], data.shape[d]);
    if (mode != "constant" && data.shape[d] == 0 && shape[d] > 0)
      return bad_model("pad_mode {} needs elements on axis {}", mode, d);
  }
  return tensor_result(std::move(shape), data.dtype);
}

Status run_pad(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  Tensor& out = outputs[0];
  if (out.size() == 0) return {};
  const IntLists& widths = attrs.int_lists("pad_width");
  const Ints strides = dense_strides(in.shape());
  std::vector<Ints> sources;  // per dimension: element offset or -1
  for (size_t d = 0; d < strides.size(); ++d) {
    sources.push_back(
        pad_sources(in.shape()[d], widths[d][0], widths[d][1], attrs.string("pad_mode")));
    for (int64_t& at : sources.back()) at = at < 0 ? -1 : at * strides[d];
  }
  const size_t rank = strides.size();
  const int64_t width = rank == 0 ? 1 : out.shape().back(), rows = out.size() / width;
  dispatch_size(dtype_size(out.dtype()), [&]<typename T>(Tag<T>) {
    const T value = inputs[1].data<T>()[0];
    const T* x = in.data<T>();
#pragma omp parallel for schedule(static) if (out.size() > 8192)
    for (int64_t row = 0; row < rows; ++row) {
      T* y = out.data<T>() + row * width;
      int64_t base = 0, rest = row;
      for (size_t d = rank; d-- > 1;) {
        const int64_t at = sources[d - 1][static_cast<size_t>(rest % out.shape()[d - 1])];
        rest /= out.shape()[d - 1];
        base = at < 0 || base < 0 ? -1 : base + at;
      }
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = rank == 0 ? 0 : sources[rank - 1][static_cast<size_t>(i)];
        y[i] = base < 0 || at < 0 ? value : x[base + at];
      }
    }
  });
  return {};
}

}  // namespace

void register_pad_ops() {
  register_injective("nn.pad",
                     {{"pad_width", IntLists{}, true}, {"pad_mode", std::string("constant")}},
                     infer_pad, run_pad, 2);
}

}  // namespace collage
