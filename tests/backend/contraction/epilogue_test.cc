// What may follow a convolution or product in a kernel of the matrix unit, step by step and in
// chains; and what may not.
#include <gmock/gmock.h>

#include <functional>

#include "backend/contraction/check.h"

namespace collage::testing {
namespace {

using ::testing::HasSubstr;

// What follows, as a function from the result; `axis` is that of its channels.
using Follow = std::function<Expr(Graph&, Expr, size_t axis)>;
struct Chain {
  const char* name;
  Follow follow;
};
void PrintTo(const Chain& chain, std::ostream* os) { *os << chain.name; }

Follow unary(std::string op, Attrs attrs = {}) {
  return [=](Graph& graph, Expr x, size_t) { return graph.call(op, {x}, attrs); };
}
Follow gelu(const char* approximate) {
  return unary("nn.gelu", {{"approximate", std::string(approximate)}});
}
// One value a channel, of a shape that the result broadcasts.
Expr channels(Graph& graph, const Expr& x, size_t axis, double scale = 1, double offset = 0) {
  Shape shape(x->tensor_type().shape.size() - axis, 1);
  shape[0] = x->tensor_type().shape[axis];
  return graph.constant(shape, scale, offset);
}
Follow with_channels(std::string op, double offset = 0) {
  return [=](Graph& graph, Expr x, size_t axis) {
    return graph.call(op, {x, channels(graph, x, axis, 1, offset)});
  };
}
Expr residual(Graph& graph, const Expr& x) {
  return graph.call("add", {x, graph.input(x->tensor_type().shape)});
}
Follow then(std::vector<Follow> steps) {
  return [=](Graph& graph, Expr x, size_t axis) {
    for (const Follow& step : steps) x = step(graph, x, axis);
    return x;
  };
}
const Follow kBias = [](Graph& graph, Expr x, size_t axis) {
  const Shape& shape = x->tensor_type().shape;
  return graph.call("nn.bias_add", {x, graph.constant({shape[axis]})},
                    {{"axis", static_cast<int64_t>(axis)}});
};
const Follow kResidual = [](Graph& graph, Expr x, size_t) { return residual(graph, x); };
const Follow kRelu = unary("nn.relu");

using Chains = ContractionsWith<Chain>;

TEST_P(Chains, FollowConvolutionsAndProducts) {
  for (int64_t outputs : {32, 19}) {
    SCOPED_TRACE(outputs);
    Graph image;
    Expr y = conv(image, {{2, 16, 5, 7}, outputs, {3, 3}, {}, {1, 1, 1, 1}});
    check_amx(image.function(GetParam().follow(image, y, 1)));
    Graph matrix;
    y = matrix.call("nn.dense", {matrix.input({21, 48}), matrix.constant({outputs, 48}, 0.2)});
    check_amx(matrix.function(GetParam().follow(matrix, y, 1)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Steps, Chains,
    ::testing::Values(
        Chain{"relu", kRelu}, Chain{"clip", unary("clip", {{"a_min", -0.5}, {"a_max", 0.75}})},
        Chain{"leaky_relu", unary("nn.leaky_relu", {{"alpha", 0.1}})}, Chain{"gelu", gelu("none")},
        Chain{"gelu_tanh", gelu("tanh")}, Chain{"sigmoid", unary("sigmoid")},
        Chain{"silu", unary("nn.silu")}, Chain{"tanh", unary("tanh")}, Chain{"bias_add", kBias},
        Chain{"add", with_channels("add")}, Chain{"subtract", with_channels("subtract")},
        Chain{"multiply", with_channels("multiply")}, Chain{"divide", with_channels("divide", 3)},
        Chain{"add_from_the_left",
              [](Graph& graph, Expr x, size_t axis) {
                return graph.call("add", {channels(graph, x, axis), x});
              }},
        Chain{"multiply_from_the_left",
              [](Graph& graph, Expr x, size_t axis) {
                return graph.call("multiply", {channels(graph, x, axis), x});
              }},
        Chain{"numbers",
              [](Graph& graph, Expr x, size_t) {
                x = graph.call("multiply", {x, graph.scalar(0.3f)});
                x = graph.call("add", {graph.scalar(0.25f), x});
                x = graph.call("subtract", {x, graph.scalar(-0.5f)});
                return graph.call("divide", {x, graph.scalar(4)});
              }},
        Chain{"residual", kResidual},
        Chain{"residual_from_the_left",
              [](Graph& graph, Expr x, size_t) {
                return graph.call("add", {graph.input(x->tensor_type().shape), x});
              }},
        Chain{"two_residuals", then({kResidual, kResidual})},
        Chain{"residual_once_more_after_relu", then({kResidual, kRelu, kResidual})},
        Chain{"bias_residual_relu", then({kBias, kResidual, kRelu})},
        Chain{"residual_bias_relu", then({kResidual, kBias, kRelu})},
        Chain{"relu_bias_residual", then({kRelu, kBias, kResidual})},
        Chain{"two_biases", then({kBias, with_channels("add"), kBias})},
        Chain{"scale_and_shift", then({with_channels("multiply"), kBias, kRelu})},
        Chain{"gelu_between_biases", then({kBias, gelu("none"), kBias})},
        Chain{"activations", then({kBias, unary("nn.silu"), unary("tanh"), gelu("tanh")})},
        Chain{"gelu_then_residual", then({kBias, gelu("tanh"), kResidual})},
        Chain{"clip_then_scale_then_leaky",
              then({kBias, unary("clip", {{"a_min", -1.0}, {"a_max", 6.0}}),
                    with_channels("multiply"), unary("nn.leaky_relu", {{"alpha", 0.2}})})}),
    [](const auto& info) { return info.param.name; });

TEST_F(Contractions, ResidualsMayBeTheImageItself) {
  Graph image;
  Expr x = image.input({1, 24, 9, 9});
  Expr y = image.call("nn.conv2d", {x, image.constant({24, 24, 3, 3}, 0.1)},
                      {{"padding", Ints{1, 1, 1, 1}}});
  check_amx(image.function(image.call("nn.relu", {image.call("add", {y, x})})));
  Graph matrix;
  x = matrix.input({40, 48});
  y = matrix.call("nn.dense", {x, matrix.constant({48, 48}, 0.2)});
  check_amx(matrix.function(matrix.call("add", {x, y})));
}

TEST_F(Contractions, OneResidualTwice) {
  Graph graph;
  Expr y = conv(graph, {{1, 16, 6, 6}, 17, {3, 3}});
  const Expr r = graph.input(y->tensor_type().shape);
  y = graph.call("nn.relu", {graph.call("add", {y, r})});
  check_amx(graph.function(graph.call("add", {y, r})));
}

// Large numbers below zero are multiplied with 0, not with the smallest logistic there is.
TEST_F(Contractions, ActivationsEndAtZero) {
  for (const Follow& activation :
       {gelu("none"), gelu("tanh"), unary("nn.silu"), unary("sigmoid"), unary("tanh")}) {
    Graph graph;
    Expr y = graph.call("nn.dense", {graph.input({21, 48}), graph.constant({40, 48}, 0.2)});
    y = graph.call("multiply", {y, graph.scalar(1e38f)});
    y = graph.call("clip", {activation(graph, y, 1)}, {{"a_min", -3.0}, {"a_max", 1.0}});
    check_amx(graph.function(y));
  }
}

// What is no number stays so, in its own results and in no others, through every step.
TEST_F(MatrixUnit, NaNStaysNaN) {
  for (const Follow& follow :
       {kRelu, unary("clip", {{"a_min", -1.0}, {"a_max", 1.0}}), unary("nn.leaky_relu"),
        gelu("none"), gelu("tanh"), unary("sigmoid"), unary("nn.silu"), unary("tanh"), kBias}) {
    Graph image;
    Expr y = follow(image, conv(image, {{1, 20, 6, 8}, 24, {3, 3}, {2, 1}, {1, 1, 1, 1}}), 1);
    std::vector<Tensor> inputs = random_inputs(image.function(y));
    inputs[0].data<float>()[3 * 48 + 17] = std::numeric_limits<float>::quiet_NaN();
    check_amx(image.function(y), inputs);
    Graph matrix;
    y = matrix.call("nn.dense", {matrix.input({21, 48}), matrix.constant({40, 48}, 0.2)});
    y = follow(matrix, y, 1);
    inputs = random_inputs(matrix.function(y));
    inputs[0].data<float>()[5 * 48 + 47] = std::numeric_limits<float>::quiet_NaN();
    check_amx(matrix.function(y), inputs);
  }
}

TEST(AmxEpilogue, RefusesOtherSteps) {
  const auto reason = [](const Follow& follow) {
    Graph graph;
    Expr y = conv(graph, {{2, 16, 5, 7}, 32, {3, 3}, {}, {1, 1, 1, 1}});
    return refusal(graph.function(follow(graph, y, 1)));
  };
  EXPECT_THAT(reason(unary("exp")), HasSubstr("exp after nn.conv2d"));
  EXPECT_THAT(reason([](Graph& graph, Expr x, size_t) {
                return graph.call("subtract", {graph.scalar(1), x});
              }),
              HasSubstr("subtract"));
  EXPECT_THAT(reason([](Graph& graph, Expr x, size_t) {  // one value a column, not a channel
                return graph.call("add", {x, graph.constant({7})});
              }),
              HasSubstr("add"));
  EXPECT_THAT(reason([](Graph& graph, Expr x, size_t) {
                return graph.call("multiply", {x, graph.input(x->tensor_type().shape)});
              }),
              HasSubstr("multiply"));
  EXPECT_THAT(reason([](Graph& graph, Expr x, size_t) {
                return graph.call("add", {x, x});
              }),
              HasSubstr("a sum of two contractions"));
}

}  // namespace
}  // namespace collage::testing
