#include "backend/native/integers/integer_products.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

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

/// A constant matrix; its columns are those of the result.
struct Weights {
  const Tensor* values = nullptr;
  int64_t columns = 0, terms = 0;
  bool transposed = false;  ///< a column's terms lie side by side

  /// Calls visit(column, term, element) in the order in which they lie in memory.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    const float* element = values->data<float>();
    for (int64_t i = 0; i < (transposed ? columns : terms); ++i)
      for (int64_t j = 0; j < (transposed ? terms : columns); ++j, ++element)
        visit(transposed ? i : j, transposed ? j : i, static_cast<double>(*element));
  }
};

bool is_matrix_product(const CallNode& call) {
  return call.op != nullptr && (call.op->name == "nn.dense" || call.op->name == "nn.matmul");
}

/// Nothing where the call is no product of enough rows with a constant matrix.
std::optional<Weights> weights_of(const CallNode& call) {
  if (!is_matrix_product(call)) return std::nullopt;
  const bool dense = call.op->name == "nn.dense";
  const auto* constant = as<ConstantNode>(call.args[1]);
  if (constant == nullptr || constant->value.dtype() != DType::kFloat32 ||
      constant->value.shape().size() != 2 || (!dense && call.attrs.flag("transpose_a")))
    return std::nullopt;
  const Shape& shape = constant->value.shape();
  const bool transposed = dense || call.attrs.flag("transpose_b");
  const Weights weights{&constant->value, shape[transposed ? 0 : 1], shape[transposed ? 1 : 0],
                        transposed};
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

/// Nothing where some weight is infinite or no number.
std::optional<IntegerWeights> rounded(const Weights& weights) {
  const double rounding = rounding_of_norm(weights.terms);
  const double norm_limit = kSumLimit / (kNorm + rounding) - rounding;
  const auto there = static_cast<size_t>(weights.columns);
  std::vector<double> largest(there), squares(there), units(there, 1);
  weights.for_each([&](int64_t column, int64_t, double value) {
    const auto j = static_cast<size_t>(column);
    largest[j] = std::max(largest[j], std::abs(value));
    squares[j] += value * value;
  });
  IntegerWeights integers;
  integers.units = Tensor::empty(DType::kFloat32, {weights.columns});
  double largest_of_all = 0, largest_unit = 0;
  for (size_t j = 0; j < there; ++j) {
    if (!std::isfinite(squares[j])) return std::nullopt;
    if (largest[j] > 0) {
      units[j] = std::max(largest[j] / kLargest, std::sqrt(squares[j]) / norm_limit);
      largest_unit = std::max(largest_unit, units[j]);
      largest_of_all = std::max(largest_of_all, largest[j]);
    }
    integers.units.data<float>()[j] = static_cast<float>(units[j]);
  }
  integers.rounding =
      std::max(rounding / kNorm, largest_of_all > 0 ? largest_unit / 2 / largest_of_all : 0.0);
  const int64_t columns = padded(weights.columns);
  integers.values =
      Tensor::zeros(DType::kInt32, weights.transposed ? Shape{columns, weights.terms}
                                                      : Shape{weights.terms, columns});
  int32_t* to = integers.values.data<int32_t>();
  weights.for_each([&](int64_t column, int64_t term, double value) {
    const int64_t at = weights.transposed ? column * weights.terms + term : term * columns + column;
    to[at] = static_cast<int32_t>(std::lrint(value / units[static_cast<size_t>(column)]));
  });
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
    const auto integers = weights ? rounded(*weights) : std::nullopt;
    if (!integers) return rebuilt;
    made.rounding = std::max(made.rounding, integers->rounding);
    const auto [data, unit] = TRY(rounded_data(call->args[0]));
    Expr sums = TRY(make_call(call->op->name, {data, make_constant(integers->values)},
                              attributes_of(*call), call->origin()));
    if (sums->type() != Type(TensorType{rebuilt->tensor_type().shape, DType::kInt32}))
      sums =
          TRY(call_of("strided_slice", {sums},
                      {{"begin", Ints{0}}, {"end", Ints{weights->columns}}, {"axes", Ints{-1}}}));
    const Expr reals = TRY(call_of("cast", {sums}, {{"dtype", std::string("float32")}}));
    const Expr units = TRY(call_of("multiply", {unit, make_constant(integers->units)}));
    return call_of("multiply", {reals, units});
  });
  made.function = TRY(rewriter.rewrite(flat));
  if (made.rounding == 0) return unsupported("native: no products with constant matrices");
  return made;
}

}  // namespace collage::native
