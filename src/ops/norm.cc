// Normalisations, all computed in double: nn.layer_norm and nn.rms_norm over the trailing axes,
// nn.instance_norm and nn.group_norm over each channel (group), nn.batch_norm with given
// statistics, nn.lrn across channels, nn.l2_normalize over axes.
#include <algorithm>
#include <cmath>

#include "ops/families.h"
#include "ops/reduce.h"

namespace collage {

namespace {

// The first argument of an operator whose attribute `epsilon` keeps it from dividing by zero.
Result<TensorType> normalised_arg(Types args, const Attrs& attrs,
                                  std::string_view epsilon = "epsilon") {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_float(data, "data"));
  if (attrs.real(epsilon) >= 0) return data;
  return bad_model("{} {} is negative", epsilon, attrs.real(epsilon));
}

// The arguments after data must have its dtype and that shape.
Status check_other_args(Types args, const TensorType& data, const Shape& shape) {
  for (size_t i = 1; i < args.size(); ++i) {
    TensorType arg = TRY(tensor_arg(args, i));
    TRY(require_same_dtype(data, arg));
    TRY(require_shape(arg, shape, fmt::format("argument {}", i)));
  }
  return {};
}

// layer_norm, rms_norm: the arguments after data have the shape of its dimensions from axis on.
Result<Type> infer_trailing(Types args, const Attrs& attrs) {
  TensorType data = TRY(normalised_arg(args, attrs));
  int64_t axis = TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  TRY(check_other_args(args, data, {data.shape.begin() + axis, data.shape.end()}));
  return Type(data);
}

// y = (x - mean) / sqrt(variance + epsilon) over the elements of x. scale(i), shift(i) by position.
template <typename T, typename Scale, typename Shift>
void normalise_row(std::span<const T> x, T* y, double epsilon, bool centre, Scale scale,
                   Shift shift) {
  const auto count = static_cast<int64_t>(x.size());
  double mean = 0, square = 0;
  if (centre) {
    for (int64_t i = 0; i < count; ++i) mean += static_cast<double>(x[static_cast<size_t>(i)]);
    mean /= static_cast<double>(count);
  }
  for (int64_t i = 0; i < count; ++i) {
    const double d = static_cast<double>(x[static_cast<size_t>(i)]) - mean;
    square += d * d;
  }
  const double factor = 1.0 / std::sqrt(square / static_cast<double>(count) + epsilon);
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<T>(
        (static_cast<double>(x[static_cast<size_t>(i)]) - mean) * factor * scale(i) + shift(i));
}

Status run_trailing(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  const int64_t axis = normal_axis(attrs.integer("axis"), in.rank());
  const int64_t rows = extent_product(in.shape(), 0, axis);
  const int64_t count = extent_product(in.shape(), axis, in.rank());
  const double epsilon = attrs.real("epsilon");
  const bool layer = inputs.size() == 3;  // else rms_norm
  dispatch_float(in.dtype(), [&]<typename T>(Tag<T>) {
    const T* gamma = inputs[1].data<T>();
    const T* beta = layer ? inputs[2].data<T>() : nullptr;
#pragma omp parallel for schedule(static) if (in.size() > 4096)
    for (int64_t row = 0; row < rows; ++row)
      normalise_row<T>(
          {in.data<T>() + row * count, static_cast<size_t>(count)},
          outputs[0].data<T>() + row * count, epsilon, layer,
          [&](int64_t i) { return static_cast<double>(gamma[i]); },
          [&](int64_t i) { return layer ? static_cast<double>(beta[i]) : 0.0; });
  });
  return {};
}

Result<Type> infer_channelwise(Types args, const Attrs& attrs) {
  TensorType data = TRY(normalised_arg(args, attrs));
  int64_t axis = TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  TRY(check_other_args(args, data, {data.shape[static_cast<size_t>(axis)]}));
  if (attrs.has("num_groups")) {
    int64_t groups = attrs.integer("num_groups");
    if (groups < 1 || data.shape[static_cast<size_t>(axis)] % groups != 0)
      return bad_model("{} channels do not divide into {} groups",
                       data.shape[static_cast<size_t>(axis)], groups);
  }
  if (axis != 1) return bad_model("axis {} is not supported: channels must be axis 1", axis);
  return Type(data);
}

// instance_norm is group_norm with as many groups as channels.
Status run_group_norm(std::span<const Tensor> inputs, const Attrs& attrs,
                      std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (in.size() == 0) return {};
  const int64_t channels = in.shape()[1];
  const int64_t groups = attrs.has("num_groups") ? attrs.integer("num_groups") : channels;
  const int64_t pixels = extent_product(in.shape(), 2, in.rank());
  const int64_t per_group = channels / groups, count = per_group * pixels;
  const double epsilon = attrs.real("epsilon");
  dispatch_float(in.dtype(), [&]<typename T>(Tag<T>) {
    const T* gamma = inputs[1].data<T>();
    const T* beta = inputs[2].data<T>();
#pragma omp parallel for schedule(static) if (in.size() > 4096)
    for (int64_t row = 0; row < in.shape()[0] * groups; ++row) {
      const int64_t first = row % groups * per_group;
      normalise_row<T>(
          {in.data<T>() + row * count, static_cast<size_t>(count)},
          outputs[0].data<T>() + row * count, epsilon, true,
          [&](int64_t i) { return static_cast<double>(gamma[first + i / pixels]); },
          [&](int64_t i) { return static_cast<double>(beta[first + i / pixels]); });
    }
  });
  return {};
}

Result<Type> infer_batch_norm(Types args, const Attrs& attrs) {
  TensorType data = TRY(normalised_arg(args, attrs));
  int64_t axis = TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  TRY(check_other_args(args, data, {data.shape[static_cast<size_t>(axis)]}));
  Type channel(TensorType{{data.shape[static_cast<size_t>(axis)]}, data.dtype});
  return Type::tuple({Type(data), channel, channel});
}

Status run_batch_norm(std::span<const Tensor> inputs, const Attrs& attrs,
                      std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  const int64_t axis = normal_axis(attrs.integer("axis"), in.rank());
  const int64_t channels = in.shape()[static_cast<size_t>(axis)];
  const int64_t pixels = extent_product(in.shape(), axis + 1, in.rank());
  const double epsilon = attrs.real("epsilon");
  dispatch_float(in.dtype(), [&]<typename T>(Tag<T>) {
    const T *gamma = inputs[1].data<T>(), *beta = inputs[2].data<T>();
    const T *mean = inputs[3].data<T>(), *variance = inputs[4].data<T>();
    std::copy(mean, mean + channels, outputs[1].data<T>());
    std::copy(variance, variance + channels, outputs[2].data<T>());
    const int64_t rows = in.size() == 0 ? 0 : in.size() / pixels;
#pragma omp parallel for schedule(static) if (in.size() > 4096)
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t c = row % channels;
      const double factor =
          static_cast<double>(gamma[c]) / std::sqrt(static_cast<double>(variance[c]) + epsilon);
      const auto m = static_cast<double>(mean[c]), b = static_cast<double>(beta[c]);
      const T* x = in.data<T>() + row * pixels;
      T* y = outputs[0].data<T>() + row * pixels;
      for (int64_t i = 0; i < pixels; ++i)
        y[i] = static_cast<T>((static_cast<double>(x[i]) - m) * factor + b);
    }
  });
  return {};
}

