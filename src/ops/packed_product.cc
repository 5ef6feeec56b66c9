// nn.packed_dense(x, codes, scales, zeros): the product with weights of a few bits, [K, N] in
// blocks of `block_size` along K:
//
//   y[…, n] = sum over k of x[…, k] · (code[k, n] - zeros[k / block_size, n]) · scales[k / …, n]
//
// A byte of `codes` holds 8 / bits weights of a column, those of one row after the other, from its
// low bits on. `zeros` is a scalar, or one a block as scales are.
#include <algorithm>
#include <vector>

#include "base/integers.h"
#include "ops/families.h"

namespace collage {

namespace {

Result<Type> infer_packed_dense(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  const TensorType codes = TRY(tensor_arg(args, 1)), scales = TRY(tensor_arg(args, 2)),
                   zeros = TRY(tensor_arg(args, 3));
  TRY(require_float(data, "data"));
  TRY(require_min_rank(data, 1, "data"));
  const int64_t bits = attrs.integer("bits"), block = attrs.integer("block_size");
  if (bits != 2 && bits != 4 && bits != 8) return bad_model("weights of {} bits", bits);
  const int64_t terms = data.shape.back(), each = 8 / bits;
  if (block < 1 || terms % block != 0 || block % each != 0)
    return bad_model("blocks of {} for {} terms of {} bits", block, terms, bits);
  if (codes.dtype != DType::kUInt8)
    return bad_model("codes must be uint8, not {}", dtype_name(codes.dtype));
  TRY(require_rank(codes, 2, "codes"));
  const int64_t columns = codes.shape[1];
  TRY(require_shape(codes, {terms / each, columns}, "codes"));
  TRY(require_same_dtype(data, scales));
  TRY(require_same_dtype(data, zeros));
  TRY(require_shape(scales, {terms / block, columns}, "scales"));
  if (!zeros.shape.empty()) TRY(require_shape(zeros, scales.shape, "zeros"));
  data.shape.back() = columns;
  return tensor_result(std::move(data.shape), data.dtype);
}

Status run_packed_dense(std::span<const Tensor> inputs, const Attrs& attrs,
                        std::span<Tensor> outputs) {
  const int64_t terms = inputs[0].shape().back(), columns = inputs[1].shape()[1];
  if (outputs[0].size() == 0) return {};
  const int64_t bits = attrs.integer("bits"), block = attrs.integer("block_size"), each = 8 / bits;
  const bool one_zero = inputs[3].size() == 1;
  constexpr int64_t kAtOnce = 256;  // columns
  const int64_t parts = ceil_div(columns, kAtOnce), rows = outputs[0].size() / columns;
  const auto* codes = inputs[1].data<uint8_t>();
  dispatch_float(inputs[0].dtype(), [&]<typename T>(Tag<T>) {
    const T *x = inputs[0].data<T>(), *scales = inputs[2].data<T>(), *zeros = inputs[3].data<T>();
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < rows * parts; ++task) {
      const int64_t row = task / parts, first = task % parts * kAtOnce;
      const int64_t count = std::min(kAtOnce, columns - first);
      std::vector<double> sums(static_cast<size_t>(count));
      for (int64_t k = 0; k < terms; ++k) {
        const auto value = static_cast<double>(x[row * terms + k]);
        const int64_t code = k / each * columns + first, of = k / block * columns + first;
        const int64_t shift = k % each * bits, mask = (int64_t{1} << bits) - 1;
        for (int64_t j = 0; j < count; ++j) {
          const auto zero = static_cast<double>(zeros[one_zero ? 0 : of + j]);
          const auto steps = static_cast<double>((codes[code + j] >> shift) & mask) - zero;
          sums[static_cast<size_t>(j)] += value * (steps * static_cast<double>(scales[of + j]));
        }
      }
      for (int64_t j = 0; j < count; ++j)
        outputs[0].data<T>()[row * columns + first + j] =
            static_cast<T>(sums[static_cast<size_t>(j)]);
    }
  });
  return {};
}

double packed_dense_work(Types args, const Attrs&, const Type& result) {
  return 2.0 * static_cast<double>(num_elements(result.tensor().shape)) *
         static_cast<double>(args[0].tensor().shape.back());
}

}  // namespace

void register_packed_product_ops() {
  register_op(make_op(
      "nn.packed_dense", 4, {{"bits", int64_t{4}}, {"block_size", int64_t{32}, true}},
      FusionKind::kAnchor, infer_packed_dense, with_halves(run_packed_dense), packed_dense_work));
}

}  // namespace collage
