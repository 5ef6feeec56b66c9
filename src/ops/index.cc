// Reading by index: take (numpy's, ONNX Gather), gather (ONNX GatherElements), gather_nd, one_hot.
// Negative indices count from the end; an index out of range is an error at run time.
#include <algorithm>

#include "ops/families.h"
#include "ops/indices.h"
#include "ops/reduce.h"
#include "ops/strided.h"

namespace collage {

Result<Tensor> read_indices(const Tensor& indices, int64_t extent) {
  const int64_t n = indices.size();
  return dispatch_integer(indices.dtype(), [&]<typename T>(Tag<T>) -> Result<Tensor> {
    const T* from = indices.data<T>();
    uint64_t outside = 0, negative = 0;  // by signs, which needs no look at each
    const auto reach = static_cast<uint64_t>(extent);
#pragma omp parallel for simd schedule(static) reduction(| : outside, negative) if (n > 65536)
    for (int64_t i = 0; i < n; ++i) {
      const auto index = static_cast<uint64_t>(static_cast<int64_t>(from[i]));
      outside |= (index + reach) | (reach - 1 - index);
      negative |= index;
    }
    const bool counts_back = static_cast<int64_t>(negative) < 0;
    if (static_cast<int64_t>(outside) < 0 || (counts_back && !std::is_signed_v<T>))
      for (int64_t i = 0; i < n; ++i) {
        const auto index = static_cast<int64_t>(from[i]);
        if (index >= extent || index < (std::is_signed_v<T> ? -extent : 0))
          return bad_model("index {} is out of range for extent {}", from[i], extent);
      }
    if (std::is_same_v<T, int64_t> && !counts_back) return indices;
    Tensor result = TRY(Tensor::allocate(DType::kInt64, indices.shape()));
    auto* to = result.data<int64_t>();
#pragma omp parallel for simd schedule(static) if (n > 65536)
    for (int64_t i = 0; i < n; ++i) {
      const auto index = static_cast<int64_t>(from[i]);
      to[i] = index + (index < 0 ? extent : 0);
    }
    return result;
  });
}

IndexedLines::IndexedLines(const Shape& array, const Shape& indices, size_t axis)
    : length(indices[axis]),
      step(dense_strides(indices)[axis]),
      stride(dense_strides(array)[axis]) {
  Shape others = indices;
  others[axis] = 1;
  const Ints from = dense_strides(indices), at = dense_strides(array);
  Shape position(indices.size(), 0);
  int64_t entry = 0, element = 0;
  for (int64_t lines = num_elements(others); lines > 0; --lines) {
    of.push_back(entry);
    to.push_back(element);
    for (size_t d = others.size(); d-- > 0;) {
      entry += from[d];
      element += at[d];
      if (++position[d] < others[d]) break;
      entry -= others[d] * from[d];
      element -= others[d] * at[d];
      position[d] = 0;
    }
  }
}

namespace {

Result<Type> infer_take(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), indices = TRY(tensor_arg(args, 1));
  TRY(require_integer(indices, "indices"));
  int64_t axis = TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
  Shape shape(data.shape.begin(), data.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  return tensor_result(std::move(shape), data.dtype);
}

Status run_take(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& data = inputs[0];
  const int64_t axis = normal_axis(attrs.integer("axis"), data.rank());
  const int64_t extent = data.shape()[static_cast<size_t>(axis)];
  const Tensor indices = TRY(read_indices(inputs[1], extent));
  if (outputs[0].size() == 0) return {};
  const int64_t outer = extent_product(data.shape(), 0, axis);
  const size_t row = static_cast<size_t>(extent_product(data.shape(), axis + 1, data.rank())) *
                     dtype_size(data.dtype());
  const auto* from = static_cast<const char*>(data.raw());
  auto* to = static_cast<char*>(outputs[0].raw());
  const int64_t count = indices.size();
#pragma omp parallel for schedule(static) if (outputs[0].size() > 8192)
  for (int64_t i = 0; i < outer * count; ++i) {
    const int64_t source = i / count * extent + indices.data<int64_t>()[i % count];
    std::copy_n(from + static_cast<size_t>(source) * row, row, to + static_cast<size_t>(i) * row);
  }
  return {};
}

Result<Type> infer_gather(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), indices = TRY(tensor_arg(args, 1));
  TRY(require_integer(indices, "indices"));
  TRY(require_rank(indices, static_cast<int64_t>(data.shape.size()), "indices"));
  auto axis = static_cast<size_t>(
      TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size()))));
  for (size_t d = 0; d < data.shape.size(); ++d)
    if (d != axis && indices.shape[d] > data.shape[d])
      return bad_model("indices {} reach beyond data {}", shape_to_string(indices.shape),
                       shape_to_string(data.shape));
  return tensor_result(indices.shape, data.dtype);
}