Result<Type> infer_lrn(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_float(data, "data"));
  TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  if (attrs.integer("size") < 1) return bad_model("size {} is not positive", attrs.integer("size"));
  return Type(data);
}

Status run_lrn(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (in.size() == 0) return {};
  const int64_t axis = normal_axis(attrs.integer("axis"), in.rank());
  const int64_t channels = in.shape()[static_cast<size_t>(axis)];
  const int64_t pixels = extent_product(in.shape(), axis + 1, in.rank());
  const int64_t size = attrs.integer("size"), before = (size - 1) / 2, after = size / 2;
  const double bias = attrs.real("bias"), beta = attrs.real("beta");
  const double alpha = attrs.real("alpha") / static_cast<double>(size);
  dispatch_float(in.dtype(), [&]<typename T>(Tag<T>) {
#pragma omp parallel for schedule(static) if (in.size() > 4096)
    for (int64_t row = 0; row < in.size() / pixels; ++row) {
      const int64_t c = row % channels;
      const int64_t first = c - std::min(c, before), last = c + std::min(channels - 1 - c, after);
      const T* image = in.data<T>() + (row - c) * pixels;
      T* y = outputs[0].data<T>() + row * pixels;
      for (int64_t i = 0; i < pixels; ++i) {
        double squares = 0;
        for (int64_t k = first; k <= last; ++k) {
          const auto x = static_cast<double>(image[k * pixels + i]);
          squares += x * x;
        }
        y[i] = static_cast<T>(static_cast<double>(image[c * pixels + i]) /
                              std::pow(bias + alpha * squares, beta));
      }
    }
  });
  return {};
}

