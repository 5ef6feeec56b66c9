// nonzero(data): the positions of elements that are not zero, padded by zeros to the number of
// elements (rank, size), and how many there are. match_size(data, count): the first `size` elements
// along an axis, where `count` holds that number; in modules over symbols `size` is the symbol of
// that name, which a run binds to the count (frontend/script/parts.h).
#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/counted/data_dependent.h"
#include "ops/families.h"

namespace collage {

namespace {

// Calls use(outer, inner) for each element that is not zero: its row and its place within.
template <typename Bits, typename F>
void for_each_non_zero(const Tensor& data, int64_t extent, F&& use) {
  const Bits* values = data.data<Bits>();
  // The sign of a zero does not count.
  constexpr auto kAll = static_cast<Bits>(~Bits{0});
  const Bits mask = is_float(data.dtype()) ? static_cast<Bits>(kAll >> 1) : kAll;
  const int64_t rows = data.size() == 0 ? 0 : data.size() / extent;
  for (int64_t row = 0; row < rows; ++row, values += extent)
    for (int64_t i = 0; i < extent; ++i)
      if ((values[i] & mask) != 0) use(row, i);
}

Result<Type> infer_non_zero(Types args, const Attrs&) {
  const TensorType data = TRY(tensor_arg(args, 0));
  const auto rank = std::max<int64_t>(1, static_cast<int64_t>(data.shape.size()));
  const Type positions = TRY(tensor_result({rank, num_elements(data.shape)}, DType::kInt64));
  return Type::tuple({positions, Type(TensorType{{}, DType::kInt64})});
}

Status run_non_zero(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  const Tensor found = TRY(find_non_zero(inputs[0]));
  const int64_t rank = found.shape()[0], count = found.shape()[1];
  const int64_t extent = outputs[0].shape()[1];
  for (int64_t axis = 0; axis < rank; ++axis) {
    int64_t* row = outputs[0].data<int64_t>() + axis * extent;
    std::copy_n(found.data<int64_t>() + axis * count, count, row);
    std::fill(row + count, row + extent, 0);
  }
  outputs[1].data<int64_t>()[0] = count;
  return {};
}

Result<Type> infer_match_size(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  const TensorType count = TRY(tensor_arg(args, 1));
  TRY(require_integer(count, "count"));
  if (num_elements(count.shape) != 1)
    return bad_model("count has shape {}, not one element", shape_to_string(count.shape));
  const auto rank = static_cast<int64_t>(data.shape.size());
  const int64_t size = attrs.integer("size");
  if (size < 0) return bad_model("size {} is negative", size);
  data.shape[static_cast<size_t>(TRY(checked_axis(attrs.integer("axis"), rank)))] = size;
  return tensor_result(data.shape, data.dtype);
}

Status run_match_size(std::span<const Tensor> inputs, const Attrs& attrs,
                      std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  const int64_t size = attrs.integer("size"), count = inputs[1].element_as_int64(0);
  const int64_t axis = normal_axis(attrs.integer("axis"), in.rank());
  const int64_t extent = in.shape()[static_cast<size_t>(axis)];
  const std::string& symbol = attrs.string("symbol");
  if (count != size)
    return bad_model("{} is {} in this run, not {}", symbol.empty() ? "a size" : symbol, count,
                     size);
  if (size > extent) return bad_model("a size is {}, of {} elements", size, extent);
  const auto run =
      static_cast<size_t>(extent_product(in.shape(), axis + 1, in.rank())) * dtype_size(in.dtype());
  const auto* from = static_cast<const char*>(in.raw());
  auto* to = static_cast<char*>(outputs[0].raw());
  const size_t bytes = static_cast<size_t>(size) * run;
  if (bytes == 0) return {};
  for (int64_t i = 0; i < extent_product(in.shape(), 0, axis); ++i)
    std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(i * extent) * run,
                bytes);
  return {};
}

}  // namespace

Result<Tensor> find_non_zero(const Tensor& data) {
  const Shape shape = data.rank() == 0 ? Shape{1} : data.shape();
  const size_t last = shape.size() - 1;
  return dispatch_size(dtype_size(data.dtype()), [&]<typename Bits>(Tag<Bits>) -> Result<Tensor> {
    int64_t count = 0;
    for_each_non_zero<Bits>(data, shape[last], [&](int64_t, int64_t) { ++count; });
    Tensor result =
        TRY(Tensor::allocate(DType::kInt64, {static_cast<int64_t>(shape.size()), count}));
    int64_t* const to = result.data<int64_t>();
    std::vector<int64_t> index(shape.size());
    int64_t known_row = -1, column = 0;
    for_each_non_zero<Bits>(data, shape[last], [&](int64_t row, int64_t i) {
      if (row != known_row) {
        known_row = row;
        for (size_t axis = last; axis-- > 0; row /= shape[axis]) index[axis] = row % shape[axis];
      }
      index[last] = i;
      for (size_t axis = 0; axis <= last; ++axis)
        to[static_cast<int64_t>(axis) * count + column] = index[axis];
      ++column;
    });
    return result;
  });
}

void register_non_zero_ops() {
  register_op(
      make_op("nonzero", 1, {}, FusionKind::kOpaque, infer_non_zero, run_non_zero, no_work));
  register_op(make_op("match_size", 2,
                      {{"axis", int64_t{0}}, {"size", int64_t{0}, true}, {"symbol", std::string()}},
                      FusionKind::kOpaque, infer_match_size, run_match_size, no_work));
}

}  // namespace collage
