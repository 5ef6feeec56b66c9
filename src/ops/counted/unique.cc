// unique(data): the groups of equal slices along an axis (data_dependent.h), padded by zeros to the
// number of slices: the first slice of each, and how many there are in it, the group of each slice,
// and how many groups there are. ONNX's Unique takes the slices by the first of these.
#include <algorithm>
#include <numeric>

#include "ops/counted/data_dependent.h"
#include "ops/families.h"

namespace collage {

namespace {

using Groups = EqualSlices;
constexpr int64_t kMaxEmptySlices = int64_t{1} << 24;

// A total order, but for what is equal.
template <typename T>
bool less(T a, T b) {
  return a < b || (b != b && a == a);
}

// Groups by slices' numbers in ascending order of the slices, and of the numbers where equal.
template <typename Equal>
Groups group(const std::vector<int64_t>& order, Equal&& equal) {
  Groups groups;
  groups.of.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !equal(order[i - 1], order[i])) {
      groups.first.push_back(order[i]);
      groups.counts.push_back(0);
    }
    ++groups.counts.back();
    groups.of[static_cast<size_t>(order[i])] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  return groups;
}

template <typename T>
Groups group_elements(const T* values, int64_t count) {
  struct Element {
    T value;
    int64_t index;
  };
  std::vector<Element> elements(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) elements[static_cast<size_t>(i)] = {values[i], i};
  std::sort(elements.begin(), elements.end(), [](const Element& a, const Element& b) {
    if (less(a.value, b.value)) return true;
    return !less(b.value, a.value) && a.index < b.index;
  });
  std::vector<int64_t> order(elements.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = elements[i].index;
  return group(order, [&](int64_t a, int64_t b) {
    return !less(values[a], values[b]) && !less(values[b], values[a]);
  });
}

// `values` holds the slices one after another, `length` elements each.
template <typename T>
Groups group_slices(const T* values, int64_t count, int64_t length) {
  if (length == 1) return group_elements(values, count);
  const auto compare = [&](int64_t a, int64_t b) {
    const T *x = values + a * length, *y = values + b * length;
    for (int64_t i = 0; i < length; ++i)
      if (less(x[i], y[i]) || less(y[i], x[i])) return less(x[i], y[i]) ? -1 : 1;
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int sign = compare(a, b);
    return sign != 0 ? sign < 0 : a < b;
  });
  return group(order, [&](int64_t a, int64_t b) { return compare(a, b) == 0; });
}

// In the order in which they appear.
void sort_by_appearance(Groups& groups) {
  std::vector<int64_t> order(groups.first.size()), place(groups.first.size());
  std::iota(order.begin(), order.end(), 0);
  const auto first_of = [&](int64_t g) { return groups.first[static_cast<size_t>(g)]; };
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return first_of(a) < first_of(b); });
  Groups sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto g = static_cast<size_t>(order[i]);
    place[g] = static_cast<int64_t>(i);
    sorted.first.push_back(groups.first[g]);
    sorted.counts.push_back(groups.counts[g]);
  }
  for (int64_t& g : groups.of) g = place[static_cast<size_t>(g)];
  groups.first = std::move(sorted.first);
  groups.counts = std::move(sorted.counts);
}

// The slices along the axis one after another.
Result<Tensor> with_axis_first(const Tensor& data, int64_t axis) {
  if (axis == 0) return data;
  const auto at = static_cast<size_t>(axis);
  const Shape& shape = data.shape();
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < at; ++i) outer *= shape[i];
  for (size_t i = at + 1; i < shape.size(); ++i) inner *= shape[i];
  Tensor result = TRY(Tensor::allocate(data.dtype(), {shape[at], outer, inner}));
  dispatch_size(dtype_size(data.dtype()), [&]<typename T>(Tag<T>) {
    T* to = result.data<T>();
    for (int64_t i = 0; i < shape[at]; ++i)
      for (int64_t j = 0; j < outer; ++j, to += inner)
        std::copy_n(data.data<T>() + (j * shape[at] + i) * inner, inner, to);
  });
  return result;
}

Result<Groups> find_groups(const Tensor& data, int64_t axis) {
  const int64_t count = data.shape()[static_cast<size_t>(axis)];
  if (data.size() == 0) {
    // Slices of no elements are equal. There may be more of them than memory holds numbers.
    if (count > kMaxEmptySlices) return unsupported("{} empty slices", count);
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    return group(order, [](int64_t, int64_t) { return true; });
  }
  Tensor slices = TRY(with_axis_first(data, axis));
  const int64_t length = slices.size() / count;
  if (is_half(slices.dtype())) {
    Tensor floats = TRY(Tensor::allocate(DType::kFloat32, slices.shape()));
    halves_to_floats(slices.data<uint16_t>(), slices.dtype(), slices.size(), floats.data<float>());
    slices = std::move(floats);
  }
  return dispatch_any(slices.dtype(), [&]<typename T>(Tag<T>) {
    return group_slices(slices.data<T>(), count, length);
  });
}

Result<Type> infer_unique(Types args, const Attrs& attrs) {
  const TensorType data = TRY(tensor_arg(args, 0));
  const auto rank = static_cast<int64_t>(data.shape.size());
  const int64_t slices =
      data.shape[static_cast<size_t>(TRY(checked_axis(attrs.integer("axis"), rank)))];
  const Type list(TensorType{{slices}, DType::kInt64});
  return Type::tuple({list, list, list, Type(TensorType{{}, DType::kInt64})});
}

Status run_unique(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const int64_t axis = normal_axis(attrs.integer("axis"), inputs[0].rank());
  const EqualSlices found = TRY(find_equal_slices(inputs[0], axis, attrs.flag("sorted")));
  size_t i = 0;
  for (const std::vector<int64_t>* list : {&found.first, &found.counts, &found.of}) {
    int64_t* to = outputs[i].data<int64_t>();
    std::fill(std::copy(list->begin(), list->end(), to), to + outputs[i].size(), 0);
    ++i;
  }
  outputs[3].data<int64_t>()[0] = static_cast<int64_t>(found.first.size());
  return {};
}

}  // namespace

Result<EqualSlices> find_equal_slices(const Tensor& data, int64_t axis, bool sorted) {
  Groups groups = TRY(find_groups(data, axis));
  if (!sorted) sort_by_appearance(groups);
  return groups;
}

void register_unique_ops() {
  register_op(make_op("unique", 1, {{"axis", int64_t{0}}, {"sorted", true}}, FusionKind::kOpaque,
                      infer_unique, run_unique, no_work));
}

}  // namespace collage