Result<Type> infer_l2_normalize(Types args, const Attrs& attrs) {
  TensorType data = TRY(normalised_arg(args, attrs, "eps"));
  TRY(checked_axes(attrs.ints("axis"), static_cast<int64_t>(data.shape.size())));
  return Type(data);
}

Status run_l2_normalize(std::span<const Tensor> inputs, const Attrs& attrs,
                        std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (in.size() == 0) return {};
  const double eps = attrs.real("eps");
  const ReductionView view =
      reduction_view(in.shape(), TRY(checked_axes(attrs.ints("axis"), in.rank())));
  const int64_t count = num_elements(view.reduced);
  dispatch_float(in.dtype(), [&]<typename T>(Tag<T>) {
#pragma omp parallel for schedule(static) if (in.size() > 4096)
    for (int64_t row = 0; row < in.size() / count; ++row) {
      const int64_t base = strided_offset(row, view.kept, view.kept_strides);
      double squares = 0;
      auto at = [&](int64_t i) {
        return base + strided_offset(i, view.reduced, view.reduced_strides);
      };
      for (int64_t i = 0; i < count; ++i) {
        const auto x = static_cast<double>(in.data<T>()[at(i)]);
        squares += x * x;
      }
      const double length = std::sqrt(std::max(squares, eps));
      for (int64_t i = 0; i < count; ++i)
        outputs[0].data<T>()[at(i)] =
            static_cast<T>(static_cast<double>(in.data<T>()[at(i)]) / length);
    }
  });
  return {};
}

void norm(std::string name, int args, std::vector<AttrSpec> attrs, TypeRule infer_type,
          ReferenceKernel kernel, FusionKind kind = FusionKind::kAnchor) {
  register_op(make_op(std::move(name), args, std::move(attrs), kind, std::move(infer_type),
                      with_halves(std::move(kernel)), work_per_element(0, 8)));
}

}  // namespace

void register_norm_ops() {
  norm("nn.layer_norm", 3, {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}, infer_trailing,
       run_trailing);
  norm("nn.rms_norm", 2, {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}, infer_trailing, run_trailing);
  norm("nn.instance_norm", 3, {{"axis", int64_t{1}}, {"epsilon", 1e-5}}, infer_channelwise,
       run_group_norm);
  norm("nn.group_norm", 3,
       {{"num_groups", int64_t{1}, true}, {"axis", int64_t{1}}, {"epsilon", 1e-5}},
       infer_channelwise, run_group_norm);
  norm("nn.batch_norm", 5, {{"axis", int64_t{1}}, {"epsilon", 1e-5}}, infer_batch_norm,
       run_batch_norm, FusionKind::kOpaque);
  norm("nn.lrn", 1,
       {{"size", int64_t{5}}, {"axis", int64_t{1}}, {"bias", 2.0}, {"alpha", 1e-5}, {"beta", 0.75}},
       infer_lrn, run_lrn);
  norm("nn.l2_normalize", 1, {{"eps", 1e-12, true}, {"axis", Ints{}, true}}, infer_l2_normalize,
       run_l2_normalize);
}

}  // namespace collage
