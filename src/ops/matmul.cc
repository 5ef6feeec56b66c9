// The products: nn.dense (weights [N, K]), nn.matmul (numpy's rules for any rank from 2), Relay's
// rank-3 nn.batch_matmul, and nn.bias_add, which usually follows one.
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/product.h"

namespace collage {

namespace {

struct MatrixProduct {
  Shape batch_a, batch_b, batch;  // leading dimensions of the operands and of the result
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

Result<MatrixProduct> analyse(const TensorType& a, const TensorType& b, bool transpose_a,
                              bool transpose_b) {
  TRY(require_min_rank(a, 2, "the left operand"));
  TRY(require_min_rank(b, 2, "the right operand"));
  MatrixProduct p;
  p.transpose_a = transpose_a;
  p.transpose_b = transpose_b;
  p.batch_a = {a.shape.begin(), a.shape.end() - 2};
  p.batch_b = {b.shape.begin(), b.shape.end() - 2};
  p.batch = TRY(broadcast_shapes(p.batch_a, p.batch_b));
  auto dims = [](const Shape& s, bool transposed) {
    std::pair<int64_t, int64_t> pair{s[s.size() - 2], s[s.size() - 1]};
    return transposed ? std::pair{pair.second, pair.first} : pair;
  };
  auto [m, k] = dims(a.shape, transpose_a);
  auto [k2, n] = dims(b.shape, transpose_b);
  if (k != k2)
    return bad_model("inner dimensions {} and {} of {} and {} differ", k, k2,
                     shape_to_string(a.shape), shape_to_string(b.shape));
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

Result<Type> infer_matmul(Types args, const Attrs& attrs) {
  TensorType a = TRY(tensor_arg(args, 0)), b = TRY(tensor_arg(args, 1));
  TRY(require_number(a, "the left operand"));
  TRY(require_same_dtype(a, b));
  MatrixProduct p = TRY(analyse(a, b, attrs.flag("transpose_a"), attrs.flag("transpose_b")));
  Shape shape = p.batch;
  shape.push_back(p.m);
  shape.push_back(p.n);
  return tensor_result(std::move(shape), a.dtype);
}

Result<Type> infer_batch_matmul(Types args, const Attrs& attrs) {
  for (size_t i = 0; i < 2; ++i) TRY(require_rank(TRY(tensor_arg(args, i)), 3, "an operand"));
  return infer_matmul(args, attrs);
}

Result<Type> infer_dense(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), weight = TRY(tensor_arg(args, 1));
  TRY(require_number(data, "data"));
  TRY(require_min_rank(data, 1, "data"));
  TRY(require_rank(weight, 2, "weight"));
  TRY(require_same_dtype(data, weight));
  if (data.shape.back() != weight.shape[1])
    return bad_model("data {} does not fit weight {}", shape_to_string(data.shape),
                     shape_to_string(weight.shape));
  std::optional<Ints> units = TRY(optional_ints(attrs, "units"));
  if (units && *units != Ints{weight.shape[0]})
    return bad_model("units {} does not fit weight {}", attr_to_string(*units),
                     shape_to_string(weight.shape));
  const std::string& out_dtype = attrs.string("out_dtype");
  if (!out_dtype.empty() && out_dtype != dtype_name(data.dtype))
    return bad_model("out_dtype '{}' differs from the operands' {}", out_dtype,
                     dtype_name(data.dtype));
  Shape shape = data.shape;
  shape.back() = weight.shape[0];
  return tensor_result(std::move(shape), data.dtype);
}

template <typename T>
void integer_product(const MatrixProduct& p, const T* a, const T* b, T* c) {
  const int64_t am = p.transpose_a ? 1 : p.k, ak = p.transpose_a ? p.m : 1;
  const int64_t bk = p.transpose_b ? 1 : p.n, bn = p.transpose_b ? p.k : 1;
#pragma omp parallel for schedule(static) if (p.m * p.n > 256)
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum +=
            static_cast<uint64_t>(a[i * am + k * ak]) * static_cast<uint64_t>(b[k * bk + j * bn]);
      c[i * p.n + j] = static_cast<T>(sum);
    }
}

Status multiply_matrices(MatrixProduct p, const Tensor& a, const Tensor& b, Tensor& out) {
  if (out.size() == 0) return {};
  // Left batches over one right matrix are more rows.
  if (!p.transpose_a && num_elements(p.batch_b) == 1) {
    p.m *= num_elements(p.batch);
    p.batch_a = p.batch_b = p.batch = {};
  }
  const Ints at_a = batch_offsets(p.batch_a, p.batch, p.m * p.k);
  const Ints at_b = batch_offsets(p.batch_b, p.batch, p.k * p.n);
  return dispatch_number(out.dtype(), [&]<typename T>(Tag<T>) -> Status {
    if constexpr (std::is_integral_v<T>) {
      for (size_t i = 0; i < at_a.size(); ++i)
        integer_product<T>(p, a.data<T>() + at_a[i], b.data<T>() + at_b[i],
                           out.data<T>() + static_cast<int64_t>(i) * p.m * p.n);
    } else {
      auto base = [](const Ints& offsets) {
        return [&offsets](int64_t batch) { return offsets[static_cast<size_t>(batch)]; };
      };
      blocked_product(
          {num_elements(p.batch), p.m, p.n, p.k},
          strided_panel(a.data<T>(), base(at_a), p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1),
          strided_panel(b.data<T>(), base(at_b), p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1),
          dense_store(out.data<T>(), p.m, p.n));
    }
    return {};
  });
}

Status run_matmul(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  MatrixProduct p =
      TRY(analyse({inputs[0].shape(), inputs[0].dtype()}, {inputs[1].shape(), inputs[1].dtype()},
                  attrs.flag("transpose_a"), attrs.flag("transpose_b")));
  return multiply_matrices(std::move(p), inputs[0], inputs[1], outputs[0]);
}

Status run_dense(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  const Shape &data = inputs[0].shape(), &weight = inputs[1].shape();
  MatrixProduct p;
  p.m = extent_product(data, 0, static_cast<int64_t>(data.size()) - 1);
  p.n = weight[0];
  p.k = weight[1];
  p.transpose_b = true;
  return multiply_matrices(std::move(p), inputs[0], inputs[1], outputs[0]);
}

Result<Type> infer_bias_add(Types args, const Attrs& attrs) {
  return infer_along_axis(args, attrs, require_number, "the bias");
}

Status run_bias_add(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  Tensor bias = along_axis(inputs[0], inputs[1], attrs);
  dispatch_number(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
    map_elements2<T, T>(inputs[0], bias, outputs[0], [](T x, T b) {
      if constexpr (std::is_integral_v<T>)
        return wrap_add(x, b);
      else
        return x + b;
    });
  });
  return {};
}

OpDef product_op(std::string name, std::vector<AttrSpec> attrs, TypeRule infer_type,
                 ReferenceKernel kernel) {
  const Work flops = [](Types args, const Attrs& attrs, const Type& result) {
    const Shape& a = args[0].tensor().shape;
    bool transposed = attrs.has("transpose_a") && attrs.flag("transpose_a");
    return 2.0 * static_cast<double>(num_elements(result.tensor().shape)) *
           static_cast<double>(transposed ? a[a.size() - 2] : a.back());
  };
  return make_op(std::move(name), 2, std::move(attrs), FusionKind::kAnchor, std::move(infer_type),
                 with_halves(std::move(kernel)), flops);
}

}  // namespace

void register_matmul_ops() {
  register_op(product_op("nn.dense", {{"units", None{}}, {"out_dtype", std::string()}}, infer_dense,
                         run_dense));
  register_op(product_op("nn.matmul", {{"transpose_a", false}, {"transpose_b", false}},
                         infer_matmul, run_matmul));
  register_op(product_op("nn.batch_matmul", {{"transpose_a", false}, {"transpose_b", true}},
                         infer_batch_matmul, run_matmul));
  register_op(make_op("nn.bias_add", 2, {{"axis", int64_t{1}}}, FusionKind::kBroadcast,
                      infer_bias_add, with_halves(run_bias_add)));
}

}  // namespace collage
