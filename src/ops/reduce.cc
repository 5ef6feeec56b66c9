// Reductions over axes: sum, mean, max, min, prod, all, any, argmax, argmin. Floats accumulate in
// double, integers wrap in 64 bits. Over nothing: 0 for sum, 1 for prod, NaN for a mean of floats,
// the type's least (greatest) value for max (min).
#include "ops/reduce.h"

#include <algorithm>
#include <array>
#include <limits>

#include "ops/families.h"
#include "ops/strided.h"

namespace collage {

Result<Ints> reduced_axes(const Attrs& attrs, int64_t rank) {
  std::optional<Ints> given = TRY(optional_ints(attrs, "axis"));
  Ints all;
  for (int64_t i = 0; i < rank; ++i) all.push_back(i);
  if (!given) return all;
  Ints axes = TRY(checked_axes(*given, rank));
  if (!attrs.flag("exclude")) return axes;
  Ints others;
  std::set_difference(all.begin(), all.end(), axes.begin(), axes.end(), std::back_inserter(others));
  return others;
}

ReductionView reduction_view(const Shape& shape, const Ints& axes) {
  ReductionView view;
  Ints strides = dense_strides(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    Shape& extents = reduced ? view.reduced : view.kept;
    Ints& steps = reduced ? view.reduced_strides : view.kept_strides;
    if (!extents.empty() && shape[i] > 0 && steps.back() == strides[i] * shape[i]) {
      extents.back() *= shape[i];
      steps.back() = strides[i];
    } else {
      extents.push_back(shape[i]);
      steps.push_back(strides[i]);
    }
  }
  return view;
}

namespace {

Shape reduced_shape(const Shape& shape, const Ints& axes, bool keepdims) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!reduced)
      result.push_back(shape[i]);
    else if (keepdims)
      result.push_back(1);
  }
  return result;
}

Result<Type> infer_reduction(Types args, const Attrs& attrs, bool on_bool) {
  TensorType data = TRY(tensor_arg(args, 0));
  if (on_bool != (data.dtype == DType::kBool))
    return bad_model("is not defined for {}", dtype_name(data.dtype));
  Ints axes = TRY(reduced_axes(attrs, static_cast<int64_t>(data.shape.size())));
  return tensor_result(reduced_shape(data.shape, axes, attrs.flag("keepdims")), data.dtype);
}

// finish(state after step(state, element) over the reduced elements, their count)
template <typename T, typename State, typename Step, typename Finish>
void reduce(const Tensor& in, Tensor& out, const Ints& axes, State initial, Step step,
            Finish finish) {
  const ReductionView view = reduction_view(in.shape(), axes);
  const int64_t count = num_elements(view.reduced), results = out.size();
  const int64_t inner = view.reduced.empty() ? 1 : view.reduced.back();
  const int64_t inner_stride = view.reduced.empty() ? 0 : view.reduced_strides.back();
  Shape outer = view.reduced;
  if (!outer.empty()) outer.pop_back();
  const T* x = in.data<T>();
  T* y = out.data<T>();
#pragma omp parallel for schedule(static) if (count * results > 8192)
  for (int64_t i = 0; i < results; ++i) {
    const int64_t base = strided_offset(i, view.kept, view.kept_strides);
    State state = initial;
    for (int64_t row = 0; inner > 0 && row < count / inner; ++row) {
      const T* from = x + base + strided_offset(row, outer, view.reduced_strides);
      for (int64_t j = 0; j < inner; ++j) step(state, from[j * inner_stride]);
    }
    y[i] = static_cast<T>(finish(state, count));
  }
}

enum class Reduction { kSum, kMean, kProd, kMax, kMin };

Status run_reduction(Reduction kind, std::span<const Tensor> inputs, const Attrs& attrs,
                     std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  Tensor& out = outputs[0];
  const Ints axes = TRY(reduced_axes(attrs, in.rank()));
  if (kind == Reduction::kMean && is_integer(in.dtype()) && in.size() == 0 && out.size() > 0)
    return bad_model("mean of no integers");
  dispatch_number(in.dtype(), [&]<typename T>(Tag<T>) {
    using Sum = Accumulator<T>;
    using Limits = std::numeric_limits<T>;
    auto same = [](auto state, int64_t) { return state; };
    auto add = [](Sum& sum, T x) { sum += static_cast<Sum>(x); };
    constexpr bool kIsFloat = std::is_floating_point_v<T>;
    constexpr T kGreatest = kIsFloat ? Limits::infinity() : Limits::max();
    constexpr T kLeast = kIsFloat ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
    switch (kind) {
      case Reduction::kSum:
        return reduce<T>(in, out, axes, Sum{0}, add, same);
      case Reduction::kMean:
        return reduce<T>(in, out, axes, Sum{0}, add, [](Sum sum, int64_t count) {
          if constexpr (kIsFloat)
            return sum / static_cast<double>(count);
          else if constexpr (std::is_signed_v<T>)
            return static_cast<int64_t>(sum) / count;
          else
            return sum / static_cast<uint64_t>(count);
        });
      case Reduction::kProd:
        return reduce<T>(
            in, out, axes, Sum{1}, [](Sum& product, T x) { product *= static_cast<Sum>(x); }, same);
      case Reduction::kMax:
        return reduce<T>(
            in, out, axes, kLeast, [](T& best, T x) { best = x > best || x != x ? x : best; },
            same);
      case Reduction::kMin:
        return reduce<T>(
            in, out, axes, kGreatest, [](T& best, T x) { best = x < best || x != x ? x : best; },
            same);
    }
  });
  return {};
}

