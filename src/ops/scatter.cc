// Writing by index: scatter_elements (ONNX ScatterElements) and scatter_nd (ONNX ScatterND). The
// result is data with updates written, or combined, at the indices, in order. Negative indices
// count from the end; one out of range is an error at run time.
#include <algorithm>
#include <cstring>

#include "ops/families.h"
#include "ops/indices.h"
#include "ops/reduce.h"
#include "ops/strided.h"

namespace collage {

namespace {

enum class Combine { kUpdate, kAdd, kMultiply, kMin, kMax };

Combine combine_of(const std::string& name) {
  if (name == "add") return Combine::kAdd;
  if (name == "mul") return Combine::kMultiply;
  if (name == "min") return Combine::kMin;
  if (name == "max") return Combine::kMax;
  return Combine::kUpdate;
}

template <Combine how, typename T>
T combine(T old, T update) {
  if constexpr (how == Combine::kAdd && std::is_integral_v<T>) return wrap_add(old, update);
  if constexpr (how == Combine::kAdd) return old + update;
  if constexpr (how == Combine::kMultiply && std::is_integral_v<T>)
    return wrap_multiply(old, update);
  if constexpr (how == Combine::kMultiply) return old * update;
  if constexpr (how == Combine::kMin) return update < old || update != update ? update : old;
  if constexpr (how == Combine::kMax) return update > old || update != update ? update : old;
  return update;
}

// Calls f(a function that combines an old value and an update), compiled for each.
template <typename T, typename F>
void with_combine(Combine how, const F& f) {
  switch (how) {
    case Combine::kUpdate:
      return f([](T a, T b) { return combine<Combine::kUpdate>(a, b); });
    case Combine::kAdd:
      return f([](T a, T b) { return combine<Combine::kAdd>(a, b); });
    case Combine::kMultiply:
      return f([](T a, T b) { return combine<Combine::kMultiply>(a, b); });
    case Combine::kMin:
      return f([](T a, T b) { return combine<Combine::kMin>(a, b); });
    case Combine::kMax:
      return f([](T a, T b) { return combine<Combine::kMax>(a, b); });
  }
}

void copy_data(const Tensor& from, Tensor& to) {
  constexpr size_t kPart = 1 << 18;
  const auto parts = static_cast<int64_t>((from.bytes() + kPart - 1) / kPart);
#pragma omp parallel for schedule(static) if (parts > 1)
  for (int64_t part = 0; part < parts; ++part) {
    const size_t at = static_cast<size_t>(part) * kPart;
    std::memcpy(static_cast<char*>(to.raw()) + at, static_cast<const char*>(from.raw()) + at,
                std::min(kPart, from.bytes() - at));
  }
}

Status check_reduction(const TensorType& data, const std::string& reduction) {
  TRY(require_one_of(reduction, {"update", "none", "add", "mul", "min", "max"}, "reduction"));
  if (combine_of(reduction) != Combine::kUpdate) TRY(require_number(data, "data"));
  return {};
}

Result<Type> infer_scatter_elements(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), indices = TRY(tensor_arg(args, 1));
  TensorType updates = TRY(tensor_arg(args, 2));
  TRY(require_integer(indices, "indices"));
  TRY(require_same_dtype(data, updates));
  TRY(require_shape(updates, indices.shape, "updates"));
  TRY(check_reduction(data, attrs.string("reduction")));
  auto rank = static_cast<int64_t>(data.shape.size());
  TRY(require_rank(indices, rank, "indices"));
  auto axis = static_cast<size_t>(TRY(checked_axis(attrs.integer("axis"), rank)));
  for (size_t d = 0; d < data.shape.size(); ++d)
    if (d != axis && indices.shape[d] > data.shape[d])
      return bad_model("indices {} reach beyond data {}", shape_to_string(indices.shape),
                       shape_to_string(data.shape));
  return Type(data);
}

Status run_scatter_elements(std::span<const Tensor> inputs, const Attrs& attrs,
                            std::span<Tensor> outputs) {
  const Tensor &data = inputs[0], &updates = inputs[2];
  const auto axis = static_cast<size_t>(normal_axis(attrs.integer("axis"), data.rank()));
  const Tensor indices = TRY(read_indices(inputs[1], data.shape()[axis]));
  copy_data(data, outputs[0]);
  if (updates.size() == 0) return {};
  const IndexedLines lines(data.shape(), updates.shape(), axis);
  dispatch_any(data.dtype(), [&]<typename T>(Tag<T>) {
    const T* from = updates.data<T>();
    T* to = outputs[0].data<T>();
    with_combine<T>(combine_of(attrs.string("reduction")), [&](const auto& combined) {
      lines.for_each(indices.data<int64_t>(), [=](int64_t entry, int64_t element) {
        to[element] = combined(to[element], from[entry]);
      });
    });
  });
  return {};
}

Result<Type> infer_scatter_nd(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), indices = TRY(tensor_arg(args, 1));
  TensorType updates = TRY(tensor_arg(args, 2));
  TRY(require_integer(indices, "indices"));
  TRY(require_min_rank(indices, 1, "indices"));
  TRY(require_same_dtype(data, updates));
  TRY(check_reduction(data, attrs.string("mode")));
  const int64_t depth = indices.shape.back();
  if (depth < 0 || depth > static_cast<int64_t>(data.shape.size()))
    return bad_model("indices of {} entries do not fit data {}", depth,
                     shape_to_string(data.shape));
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), data.shape.begin() + depth, data.shape.end());
  TRY(require_shape(updates, shape, "updates"));
  return Type(data);
}

Status run_scatter_nd(std::span<const Tensor> inputs, const Attrs& attrs,
                      std::span<Tensor> outputs) {
  const Tensor& data = inputs[0];
  const IndexTuples tuples = TRY(read_index_tuples(inputs[1], data.shape(), 0));
  copy_data(data, outputs[0]);
  const auto count = static_cast<int64_t>(tuples.offsets.size());
  constexpr int64_t kBeside = 64;  // of a slice, side by side for all tuples
  dispatch_any(data.dtype(), [&]<typename T>(Tag<T>) {
    const T* from = inputs[2].data<T>();
    T* to = outputs[0].data<T>();
    with_combine<T>(combine_of(attrs.string("mode")), [&](const auto& combined) {
#pragma omp parallel for schedule(static) if (count * tuples.slice > 8192)
      for (int64_t first = 0; first < tuples.slice; first += kBeside)
        for (int64_t tuple = 0; tuple < count; ++tuple)
          for (int64_t i = first; i < std::min(tuples.slice, first + kBeside); ++i) {
            T& at = to[tuples.offsets[static_cast<size_t>(tuple)] + i];
            at = combined(at, from[tuple * tuples.slice + i]);
          }
    });
  });
  return {};
}

// Half-width updates that only move need no arithmetic, but pass through float unchanged.
void scatter(std::string name, std::vector<AttrSpec> attrs, TypeRule infer_type,
             ReferenceKernel kernel) {
  register_op(make_op(std::move(name), 3, std::move(attrs), FusionKind::kOpaque,
                      std::move(infer_type), with_halves(std::move(kernel)), work_per_element(2)));
}

}  // namespace

void register_scatter_ops() {
  scatter("scatter_elements", {{"axis", int64_t{0}}, {"reduction", std::string("update")}},
          infer_scatter_elements, run_scatter_elements);
  scatter("scatter_nd", {{"mode", std::string("update")}}, infer_scatter_nd, run_scatter_nd);
}

}  // namespace collage
