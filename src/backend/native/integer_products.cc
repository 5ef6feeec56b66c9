#include "backend/native/integer_products.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/integers.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage::native {
namespace {

constexpr int64_t kFewestRows = 5;
constexpr double kLargest = (1 << 15) - 1;
/// The norm of a row of the data before it is rounded; that of a column may be as large.
constexpr double kNorm = 46000;
/// Norms are computed in float32: what they may err by is left of 2^31, as far as a million terms.
constexpr double kSumLimit = 0.99 * 0x1p31;
constexpr int64_t kMostTerms = 1 << 20;
constexpr float kLeast = 1e-30f;  // of a row's largest number: float32 holds the inverse

/// A constant matrix by the columns of the result.
struct Weights {
  const Tensor* values = nullptr;
  int64_t columns = 0, terms = 0;
  int64_t column_stride = 0, term_stride = 0;
  bool transposed = false;  ///< a column's terms lie side by side

  template <typename Visit>
  void for_each(int64_t column, const Visit& visit) const {
    for (int64_t k = 0, at = column * column_stride; k < terms; ++k, at += term_stride) visit(at);
  }
};

bool is_product(const CallNode& call) {
  return call.op != nullptr && (call.op->name == "nn.dense" || call.op->name == "nn.matmul");
}

/// Nothing where the call is no product of enough rows with a constant matrix.
std::optional<Weights> weights_of(const CallNode& call) {
  if (!is_product(call)) return std::nullopt;
  const bool dense = call.op->name == "nn.dense";
  const auto* constant = as<ConstantNode>(call.args[1]);
  if (constant == nullptr || constant->value.dtype() != DType::kFloat32 ||
      constant->value.shape().size() != 2 || (!dense && call.attrs.flag("transpose_a")))
    return std::nullopt;
  const Shape& shape = constant->value.shape();
  const bool transposed = dense || call.attrs.flag("transpose_b");
  Weights weights{&constant->value, shape[0], shape[1], shape[1], 1, true};
  if (!transposed) weights = {&constant->value, shape[1], shape[0], 1, shape[1], false};
  const bool few_rows = num_elements(call.tensor_type().shape) < kFewestRows * weights.columns;
  return few_rows || weights.terms > kMostTerms ? std::nullopt : std::optional(weights);
}

/// Columns are whole vectors, in tiles of several where there are many.
int64_t padded(int64_t columns) {
  constexpr int64_t kVector = 16, kTile = 64, kMany = 512;
  if (columns % kVector == 0) return columns;
  return round_up(columns, columns < kMany ? kVector : kTile);
}

struct IntegerWeights {
  Tensor values, units;  ///< of padded columns, which are zero, and of those there are
  double rounding = 0;
};

/// Half a unit for each element, by which rounding may change a vector of so many.
double rounding_of_norm(int64_t terms) { return 0.5 * std::sqrt(static_cast<double>(terms)); }

IntegerWeights rounded(const Weights& weights) {
  const float* from = weights.values->data<float>();
  const double rounding = rounding_of_norm(weights.terms);
  const double norm_limit = kSumLimit / (kNorm + rounding) - rounding;
  IntegerWeights integers;
  const int64_t columns = padded(weights.columns);
  integers.values =
      Tensor::zeros(DType::kInt32, weights.transposed ? Shape{columns, weights.terms}
                                                      : Shape{weights.terms, columns});
  integers.units = Tensor::empty(DType::kFloat32, {weights.columns});
  double largest_of_all = 0, largest_unit = 0;
  for (int64_t j = 0; j < weights.columns; ++j) {
    double largest = 0, squares = 0;
    weights.for_each(j, [&](int64_t at) {
      const double value = static_cast<double>(from[at]);
      largest = std::max(largest, std::abs(value));
      squares += value * value;
    });
    const double unit =
        largest > 0 ? std::max(largest / kLargest, std::sqrt(squares) / norm_limit) : 1;
    integers.units.data<float>()[j] = static_cast<float>(unit);
    int32_t* to = integers.values.data<int32_t>() + (weights.transposed ? j * weights.terms : j);
    weights.for_each(j, [&](int64_t at) {
      *to = static_cast<int32_t>(std::lrint(static_cast<double>(from[at]) / unit));
      to += weights.transposed ? 1 : columns;
    });
    largest_of_all = std::max(largest_of_all, largest);
    if (largest > 0) largest_unit = std::max(largest_unit, unit);
  }
  integers.rounding =
      std::max(rounding / kNorm, largest_of_all > 0 ? largest_unit / 2 / largest_of_all : 0.0);
  return integers;
}

/// But for the number of columns, which the weights say.
Attrs attributes_of(const CallNode& product) {
  Attrs attrs;
  for (const auto& [name, value] : product.attrs.entries())
    if (name != "units" && name != "out_dtype") attrs.set(name, value);
  return attrs;
}

Result<Expr> call_of(const char* op, std::vector<Expr> args, Attrs attrs = {}) {
  return make_call(op, std::move(args), std::move(attrs));
}

/// q and the units of its rows, whose norms, with one more element that is as large as the largest,
/// become kNorm: so no element is more than kNorm / sqrt(2), and what is no number is none.
Result<std::pair<Expr, Expr>> rounded_data(const Expr& x) {
  const Attrs of_rows = {{"axis", Ints{-1}}, {"keepdims", true}};
  const Expr one = make_scalar(1.0f), norm_limit = make_scalar(static_cast<float>(kNorm));
  const Expr size = TRY(call_of("abs", {x}));
  const Expr largest =
      TRY(call_of("maximum", {TRY(call_of("max", {size}, of_rows)), make_scalar(kLeast)}));
  const Expr inverse = TRY(call_of("divide", {one, largest}));
  const Expr part = TRY(call_of("multiply", {x, inverse}));
  const Expr squares = TRY(call_of("sum", {TRY(call_of("multiply", {part, part}))}, of_rows));
  const Expr norm = TRY(call_of("sqrt", {TRY(call_of("add", {squares, one}))}));
  const Expr scale =
      TRY(call_of("multiply", {inverse, TRY(call_of("divide", {norm_limit, norm}))}));
  const Expr narrow = TRY(call_of(
      "qnn.quantize",
      {TRY(call_of("multiply", {x, scale})), one, make_constant(Tensor::zeros(DType::kInt32, {}))},
      {{"out_dtype", std::string("int16")}}));
  const Expr unit = TRY(call_of("multiply", {TRY(call_of("multiply", {largest, norm})),
                                             make_scalar(static_cast<float>(1 / kNorm))}));
  return std::pair(TRY(call_of("cast", {narrow}, {{"dtype", std::string("int32")}})), unit);
}

}  // namespace