Status run_gather(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& data = inputs[0];
  const auto axis = static_cast<size_t>(normal_axis(attrs.integer("axis"), data.rank()));
  const Tensor indices = TRY(read_indices(inputs[1], data.shape()[axis]));
  if (outputs[0].size() == 0) return {};
  const IndexedLines lines(data.shape(), indices.shape(), axis);
  dispatch_size(dtype_size(data.dtype()), [&]<typename T>(Tag<T>) {
    const T* from = data.data<T>();
    T* to = outputs[0].data<T>();
    constexpr int64_t kParts = 16;
    lines.for_each(
        indices.data<int64_t>(), [=](int64_t entry, int64_t element) { to[entry] = from[element]; },
        kParts);
  });
  return {};
}

Result<Type> infer_gather_nd(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0)), indices = TRY(tensor_arg(args, 1));
  TRY(require_integer(indices, "indices"));
  TRY(require_min_rank(indices, 1, "indices"));
  int64_t batch = attrs.integer("batch_dims"), depth = indices.shape.back();
  auto data_rank = static_cast<int64_t>(data.shape.size());
  auto index_rank = static_cast<int64_t>(indices.shape.size());
  if (batch < 0 || batch >= std::min(data_rank, index_rank))
    return bad_model("batch_dims {} is out of range", batch);
  if (depth < 1 || depth > data_rank - batch)
    return bad_model("indices of {} entries do not fit data {}", depth,
                     shape_to_string(data.shape));
  for (int64_t d = 0; d < batch; ++d)
    if (data.shape[static_cast<size_t>(d)] != indices.shape[static_cast<size_t>(d)])
      return bad_model("batch dimensions of {} and {} differ", shape_to_string(data.shape),
                       shape_to_string(indices.shape));
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), data.shape.begin() + batch + depth, data.shape.end());
  return tensor_result(std::move(shape), data.dtype);
}

Status run_gather_nd(std::span<const Tensor> inputs, const Attrs& attrs,
                     std::span<Tensor> outputs) {
  const Tensor& data = inputs[0];
  const int64_t batch = attrs.integer("batch_dims");
  IndexTuples tuples = TRY(read_index_tuples(inputs[1], data.shape(), batch));
  if (outputs[0].size() == 0) return {};
  const auto per_batch =
      static_cast<int64_t>(tuples.offsets.size()) / extent_product(inputs[1].shape(), 0, batch);
  const int64_t batch_size = extent_product(data.shape(), batch, data.rank());
  const size_t element = dtype_size(data.dtype());
  const auto* from = static_cast<const char*>(data.raw());
  auto* to = static_cast<char*>(outputs[0].raw());
  const size_t bytes = static_cast<size_t>(tuples.slice) * element;
  for (size_t i = 0; i < tuples.offsets.size(); ++i) {
    const int64_t source = static_cast<int64_t>(i) / per_batch * batch_size + tuples.offsets[i];
    std::copy_n(from + static_cast<size_t>(source) * element, bytes, to + i * bytes);
  }
  return {};
}