void register_reduction(std::string name, bool on_bool, ReferenceKernel kernel) {
  const auto infer = [on_bool](Types args, const Attrs& attrs) {
    return infer_reduction(args, attrs, on_bool);
  };
  register_op(
      make_op(std::move(name), 1, {{"axis", None{}}, {"keepdims", false}, {"exclude", false}},
              FusionKind::kReduction, infer, with_halves(std::move(kernel)), work_per_element(0)));
}

void register_bool_reduction(std::string name, bool is_all) {
  register_reduction(std::move(name), true,
                     [is_all](std::span<const Tensor> inputs, const Attrs& attrs,
                              std::span<Tensor> outputs) -> Status {
                       reduce<uint8_t>(
                           inputs[0], outputs[0], TRY(reduced_axes(attrs, inputs[0].rank())),
                           is_all,
                           [is_all](bool& state, uint8_t x) {
                             state = is_all ? state && x != 0 : state || x != 0;
                           },
                           [](bool state, int64_t) { return state; });
                       return {};
                     });
}

Result<Type> infer_arg_reduction(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_number(data, "data"));
  int64_t axis = TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  if (data.shape[static_cast<size_t>(axis)] == 0)
    return bad_model("axis {} of {} is empty", axis, shape_to_string(data.shape));
  return tensor_result(reduced_shape(data.shape, {axis}, attrs.flag("keepdims")), DType::kInt64);
}

Status run_arg_reduction(bool largest, std::span<const Tensor> inputs, const Attrs& attrs,
                         std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  const int64_t axis = normal_axis(attrs.integer("axis"), in.rank());
  const bool last = attrs.flag("select_last_index");
  const int64_t extent = in.shape()[static_cast<size_t>(axis)];
  const int64_t stride = extent_product(in.shape(), axis + 1, in.rank());
  if (outputs[0].size() == 0) return {};
  constexpr int64_t kTogether = 64;  // results beside one another, which share cache lines
  const int64_t parts = (stride + kTogether - 1) / kTogether;
  int64_t* y = outputs[0].data<int64_t>();
  dispatch_number(in.dtype(), [&]<typename T>(Tag<T>) {
#pragma omp parallel for schedule(static) if (in.size() > 8192)
    for (int64_t task = 0; task < outputs[0].size() / stride * parts; ++task) {
      const int64_t outer = task / parts, first = task % parts * kTogether;
      const int64_t count = std::min(kTogether, stride - first);
      const T* rows = in.data<T>() + outer * stride * extent + first;
      int64_t* best = y + outer * stride + first;
      std::array<T, kTogether> most;
      std::copy_n(rows, count, most.begin());
      std::fill_n(best, count, int64_t{0});
      for (int64_t j = 1; j < extent; ++j)
        for (int64_t i = 0; i < count; ++i) {
          const T a = rows[j * stride + i];
          T& b = most[static_cast<size_t>(i)];
          if (b != b && !(last && a != a))
            continue;  // a NaN wins, the last where that is asked for
          const bool better = largest ? a > b : a < b;
          if (!better && a == a && !(last && a == b)) continue;
          b = a;
          best[i] = j;
        }
    }
  });
  return {};
}

void register_arg_reduction(std::string name, bool largest) {
  const auto run = [largest](std::span<const Tensor> inputs, const Attrs& attrs,
                             std::span<Tensor> outputs) {
    return run_arg_reduction(largest, inputs, attrs, outputs);
  };
  register_op(make_op(
      std::move(name), 1, {{"axis", int64_t{0}}, {"keepdims", false}, {"select_last_index", false}},
      FusionKind::kReduction, infer_arg_reduction, with_halves(run), work_per_element(0)));
}

}  // namespace

void register_reduce_ops() {
  for (auto [name, kind] : {std::pair{"sum", Reduction::kSum},
                            {"mean", Reduction::kMean},
                            {"prod", Reduction::kProd},
                            {"max", Reduction::kMax},
                            {"min", Reduction::kMin}})
    register_reduction(name, false,
                       [kind = kind](std::span<const Tensor> inputs, const Attrs& attrs,
                                     std::span<Tensor> outputs) {
                         return run_reduction(kind, inputs, attrs, outputs);
                       });
  register_bool_reduction("all", true);
  register_bool_reduction("any", false);
  register_arg_reduction("argmax", true);
  register_arg_reduction("argmin", false);
}

}  // namespace collage
