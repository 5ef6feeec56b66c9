// Random numbers. Each node draws from a stream of its own (ops/counter_random.h), whose key is its
// attribute "seed" or, without one, made of the name of its output; each run draws anew.
#include <bit>
#include <string>

#include "base/hash.h"
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// The arguments of a random operator.
Result<std::vector<Expr>> stream_of_key(NodeContext& node, int64_t key) {
  return std::vector<Expr>{node.constant_of(Tensor::scalar<int64_t>(key)),
                           TRY(node.call("random.run", {}))};
}

// The bits of the seed as a float; only Dropout has seeds of another kind.
Result<std::vector<Expr>> stream_of(NodeContext& node) {
  int64_t key = 0;
  if (node.has_attr("seed")) {
    key = std::bit_cast<int32_t>(static_cast<float>(TRY(node.real("seed"))));
  } else {
    key = std::stoll(sha256_hex(node.output_name()).substr(0, 15), nullptr, 16);
  }
  return stream_of_key(node, key);
}

Result<Expr> uniform(NodeContext& node, const std::vector<Expr>& stream, const Shape& shape) {
  return node.call("random.uniform", stream, {{"shape", shape}});
}

// The type of attribute "dtype", or the fallback.
Result<DType> type_of(const NodeContext& node, DType fallback) {
  return node.has_attr("dtype") ? node.element_type("dtype") : Result<DType>(fallback);
}

Converter random(const char* op, const char* first, const char* second, double fallback) {
  return single([=](NodeContext& node) -> Result<Expr> {
    const bool like = node.num_inputs() > 0;
    const Shape shape = like ? node.shape(0) : TRY(node.ints("shape"));
    TRY(check_computed_shape(shape));
    const DType dtype = TRY(type_of(node, like ? node.dtype(0) : DType::kFloat32));
    return node.call(op, TRY(stream_of(node)),
                     {{"shape", shape},
                      {first, TRY(node.real(first, 0.0))},
                      {second, TRY(node.real(second, fallback))},
                      {"dtype", dtype}});
  });
}

// 1 with the probability that the data says.
Result<Expr> convert_bernoulli(NodeContext& node) {
  const DType dtype = TRY(type_of(node, node.dtype(0)));
  Expr drawn = TRY(uniform(node, TRY(stream_of(node)), node.shape(0)));
  Expr chance = node.in(0);
  if (dtype_of(chance) == DType::kFloat64) drawn = TRY(node.cast(drawn, DType::kFloat64));
  chance = TRY(node.cast(chance, dtype_of(drawn)));
  return node.cast(TRY(node.call("less", {drawn, chance})), dtype);
}

// Classes by their log-probabilities: as many as have a running sum of probabilities that is not
// above the number drawn.
Result<Expr> convert_multinomial(NodeContext& node) {
  const DType dtype = TRY(type_of(node, DType::kInt32));
  const int64_t count = TRY(node.integer("sample_size", 1));
  if (node.rank(0) != 2 || node.shape(0)[1] < 1 || !is_float(node.dtype(0)))
    return bad_model("data of shape {}", shape_to_string(node.shape(0)));
  if (count < 1 || count > INT32_MAX) return bad_model("sample_size is {}", count);
  const int64_t batch = node.shape(0)[0], classes = node.shape(0)[1];
  Expr data = TRY(node.cast(node.in(0), DType::kFloat32));
  Expr chances = TRY(node.call("nn.softmax", {data}, {{"axis", int64_t{1}}}));
  Expr sums = TRY(node.call("cumsum", {chances}, {{"axis", int64_t{1}}}));
  sums = TRY(node.call("strided_slice", {sums},
                       {{"begin", Ints{0}}, {"end", Ints{classes - 1}}, {"axes", Ints{1}}}));
  sums = TRY(node.reshape(sums, {batch, 1, classes - 1}));
  Expr drawn = TRY(uniform(node, TRY(stream_of(node)), {batch, count, 1}));
  Expr passed = TRY(node.call("less_equal", {sums, drawn}));
  return node.call("sum", {TRY(node.cast(passed, dtype))},
                   {{"axis", Ints{2}}, {"keepdims", false}});
}

bool is_constant(const Expr& expr, double value) {
  const auto* constant = as<ConstantNode>(expr);
  return constant != nullptr && constant->value.size() == 1 &&
         constant->value.element_as_double(0) == value;
}

// One value as a scalar of that type.
Result<Expr> single_value(NodeContext& node, size_t input, DType dtype, const char* name) {
  if (num_elements(node.shape(input)) != 1) return bad_model("{} is no single value", name);
  return node.cast(TRY(node.reshape(node.in(input), {})), dtype);
}

// Training: elements are dropped, the rest grows by 1 / (1 - ratio). `training` is null where it
// is known to be true.
Result<Outputs> drop(NodeContext& node, const Expr& ratio, const Expr& training) {
  Expr one = TRY(node.scalar_like(ratio, 1));
  Expr scale = TRY(node.call("divide", {one, TRY(node.call("subtract", {one, ratio}))}));
  const std::vector<Expr> stream = node.has_attr("seed")
                                       ? TRY(stream_of_key(node, TRY(node.integer("seed"))))
                                       : TRY(stream_of(node));
  Expr kept = TRY(node.call("greater_equal", {TRY(uniform(node, stream, node.shape(0))), ratio}));
  if (training != nullptr) {
    kept = TRY(node.call("logical_or", {kept, TRY(node.call("logical_not", {training}))}));
    scale = TRY(node.call("where", {training, scale, one}));
  }
  Expr grown = TRY(node.call("multiply", {node.in(0), TRY(node.cast(scale, node.dtype(0)))}));
  Expr result = TRY(node.call("where", {kept, grown, TRY(node.scalar_like(grown, 0))}));
  return Outputs{std::move(result), std::move(kept)};
}

// The identity but in training; the second output says which elements were kept.
Result<Outputs> convert_dropout(NodeContext& node) {
  Expr ratio = TRY(node.scalar(DType::kFloat32, 0.5));
  if (node.has(1)) ratio = TRY(single_value(node, 1, DType::kFloat32, "ratio"));
  Expr training;
  if (node.has(2)) training = TRY(single_value(node, 2, DType::kBool, "training_mode"));
  if (training != nullptr && !is_constant(training, 0) && !is_constant(ratio, 0))
    return drop(node, ratio, is_constant(training, 1) ? nullptr : training);
  Outputs outputs = {node.in(0)};
  if (node.wants(1)) outputs.push_back(TRY(node.full(DType::kBool, node.shape(0), 1)));
  return outputs;
}

}  // namespace

ConverterRows random_converters() {
  return {
      {"Bernoulli", 1, 1, single(convert_bernoulli)},
      {"Dropout", 1, 3, convert_dropout},
      {"Multinomial", 1, 1, single(convert_multinomial)},
      {"RandomNormal", 0, 0, random("random.normal", "mean", "scale", 1.0)},
      {"RandomNormalLike", 1, 1, random("random.normal", "mean", "scale", 1.0)},
      {"RandomUniform", 0, 0, random("random.uniform", "low", "high", 1.0)},
      {"RandomUniformLike", 1, 1, random("random.uniform", "low", "high", 1.0)},
  };
}

}  // namespace collage::frontend