// one_hot(indices, on value, off value): a new axis of extent depth.
Result<Type> infer_one_hot(Types args, const Attrs& attrs) {
  TensorType indices = TRY(tensor_arg(args, 0));
  TensorType on = TRY(tensor_arg(args, 1)), off = TRY(tensor_arg(args, 2));
  if (!is_integer(indices.dtype)) TRY(require_float(indices, "indices"));
  TRY(require_same_dtype(on, off));
  if (num_elements(on.shape) != 1 || num_elements(off.shape) != 1)
    return bad_model("the on and off values must be scalars");
  int64_t depth = attrs.integer("depth");
  if (depth < 1) return bad_model("depth {} is not positive", depth);
  int64_t axis =
      TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(indices.shape.size()) + 1));
  Shape shape = indices.shape;
  shape.insert(shape.begin() + axis, depth);
  return tensor_result(std::move(shape), on.dtype);
}

Status run_one_hot(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& indices = inputs[0];
  const int64_t axis = normal_axis(attrs.integer("axis"), outputs[0].rank());
  const int64_t depth = attrs.integer("depth");
  const int64_t inner = extent_product(indices.shape(), axis, indices.rank());
  dispatch_size(dtype_size(outputs[0].dtype()), [&]<typename T>(Tag<T>) {
    const T on = inputs[1].data<T>()[0], off = inputs[2].data<T>()[0];
    T* to = outputs[0].data<T>();
    std::fill(to, to + outputs[0].size(), off);
    for (int64_t i = 0; i < indices.size(); ++i) {
      double index = indices.element_as_double(i);
      if (index < 0) index += static_cast<double>(depth);
      if (!(index >= 0 && index < static_cast<double>(depth))) continue;  // ONNX: all off
      to[(i / inner * depth + static_cast<int64_t>(index)) * inner + i % inner] = on;
    }
  });
  return {};
}

}  // namespace

Result<IndexTuples> read_index_tuples(const Tensor& indices, const Shape& data, int64_t batch) {
  const int64_t depth = indices.shape().back();
  const Ints strides = dense_strides(data);
  IndexTuples result;
  result.slice = extent_product(data, batch + depth, static_cast<int64_t>(data.size()));
  const int64_t count = extent_product(indices.shape(), 0, indices.rank() - 1);
  result.offsets.assign(static_cast<size_t>(count), 0);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t d = 0; d < depth; ++d) {
      const auto dim = static_cast<size_t>(batch + d);
      int64_t index = indices.element_as_int64(i * depth + d);
      if (index < -data[dim] || index >= data[dim])
        return bad_model("index {} is out of range for extent {}", index, data[dim]);
      result.offsets[static_cast<size_t>(i)] +=
          (index < 0 ? index + data[dim] : index) * strides[dim];
    }
  return result;
}

const ExprNode* index_origin(const Expr& expr) {
  const Expr* at = &expr;
  while (const auto* call = as<CallNode>(*at)) {
    bool passes = call->op != nullptr &&
                  (call->op->is_view || call->op->name == "copy" || call->op->name == "cast");
    if (!passes || !is_integer(call->args[0]->tensor_type().dtype)) break;
    at = &call->args[0];
  }
  return at->get();
}

Ints index_extents(const CallNode& call) {
  const std::string& name = call.op->name;
  if (name == "take" || name == "gather" || name == "scatter_elements") {
    const Shape& data = call.args[0]->tensor_type().shape;
    const auto rank = static_cast<int64_t>(data.size());
    return {data[static_cast<size_t>(normal_axis(call.attrs.integer("axis"), rank))]};
  }
  if (name == "gather_nd" || name == "scatter_nd") {
    const Shape &data = call.args[0]->tensor_type().shape,
                &indices = call.args[1]->tensor_type().shape;
    int64_t first = name == "gather_nd" ? call.attrs.integer("batch_dims") : 0;
    return {data.begin() + first, data.begin() + first + indices.back()};
  }
  return {};
}

void register_index_ops() {
  register_injective("take", {{"axis", int64_t{0}}}, infer_take, run_take, 2);
  register_injective("gather", {{"axis", int64_t{0}}}, infer_gather, run_gather, 2);
  register_injective("gather_nd", {{"batch_dims", int64_t{0}}}, infer_gather_nd, run_gather_nd, 2);
  register_injective("one_hot", {{"depth", int64_t{1}, true}, {"axis", int64_t{-1}}}, infer_one_hot,
                     run_one_hot, 3);
}

}  // namespace collage