Result<IntegerProducts> with_integer_products(const Function& flat) {
  IntegerProducts made;
  Rewriter rewriter([&made](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* call = as<CallNode>(rebuilt);
    const std::optional<Weights> weights = call != nullptr ? weights_of(*call) : std::nullopt;
    if (!weights) return rebuilt;
    const IntegerWeights integers = rounded(*weights);
    made.rounding = std::max(made.rounding, integers.rounding);
    const auto [data, unit] = TRY(rounded_data(call->args[0]));
    Expr sums = TRY(make_call(call->op->name, {data, make_constant(integers.values)},
                              attributes_of(*call), call->origin()));
    if (sums->type() != Type(TensorType{rebuilt->tensor_type().shape, DType::kInt32}))
      sums =
          TRY(call_of("strided_slice", {sums},
                      {{"begin", Ints{0}}, {"end", Ints{weights->columns}}, {"axes", Ints{-1}}}));
    const Expr reals = TRY(call_of("cast", {sums}, {{"dtype", std::string("float32")}}));
    const Expr units = TRY(call_of("multiply", {unit, make_constant(integers.units)}));
    return call_of("multiply", {reals, units});
  });
  made.function = TRY(rewriter.rewrite(flat));
  if (made.rounding == 0) return unsupported("native: no products with constant matrices");
  return made;
}

}  // namespace collage::native
