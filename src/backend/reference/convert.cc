#include "backend/reference/convert.h"

#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/integers.h"
#include "ops/half.h"

namespace collage {

namespace {

// Every physical coordinate of a layout depends on one logical dimension, so an element's offset is
// a sum of one table entry per dimension. Tables cover the dimension's padded extent.
std::vector<std::vector<int64_t>> offset_tables(const Layout& layout, const Shape& shape,
                                                const Shape& extents) {
  std::vector<std::vector<int64_t>> tables(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    Shape index(shape.size(), 0);
    for (int64_t i = 0; i < extents[d]; ++i) {
      index[d] = i;
      tables[d].push_back(layout.offset(shape, index));
    }
  }
  return tables;
}

Shape padded_extents(const Layout& layout, const Shape& shape) {
  Shape extents = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t block = 1;
    for (const Layout::Block& b : layout.blocks())
      if (b.dim == static_cast<int>(d)) block *= b.size;
    extents[d] = round_up(extents[d], block);
  }
  return extents;
}

// Dimensions from the slowest to the fastest in the layout's memory: a blocked dimension stands
// where its innermost block does.
std::vector<size_t> loop_order(const Layout& layout, size_t rank) {
  std::vector<size_t> order;
  for (int d : layout.order()) order.push_back(static_cast<size_t>(d));
  if (layout.is_plain()) {
    order.resize(rank);
    std::iota(order.begin(), order.end(), size_t{0});
  }
  for (const Layout::Block& b : layout.blocks()) {
    std::erase(order, static_cast<size_t>(b.dim));
    order.push_back(static_cast<size_t>(b.dim));
  }
  return order;
}

template <DType kDType>
struct Element;
template <>
struct Element<DType::kFloat32> {
  using Stored = float;
  static float load(float x) { return x; }
  static float store(double x) { return static_cast<float>(x); }
};
template <>
struct Element<DType::kFloat64> {
  using Stored = double;
  static double load(double x) { return x; }
  static double store(double x) { return x; }
};
template <>
struct Element<DType::kFloat16> {
  using Stored = uint16_t;
  static float load(uint16_t x) { return half_to_float(x, DType::kFloat16); }
  static uint16_t store(double x) { return float_to_half(static_cast<float>(x), DType::kFloat16); }
};
template <>
struct Element<DType::kBFloat16> {
  using Stored = uint16_t;
  static float load(uint16_t x) { return half_to_float(x, DType::kBFloat16); }
  static uint16_t store(double x) { return float_to_half(static_cast<float>(x), DType::kBFloat16); }
};

// Moves one element per step of the innermost loop, converted by Convert.
template <typename From, typename To, typename Convert>
class ConversionKernel : public Kernel {
 public:
  ConversionKernel(const Shape& shape, const Layout& from, const Layout& to, Convert convert)
      : shape_(shape),
        extents_(padded_extents(to, shape)),
        order_(loop_order(to, shape.size())),
        from_(offset_tables(from, shape, shape)),
        to_(offset_tables(to, shape, extents_)),
        convert_(convert) {}

  Status run(const KernelArgs& args) override {
    const auto* from = static_cast<const From*>(args.inputs[0]);
    auto* to = static_cast<To*>(args.outputs[0]);
    const int64_t total = num_elements(extents_);
    if (total == 0) return {};
    if (order_.empty()) {
      to[0] = convert_(from[0]);
      return {};
    }
    const size_t inner = order_.back();
    const int64_t count = shape_[inner], padded = extents_[inner];
    const int64_t* from_inner = from_[inner].data();
    const int64_t* to_inner = to_[inner].data();
#pragma omp parallel for schedule(static) if (total > 16384)
    for (int64_t row = 0; row < total / padded; ++row) {
      int64_t rest = row, from_base = 0, to_base = 0;
      bool inside = true;
      for (size_t k = order_.size() - 1; k-- > 0;) {
        const size_t d = order_[k];
        const int64_t i = rest % extents_[d];
        rest /= extents_[d];
        inside = inside && i < shape_[d];
        if (inside) from_base += from_[d][static_cast<size_t>(i)];
        to_base += to_[d][static_cast<size_t>(i)];
      }
      const int64_t copied = inside ? count : 0;
      for (int64_t i = 0; i < copied; ++i)
        to[to_base + to_inner[i]] = convert_(from[from_base + from_inner[i]]);
      for (int64_t i = copied; i < padded; ++i) to[to_base + to_inner[i]] = To{};
    }
    return {};
  }

