// Operators that run along one axis: cumsum, topk, reverse_sequence; and trilu, which keeps a
// triangle of each matrix.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ops/families.h"

namespace collage {

namespace {

Result<Type> infer_cumsum(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_number(data, "data"));
  TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  return Type(data);
}

// Sums up elements that lie `step` apart, from `sum` on; returns the sum of all.
template <typename T>
Accumulator<T> scan(const T* x, T* y, int64_t step, int64_t count, Accumulator<T> sum,
                    bool exclusive) {
  for (int64_t i = 0; i < count; ++i, x += step, y += step) {
    const Accumulator<T> before = sum;
    sum += static_cast<Accumulator<T>>(*x);
    *y = static_cast<T>(exclusive ? before : sum);
  }
  return sum;
}

// The same of one long row. Each thread sums up what stands before its part, which takes a third of
// the time of writing it, and so has no other to wait for: parts are two thirds of the one before.
template <typename T>
void scan_long(const T* x, T* y, int64_t step, int64_t count, bool exclusive) {
  const int parts = omp_get_max_threads();
  const auto begin = [&](int part) {
    const double share = (1 - std::pow(2.0 / 3, part)) / (1 - std::pow(2.0 / 3, parts));
    return part == parts ? count : static_cast<int64_t>(share * static_cast<double>(count));
  };
#pragma omp parallel for schedule(static, 1)
  for (int part = 0; part < parts; ++part) {
    const int64_t first = begin(part), length = begin(part + 1) - first;
    Accumulator<T> before{0};
#pragma omp simd reduction(+ : before)
    for (int64_t i = 0; i < first; ++i) before += static_cast<Accumulator<T>>(x[i * step]);
    scan(x + first * step, y + first * step, step, length, before, exclusive);
  }
}

Status run_cumsum(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (in.size() == 0) return {};
  const int64_t axis = normal_axis(attrs.integer("axis"), in.rank());
  const int64_t extent = in.shape()[static_cast<size_t>(axis)];
  const int64_t stride = extent_product(in.shape(), axis + 1, in.rank());
  const bool exclusive = attrs.flag("exclusive"), reverse = attrs.flag("reverse");
  const int64_t step = reverse ? -stride : stride, start = reverse ? (extent - 1) * stride : 0;
  const int64_t rows = in.size() / extent;
  constexpr int64_t kLong = 1 << 18, kBeside = 16;  // rows beside one another fill cache lines
  dispatch_number(in.dtype(), [&]<typename T>(Tag<T>) {
    const T* x = in.data<T>() + start;
    T* y = outputs[0].data<T>() + start;
    // Sums of integers are the same in any order.
    if (std::is_integral_v<T> && stride == 1 && rows < 4 && extent >= kLong) {
      for (int64_t row = 0; row < rows; ++row)
        scan_long(x + row * extent, y + row * extent, step, extent, exclusive);
      return;
    }
    const int64_t beside = std::min(stride, kBeside), tasks = (stride + beside - 1) / beside;
#pragma omp parallel for schedule(static) if (in.size() > 8192)
    for (int64_t task = 0; task < in.size() / extent / stride * tasks; ++task) {
      const int64_t first = task % tasks * beside, at = task / tasks * stride * extent + first;
      const int64_t width = std::min(beside, stride - first);
      if (width == 1) {
        scan(x + at, y + at, step, extent, Accumulator<T>{0}, exclusive);
        continue;
      }
      std::array<Accumulator<T>, kBeside> sums{};
      for (int64_t i = 0; i < extent; ++i)
        for (int64_t j = 0; j < width; ++j)
          sums[static_cast<size_t>(j)] = scan(x + at + i * step + j, y + at + i * step + j, 0, 1,
                                              sums[static_cast<size_t>(j)], exclusive);
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

// Elements in the order in which topk gives them: equal ones keep theirs; NaN counts as the
// greatest.
template <typename T>
class Ranking {
 public:
  Ranking(const T* x, int64_t stride, bool largest) : x_(x), stride_(stride), largest_(largest) {}

  T value(int64_t i) const { return x_[i * stride_]; }
  bool operator()(int64_t i, int64_t j) const {
    const T a = value(i), b = value(j);
    if (largest_ ? less(b, a) : less(a, b)) return true;
    if (largest_ ? less(a, b) : less(b, a)) return false;
    return i < j;
  }

  // Appends the first k of [begin, end), in any order.
  void select(int64_t begin, int64_t end, size_t k, Ints& to) const {
    const size_t room = 2 * k + 256;
    Ints found;
    found.reserve(room);
    int64_t last = -1;  // of the first k of those seen so far; others behind it are passed over
    const auto drop = [&] {
      if (found.size() <= k) return;
      std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(k) - 1,
                       found.end(), *this);
      found.resize(k);
      last = found.back();
    };
    constexpr int64_t kAtOnce = 32;
    for (int64_t at = begin; at < end; at += kAtOnce) {
      const int64_t stop = std::min(end, at + kAtOnce);
      if (last >= 0 && are_behind(value(last), at, stop)) continue;
      for (int64_t i = at; i < stop; ++i)
        if (last < 0 || (!is_behind(value(i), value(last)) && (*this)(i, last))) found.push_back(i);
      if (found.size() + kAtOnce > room) drop();
    }
    drop();
    to.insert(to.end(), found.begin(), found.end());
  }

 private:
  static bool less(T a, T b) { return a < b || (a == a && b != b); }
  // Whether it is a number that stands behind the bound, or is equal to it.
  bool is_behind(T x, T bound) const { return largest_ ? x <= bound : x >= bound; }
  bool are_behind(T bound, int64_t begin, int64_t end) const {
    if (stride_ != 1) return false;
    unsigned behind = 1;
    const T* x = x_ + begin;
    if (largest_) {
#pragma omp simd reduction(& : behind)
      for (int64_t i = 0; i < end - begin; ++i) behind &= x[i] <= bound ? 1 : 0;
    } else {
#pragma omp simd reduction(& : behind)
      for (int64_t i = 0; i < end - begin; ++i) behind &= x[i] >= bound ? 1 : 0;
    }
    return behind != 0;
  }

  const T* x_;
  int64_t stride_;
  bool largest_;
};

// Always sorted, which "sorted = False" allows. A long row is shared by all threads.
Status run_topk(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  if (outputs[0].size() == 0) return {};
  const int64_t axis = normal_axis(attrs.integer("axis"), in.rank());
  const int64_t extent = in.shape()[static_cast<size_t>(axis)], k = attrs.integer("k");
  const int64_t stride = extent_product(in.shape(), axis + 1, in.rank());
  const bool largest = attrs.flag("largest");
  const int64_t rows = in.size() / extent;
  const int64_t parts =
      rows < omp_get_max_threads()
          ? std::clamp<int64_t>(extent / std::max<int64_t>(4 * k, 16384), 1, omp_get_max_threads())
          : 1;
  dispatch_number(in.dtype(), [&]<typename T>(Tag<T>) {
    const auto ranking = [&](int64_t row) {
      return Ranking<T>(in.data<T>() + row / stride * stride * extent + row % stride, stride,
                        largest);
    };
    std::vector<Ints> found(static_cast<size_t>(rows * parts));
#pragma omp parallel for schedule(static) if (in.size() > 65536)
    for (int64_t task = 0; task < rows * parts; ++task) {
      const int64_t part = task % parts;
      ranking(task / parts)
          .select(extent * part / parts, extent * (part + 1) / parts, static_cast<size_t>(k),
                  found[static_cast<size_t>(task)]);
    }
#pragma omp parallel for schedule(static) if (in.size() > 65536)
    for (int64_t row = 0; row < rows; ++row) {
      Ints order = std::move(found[static_cast<size_t>(row * parts)]);
      for (int64_t part = 1; part < parts; ++part) {
        const Ints& more = found[static_cast<size_t>(row * parts + part)];
        order.insert(order.end(), more.begin(), more.end());
      }
      const Ranking<T> ranked = ranking(row);
      if (parts > 1) std::nth_element(order.begin(), order.begin() + k - 1, order.end(), ranked);
      std::sort(order.begin(), order.begin() + k, ranked);
      const int64_t base = row / stride * stride * k + row % stride;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t from = order[static_cast<size_t>(i)];
        outputs[0].data<T>()[base + i * stride] = ranked.value(from);
        outputs[1].data<int64_t>()[base + i * stride] = from;
      }
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
