// Operators that run along one axis: cumsum, topk, reverse_sequence; and trilu, which keeps a
// triangle of each matrix.
#include <algorithm>
#include <numeric>

#include "ops/families.h"

namespace collage {

namespace {

Result<Type> infer_cumsum(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_number(data, "data"));
  TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  return Type(data);
}

Status run_cumsum(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (in.size() == 0) return {};
  const int64_t axis = normal_axis(attrs.integer("axis"), in.rank());
  const int64_t extent = in.shape()[static_cast<size_t>(axis)];
  const int64_t stride = extent_product(in.shape(), axis + 1, in.rank());
  const bool exclusive = attrs.flag("exclusive"), reverse = attrs.flag("reverse");
  dispatch_number(in.dtype(), [&]<typename T>(Tag<T>) {
#pragma omp parallel for schedule(static) if (in.size() > 8192)
    for (int64_t row = 0; row < in.size() / extent; ++row) {
      const int64_t base = row / stride * stride * extent + row % stride;
      Accumulator<T> sum{0};
      for (int64_t i = 0; i < extent; ++i) {
        const int64_t at = base + (reverse ? extent - 1 - i : i) * stride;
        const auto x = static_cast<Accumulator<T>>(in.data<T>()[at]);
        outputs[0].data<T>()[at] = static_cast<T>(exclusive ? sum : sum + x);
        sum += x;
      }
    }
  });
  return {};
}

Result<Type> infer_topk(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_number(data, "data"));
  int64_t axis = TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  int64_t k = attrs.integer("k");
  if (k < 0 || k > data.shape[static_cast<size_t>(axis)])
    return bad_model("k {} is out of range for extent {}", k,
                     data.shape[static_cast<size_t>(axis)]);
  data.shape[static_cast<size_t>(axis)] = k;
  return Type::tuple({Type(data), Type(TensorType{data.shape, DType::kInt64})});
}

// Equal elements keep their order; NaN counts as the greatest. Always sorted, which "sorted =
// False" allows.
Status run_topk(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (outputs[0].size() == 0) return {};
  const int64_t axis = normal_axis(attrs.integer("axis"), in.rank());
  const int64_t extent = in.shape()[static_cast<size_t>(axis)], k = attrs.integer("k");
  const int64_t stride = extent_product(in.shape(), axis + 1, in.rank());
  const bool largest = attrs.flag("largest");
  dispatch_number(in.dtype(), [&]<typename T>(Tag<T>) {
    const auto take = [&](Ints& order, int64_t row) {
      const T* x = in.data<T>() + row / stride * stride * extent + row % stride;
      auto less = [](T a, T b) { return a < b || (a == a && b != b); };
      std::iota(order.begin(), order.end(), int64_t{0});
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t i, int64_t j) {
        const T a = x[i * stride], b = x[j * stride];
        if (largest ? less(b, a) : less(a, b)) return true;
        if (largest ? less(a, b) : less(b, a)) return false;
        return i < j;
      });
      const int64_t base = row / stride * stride * k + row % stride;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t from = order[static_cast<size_t>(i)];
        outputs[0].data<T>()[base + i * stride] = x[from * stride];
        outputs[1].data<int64_t>()[base + i * stride] = from;
      }
    };
#pragma omp parallel if (in.size() > 65536)
    {
      Ints order(static_cast<size_t>(extent));
#pragma omp for schedule(static)
      for (int64_t row = 0; row < in.size() / extent; ++row) take(order, row);
    }
  });
  return {};
}

Result<Type> infer_trilu(Types args, const Attrs&) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_min_rank(data, 2, "data"));
  return Type(data);
}

Status run_trilu(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (in.size() == 0) return {};
  const int64_t columns = in.shape().back(), rows = in.shape()[in.shape().size() - 2];
  const bool upper = attrs.flag("upper");
  // Beyond the matrix the diagonal's place makes no difference; held there, sums cannot overflow.
  const int64_t k = std::clamp(attrs.integer("k"), -rows, columns);
  dispatch_size(dtype_size(in.dtype()), [&]<typename T>(Tag<T>) {
    for (int64_t row = 0; row < in.size() / columns; ++row) {
      const int64_t diagonal = row % rows + k;
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = row * columns + j;
        const bool keep = upper ? j >= diagonal : j <= diagonal;
        outputs[0].data<T>()[at] = keep ? in.data<T>()[at] : T{0};
      }
    }
  });
  return {};
}

Result<Type> infer_reverse_sequence(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), lengths = TRY(tensor_arg(args, 1));
  TRY(require_integer(lengths, "lengths"));
  auto rank = static_cast<int64_t>(data.shape.size());
  int64_t seq = TRY(checked_axis(attrs.integer("seq_axis"), rank));
  int64_t batch = TRY(checked_axis(attrs.integer("batch_axis"), rank));
  if (seq == batch) return bad_model("seq_axis and batch_axis are both {}", seq);
  TRY(require_shape(lengths, {data.shape[static_cast<size_t>(batch)]}, "lengths"));
  return Type(data);
}

Status run_reverse_sequence(std::span<const Tensor> inputs, const Attrs& attrs,
                            std::span<Tensor> outputs) {
  const Tensor &in = inputs[0], &lengths = inputs[1];
  const auto seq = static_cast<size_t>(normal_axis(attrs.integer("seq_axis"), in.rank()));
  const auto batch = static_cast<size_t>(normal_axis(attrs.integer("batch_axis"), in.rank()));
  const int64_t extent = in.shape()[seq];
  for (int64_t i = 0; i < lengths.size(); ++i)
    if (int64_t length = lengths.element_as_int64(i); length < 0 || length > extent)
      return bad_model("sequence length {} is out of range for extent {}", length, extent);
  auto stride_of = [&](size_t axis) {
    return extent_product(in.shape(), static_cast<int64_t>(axis) + 1, in.rank());
  };
  const int64_t seq_stride = stride_of(seq), batch_stride = stride_of(batch);
  dispatch_size(dtype_size(in.dtype()), [&]<typename T>(Tag<T>) {
    for (int64_t i = 0; i < in.size(); ++i) {
      const int64_t position = i / seq_stride % extent;
      const int64_t length = lengths.element_as_int64(i / batch_stride % in.shape()[batch]);
      const int64_t from = position < length ? length - 1 - position : position;
      outputs[0].data<T>()[i] = in.data<T>()[i + (from - position) * seq_stride];
    }
  });
  return {};
}

void scan(std::string name, int args, std::vector<AttrSpec> attrs, TypeRule infer_type,
          ReferenceKernel kernel, FusionKind kind) {
  register_op(make_op(std::move(name), args, std::move(attrs), kind, std::move(infer_type),
                      std::move(kernel), work_per_element(0)));
}

}  // namespace

void register_scan_ops() {
  scan("cumsum", 1, {{"axis", int64_t{0}}, {"exclusive", false}, {"reverse", false}}, infer_cumsum,
       with_halves(run_cumsum), FusionKind::kOpaque);
  scan("topk", 1,
       {{"k", int64_t{1}, true}, {"axis", int64_t{-1}}, {"largest", true}, {"sorted", true}},
       infer_topk, with_halves(run_topk), FusionKind::kOpaque);
  scan("trilu", 1, {{"k", int64_t{0}}, {"upper", true}}, infer_trilu, run_trilu,
       FusionKind::kInjective);
  scan("reverse_sequence", 2, {{"seq_axis", int64_t{1}}, {"batch_axis", int64_t{0}}},
       infer_reverse_sequence, run_reverse_sequence, FusionKind::kInjective);
}

}  // namespace collage