 private:
  Shape shape_, extents_;  // logical, and padded to the target's blocks
  std::vector<size_t> order_;
  std::vector<std::vector<int64_t>> from_, to_;
  Convert convert_;
};

template <typename From, typename To, typename Convert>
std::unique_ptr<Kernel> make_kernel(const Shape& shape, const Layout& from, const Layout& to,
                                    Convert convert) {
  return std::make_unique<ConversionKernel<From, To, Convert>>(shape, from, to, convert);
}

template <typename T>
std::unique_ptr<Kernel> make_move(const Shape& shape, const Layout& from, const Layout& to) {
  return make_kernel<T, T>(shape, from, to, [](T x) { return x; });
}

template <DType kFrom, DType kTo>
std::unique_ptr<Kernel> make_cast(const Shape& shape, const Layout& from, const Layout& to) {
  using Source = typename Element<kFrom>::Stored;
  using Target = typename Element<kTo>::Stored;
  return make_kernel<Source, Target>(shape, from, to, [](Source x) {
    return Element<kTo>::store(static_cast<double>(Element<kFrom>::load(x)));
  });
}

template <DType kFrom>
std::unique_ptr<Kernel> make_cast_to(DType dtype, const Shape& shape, const Layout& from,
                                     const Layout& to) {
  switch (dtype) {
    case DType::kFloat32:
      return make_cast<kFrom, DType::kFloat32>(shape, from, to);
    case DType::kFloat64:
      return make_cast<kFrom, DType::kFloat64>(shape, from, to);
    case DType::kFloat16:
      return make_cast<kFrom, DType::kFloat16>(shape, from, to);
    default:
      return make_cast<kFrom, DType::kBFloat16>(shape, from, to);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_conversion_kernel(const TensorType& type, const Encoding& from,
                                                       const Encoding& to) {
  auto refuse = [&](std::string_view why) {
    return unsupported("reference: no conversion from {} to {}: {}", from.to_string(),
                       to.to_string(), why);
  };
  if (from.device != VirtualDevice{} || to.device != VirtualDevice{})
    return refuse("not in the processor's memory");
  const auto rank = static_cast<int64_t>(type.shape.size());
  if (!from.layout.fits(rank) || !to.layout.fits(rank))
    return refuse("the layout does not fit rank " + std::to_string(rank));
  TRY(checked_num_elements(from.layout.physical_shape(type.shape)));
  TRY(checked_num_elements(to.layout.physical_shape(type.shape)));
  if (from.dtype == to.dtype) {
    switch (dtype_size(from.dtype)) {
      case 1:
        return make_move<uint8_t>(type.shape, from.layout, to.layout);
      case 2:
        return make_move<uint16_t>(type.shape, from.layout, to.layout);
      case 4:
        return make_move<uint32_t>(type.shape, from.layout, to.layout);
      default:
        return make_move<uint64_t>(type.shape, from.layout, to.layout);
    }
  }
  if (!is_float(from.dtype) || !is_float(to.dtype)) return refuse("only floats are cast");
  switch (from.dtype) {
    case DType::kFloat32:
      return make_cast_to<DType::kFloat32>(to.dtype, type.shape, from.layout, to.layout);
    case DType::kFloat64:
      return make_cast_to<DType::kFloat64>(to.dtype, type.shape, from.layout, to.layout);
    case DType::kFloat16:
      return make_cast_to<DType::kFloat16>(to.dtype, type.shape, from.layout, to.layout);
    default:
      return make_cast_to<DType::kBFloat16>(to.dtype, type.shape, from.layout, to.layout);
  }
}

}  // namespace collage
