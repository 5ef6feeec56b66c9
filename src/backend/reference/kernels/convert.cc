#include "backend/reference/kernels/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "backend/reference/kernels/transfer.h"
#include "base/check.h"
#include "base/integers.h"
#include "ops/half.h"
#include "runtime/saved_fields.h"

namespace collage {

namespace {

using nlohmann::json;

constexpr char kConversionLoader[] = "reference.conversion";

// Every physical coordinate of a layout depends on one logical dimension, so an element's offset is
// a sum of one table entry per dimension. Tables cover the dimension's padded extent; those of an
// empty tensor are empty, however large its other dimensions.
std::vector<std::vector<int64_t>> offset_tables(const Layout& layout, const Shape& shape,
                                                const Shape& extents) {
  std::vector<std::vector<int64_t>> tables(shape.size());
  if (num_elements(shape) == 0) return tables;
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

template <typename T>
struct Move {
  T operator()(T x) const { return x; }
};

Result<SharedBytes> shared(const std::vector<int64_t>& table) {
  const auto held = std::make_shared<Tensor>(
      TRY(Tensor::allocate(DType::kInt64, {static_cast<int64_t>(table.size())})));
  std::copy(table.begin(), table.end(), static_cast<int64_t*>(held->raw()));
  return SharedBytes{{held, held->raw()}, held->bytes()};
}

// Moves one element per step of the innermost loop, converted by Convert.
template <typename From, typename To, typename Convert>
class ConversionKernel : public Kernel {
 public:
  ConversionKernel(const Shape& shape, const Layout& from, const Layout& to, Convert convert,
                   std::string description)
      : shape_(shape),
        extents_(padded_extents(to, shape)),
        order_(loop_order(to, shape.size())),
        from_(offset_tables(from, shape, shape)),
        to_(offset_tables(to, shape, extents_)),
        convert_(convert),
        description_(std::move(description)) {}

  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }
  Result<SavedKernel> save() const override {
    return SavedKernel{kConversionLoader, description_, {}, {}};
  }
  // One loop for each dimension, over its two tables.
  Result<KernelSource> source() const override {
    if (!std::is_same_v<Convert, Move<From>>) return unsupported("a cast between kinds of numbers");
    KernelSource source;
    std::string loops, from = "0", to = "0", inside = "1";
    for (const size_t d : order_) {
      loops += fmt::format("  for (int64_t i{0} = 0; i{0} < {1}; ++i{0})\n", d, extents_[d]);
      const size_t table = source.constants.size();
      from += fmt::format(" + ((const int64_t*)constant[{}])[i{}]", table, d);
      to += fmt::format(" + ((const int64_t*)constant[{}])[i{}]", table + 1, d);
      if (extents_[d] != shape_[d]) inside += fmt::format(" && i{} < {}", d, shape_[d]);
      source.constants.push_back(TRY(shared(from_[d])));
      source.constants.push_back(TRY(shared(to_[d])));
    }
    source.body = fmt::format(
        "{0}    ((uint{1}_t*)out[0])[{2}] = {3} ? ((const uint{1}_t*)in[0])[{4}] : 0;\n  return "
        "0;\n",
        loops, 8 * sizeof(From), to, inside, from);
    return source;
  }
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
  std::string description_;  // what load_conversion reads
};

struct Change {
  const Shape& shape;
  const Layout &from, &to;
  const std::string& description;
};

template <typename From, typename To, typename Convert>
std::unique_ptr<Kernel> make_kernel(const Change& change, Convert convert) {
  return std::make_unique<ConversionKernel<From, To, Convert>>(change.shape, change.from, change.to,
                                                               convert, change.description);
}

template <typename T>
std::unique_ptr<Kernel> make_move(const Change& change) {
  return make_kernel<T, T>(change, Move<T>());
}

template <DType kFrom, DType kTo>
std::unique_ptr<Kernel> make_cast(const Change& change) {
  using Source = typename Element<kFrom>::Stored;
  using Target = typename Element<kTo>::Stored;
  return make_kernel<Source, Target>(change, [](Source x) {
    return Element<kTo>::store(static_cast<double>(Element<kFrom>::load(x)));
  });
}

template <DType kFrom>
std::unique_ptr<Kernel> make_cast_to(DType dtype, const Change& change) {
  switch (dtype) {
    case DType::kFloat32:
      return make_cast<kFrom, DType::kFloat32>(change);
    case DType::kFloat64:
      return make_cast<kFrom, DType::kFloat64>(change);
    case DType::kFloat16:
      return make_cast<kFrom, DType::kFloat16>(change);
    default:
      return make_cast<kFrom, DType::kBFloat16>(change);
  }
}

Result<std::shared_ptr<Kernel>> load_conversion(const SavedKernel& saved, int) {
  const json description = TRY(description_object(saved.description));
  const JsonFields fields(description);
  const TensorType type = TRY(tensor_type_from(*TRY(fields.object("type"))));
  const Encoding from = TRY(encoding_from(*TRY(fields.object("from"))));
  const Encoding to = TRY(encoding_from(*TRY(fields.object("to"))));
  TRY(saved.buffers.input_holds(0, TRY(encoded_bytes(type.shape, from)), from.device));
  TRY(saved.buffers.output_holds(0, TRY(encoded_bytes(type.shape, to)), to.device));
  return std::shared_ptr<Kernel>(TRY(make_conversion_kernel(type, from, to)));
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_conversion_kernel(const TensorType& type, const Encoding& from,
                                                       const Encoding& to) {
  auto refuse = [&](std::string_view why) {
    return unsupported("reference: no conversion from {} to {}: {}", from.to_string(),
                       to.to_string(), why);
  };
  const std::string description =
      json{{"type", to_json(type)}, {"from", to_json(from)}, {"to", to_json(to)}}.dump();
  if (from.device != to.device)
    return make_transfer_kernel(type, from, to, {kConversionLoader, description, {}, {}});
  if (from.device != VirtualDevice{}) return refuse("not in the processor's memory");
  const auto rank = static_cast<int64_t>(type.shape.size());
  if (!from.layout.fits(rank) || !to.layout.fits(rank))
    return refuse("the layout does not fit rank " + std::to_string(rank));
  TRY(checked_num_elements(from.layout.physical_shape(type.shape)));
  TRY(checked_num_elements(to.layout.physical_shape(type.shape)));
  const Change change{type.shape, from.layout, to.layout, description};
  if (from.dtype == to.dtype) {
    switch (dtype_size(from.dtype)) {
      case 1:
        return make_move<uint8_t>(change);
      case 2:
        return make_move<uint16_t>(change);
      case 4:
        return make_move<uint32_t>(change);
      default:
        return make_move<uint64_t>(change);
    }
  }
  if (!is_float(from.dtype) || !is_float(to.dtype)) return refuse("only floats are cast");
  switch (from.dtype) {
    case DType::kFloat32:
      return make_cast_to<DType::kFloat32>(to.dtype, change);
    case DType::kFloat64:
      return make_cast_to<DType::kFloat64>(to.dtype, change);
    case DType::kFloat16:
      return make_cast_to<DType::kFloat16>(to.dtype, change);
    default:
      return make_cast_to<DType::kBFloat16>(to.dtype, change);
  }
}

void register_conversion_loader() {
  register_kernel_loader({kConversionLoader, "1", load_conversion});
}

}  // namespace collage
