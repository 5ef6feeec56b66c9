// Everything but convolutions and products: pooling, reductions, normalisation, resizing, moving
// and elementwise chains.
#include <gmock/gmock.h>

#include <functional>
#include <regex>

#include "backend/onednn/check.h"
#include "backend/onednn/onednn_backend.h"
#include "runtime/saved_kernel.h"
#include "runtime/thread_team.h"

namespace collage::testing {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;
using Build = std::function<Expr(Graph&)>;

struct Case {
  const char* name;
  Build build;
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

class Families : public ::testing::TestWithParam<Case> {};

TEST_P(Families, MatchTheReference) {
  Graph graph;
  check(graph.function(GetParam().build(graph)), 5e-6);
}

Build call(std::string op, Shape shape, Attrs attrs = {}) {
  return [=](Graph& graph) { return graph.call(op, {graph.input(shape)}, attrs); };
}
Attrs pool(Ints size, Ints strides, Ints padding, bool ceil = false, int include = -1) {
  Attrs attrs = {
      {"pool_size", size}, {"strides", strides}, {"padding", padding}, {"ceil_mode", ceil}};
  if (include >= 0) attrs.set("count_include_pad", include == 1);
  return attrs;
}

INSTANTIATE_TEST_SUITE_P(
    Poolings, Families,
    ::testing::
        Values(
            Case{"max", call("nn.max_pool2d", {1, 32, 12, 12}, pool({3, 3}, {2, 2}, {1, 1, 1, 1}))},
            Case{"max_odd",
                 call("nn.max_pool2d", {2, 7, 9, 11}, pool({2, 3}, {1, 2}, {0, 1, 1, 0}))},
            Case{"max_ceil",
                 call("nn.max_pool2d", {1, 16, 13, 13}, pool({3, 3}, {2, 2}, {0, 0, 0, 0}, true))},
            Case{"max_1d", call("nn.max_pool1d", {1, 8, 20}, pool({3}, {2}, {1, 1}))},
            Case{"max_3d",
                 call("nn.max_pool3d", {1, 8, 4, 8, 8},
                      pool({2, 2, 2}, {2, 2, 2}, {0, 0, 0, 0, 0, 0}))},
            Case{"avg", call("nn.avg_pool2d", {1, 32, 12, 12},
                             pool({3, 3}, {1, 1}, {1, 1, 1, 1}, false, 0))},
            Case{"avg_include", call("nn.avg_pool2d", {1, 17, 12, 12},
                                     pool({3, 3}, {2, 2}, {1, 1, 1, 1}, false, 1))},
            Case{"avg_ceil",
                 call("nn.avg_pool2d", {1, 16, 12, 12},
                      pool({3, 3}, {2, 2}, {0, 0, 0, 0}, true, 0))},
            Case{"avg_batch", call("nn.avg_pool2d", {3, 16, 8, 8},
                                   pool({2, 2}, {2, 2}, {0, 0, 0, 0}, false, 1))},
            Case{"global_avg", call("nn.global_avg_pool2d", {2, 48, 7, 7})},
            Case{"global_avg_odd", call("nn.global_avg_pool2d", {1, 13, 5, 6})},
            Case{"global_max", call("nn.global_max_pool2d", {1, 32, 7, 7})},
            Case{"global_avg_3d", call("nn.global_avg_pool3d", {1, 16, 2, 5, 5})},
            Case{
                "max_then_relu",
                [](Graph& graph) {
                  Expr y = graph.call("nn.max_pool2d", {graph.input({1, 16, 8, 8})},
                                      pool({2, 2}, {2, 2}, {0, 0, 0, 0}));
                  return graph.call("nn.relu", {y});
                }}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Reductions, Families,
    ::testing::
        Values(
            Case{"mean_last", call("mean", {4, 7, 33}, {{"axis", Ints{-1}}, {"keepdims", true}})},
            Case{"mean_spatial",
                 call("mean", {2, 16, 5, 5}, {{"axis", Ints{2, 3}}, {"keepdims", true}})},
            Case{"mean_spatial_dropped", call("mean", {2, 16, 5, 5}, {{"axis", Ints{2, 3}}})},
            Case{"max_spatial",
                 call("max", {2, 19, 5, 5}, {{"axis", Ints{2, 3}}, {"keepdims", true}})},
            Case{"sum_all", call("sum", {3, 5, 7})},
            Case{"min_last", call("min", {3, 5, 7}, {{"axis", Ints{2}}})},
            Case{"max_last_two", call("max", {3, 5, 7}, {{"axis", Ints{1, 2}}})},
            Case{
                "sum_then_sqrt",
                [](Graph& graph) {
                  Expr y = graph.call("abs", {graph.input({6, 9})});
                  y = graph.call("sum", {graph.input({6, 9})}, {{"axis", Ints{1}}});
                  return graph.call("multiply", {y, graph.scalar(0.5f)});
                }}),
    [](const auto& info) { return info.param.name; });

// Two pooled images added, as in NASNet's cells; and everything else followed by a residual and a
// gate per channel.
Build with_residual(Build anchor) {
  return [=](Graph& graph) {
    Expr y = anchor(graph);
    y = graph.call("add", {y, graph.input(y->tensor_type().shape)});
    return graph.call("nn.relu", {y});
  };
}
Build with_gate(Build anchor) {
  return [=](Graph& graph) {
    Expr y = anchor(graph);
    const Shape& shape = y->tensor_type().shape;
    return graph.call("multiply", {y, graph.input({1, shape[1], 1, 1})});
  };
}
Build average(Shape shape) {
  return call("nn.avg_pool2d", shape, pool({3, 3}, {1, 1}, {1, 1, 1, 1}, false, 0));
}
Build maximum(Shape shape) {
  return call("nn.max_pool2d", shape, pool({3, 3}, {2, 2}, {1, 1, 1, 1}));
}
Build doubled(Shape shape) {
  return call("image.resize2d", shape,
              {{"size", Ints{shape[2] * 2, shape[3] * 2}},
               {"method", std::string("nearest_neighbor")},
               {"coordinate_transformation_mode", std::string("asymmetric")},
               {"rounding_method", std::string("floor")}});
}
Build two_joined(Shape shape) {
  return [=](Graph& graph) {
    return graph.call("concatenate", {make_tuple({graph.input(shape), graph.input(shape)})},
                      {{"axis", int64_t{1}}});
  };
}
INSTANTIATE_TEST_SUITE_P(
    Followed, Families,
    ::testing::Values(
        Case{"average", with_residual(average({1, 64, 14, 14}))},
        Case{"average_odd", with_residual(average({2, 19, 9, 9}))},
        Case{"average_small", with_residual(average({1, 128, 7, 7}))},
        Case{"average_gate", with_gate(average({2, 24, 9, 9}))},
        Case{"maximum", with_residual(maximum({1, 64, 14, 14}))},
        Case{"maximum_odd", with_residual(maximum({2, 19, 9, 9}))},
        Case{"maximum_gate", with_gate(maximum({2, 24, 9, 9}))},
        Case{"global", with_residual(call("nn.global_avg_pool2d", {2, 48, 7, 7}))},
        Case{"global_gate", with_gate(call("nn.global_avg_pool2d", {1, 48, 7, 7}))},
        Case{"doubled", with_residual(doubled({1, 32, 7, 7}))},
        Case{"doubled_odd", with_residual(doubled({2, 19, 5, 6}))},
        Case{"doubled_gate", with_gate(doubled({2, 24, 9, 9}))},
        Case{"concat", with_residual(two_joined({1, 32, 7, 7}))},
        Case{"concat_gate", with_gate(two_joined({1, 12, 7, 7}))},
        Case{"softmax", with_residual(call("nn.softmax", {2, 24, 6, 5}))},
        Case{"softmax_channels",
             with_residual(call("nn.softmax", {2, 24, 6, 5}, {{"axis", int64_t{1}}}))},
        Case{"mean", with_residual(call("mean", {2, 24, 6, 5},
                                        {{"axis", Ints{2, 3}}, {"keepdims", true}}))},
        Case{"mean_last",
             with_residual(call("mean", {2, 24, 6, 5}, {{"axis", Ints{3}}, {"keepdims", true}}))}),
    [](const auto& info) { return info.param.name; });

Build layer_norm(Shape shape) {
  return [=](Graph& graph) {
    int64_t width = shape.back();
    return graph.call("nn.layer_norm",
                      {graph.input(shape), graph.constant({width}), graph.constant({width})});
  };
}
INSTANTIATE_TEST_SUITE_P(
    Normalisations, Families,
    ::testing::Values(Case{"softmax", call("nn.softmax", {2, 4, 9, 33})},
                      Case{"softmax_row", call("nn.softmax", {1, 1000})},
                      Case{"softmax_channels",
                           call("nn.softmax", {2, 21, 6, 5}, {{"axis", int64_t{1}}})},
                      Case{"log_softmax", call("nn.log_softmax", {5, 17})},
                      Case{"layer_norm", layer_norm({2, 5, 48})},
                      Case{"layer_norm_odd", layer_norm({7, 19})},
                      Case{"layer_norm_residual", with_residual(layer_norm({3, 9, 40}))},
                      Case{"softmax_scaled",
                           [](Graph& graph) {
                             Expr y = graph.call("nn.softmax", {graph.input({3, 40})});
                             return graph.call("multiply", {y, graph.input({3, 40})});
                           }}),
    [](const auto& info) { return info.param.name; });

Attrs resize(Ints size, std::string method, std::string mode, std::string rounding) {
  return {{"size", size},
          {"method", method},
          {"coordinate_transformation_mode", mode},
          {"rounding_method", rounding}};
}
INSTANTIATE_TEST_SUITE_P(
    Movements, Families,
    ::testing::Values(
        Case{"upsample", call("image.resize2d", {1, 16, 6, 7},
                              resize({12, 14}, "nearest_neighbor", "asymmetric", "floor"))},
        Case{"upsample_odd", call("image.resize2d", {2, 5, 4, 4},
                                  resize({12, 8}, "nearest_neighbor", "half_pixel", "round"))},
        Case{"bilinear", call("image.resize2d", {1, 16, 5, 6},
                              resize({10, 15}, "linear", "half_pixel", ""))},
        Case{"concat_channels",
             [](Graph& graph) {
               return graph.call("concatenate",
                                 {make_tuple({graph.input({1, 16, 5, 5}), graph.input({1, 32, 5, 5}),
                                              graph.constant({1, 16, 5, 5})})},
                                 {{"axis", int64_t{1}}});
             }},
        Case{"concat_odd_channels_then_relu",
             [](Graph& graph) {
               Expr y = graph.call("concatenate",
                                   {make_tuple({graph.input({2, 5, 4, 4}), graph.input({2, 7, 4, 4})})},
                                   {{"axis", int64_t{1}}});
               return graph.call("nn.relu", {y});
             }},
        Case{"concat_rows",
             [](Graph& graph) {
               return graph.call("concatenate",
                                 {make_tuple({graph.input({3, 8}), graph.input({4, 8})})},
                                 {{"axis", int64_t{0}}});
             }},
        Case{"concat_twice_the_same",
             [](Graph& graph) {
               Expr x = graph.input({1, 16, 4, 4});
               return graph.call("concatenate", {make_tuple({x, x})}, {{"axis", int64_t{-1}}});
             }},
        Case{"heads", call("transpose", {1, 9, 4, 16}, {{"axes", Ints{0, 2, 1, 3}}})},
        Case{"transpose", call("transpose", {5, 7})},
        Case{"slice", call("strided_slice", {1, 32, 9, 9},
                           {{"begin", Ints{16, 2}}, {"end", Ints{32, 8}}, {"axes", Ints{1, 2}}})},
        Case{"slice_odd", call("strided_slice", {2, 7, 9, 9},
                               {{"begin", Ints{1, 3}}, {"end", Ints{2, 6}}, {"axes", Ints{0, 1}}})},
        Case{"slice_steps", call("strided_slice", {1, 8, 9, 9},
                                 {{"begin", Ints{0, 1}},
                                  {"end", Ints{9, 9}},
                                  {"strides", Ints{2, 3}},
                                  {"axes", Ints{2, 3}}})},
        Case{"pad", [](Graph& graph) {
               return graph.call("nn.pad", {graph.input({1, 16, 5, 5}), graph.scalar(0.f)},
                                 {{"pad_width", IntLists{{0, 0}, {0, 0}, {1, 2}, {0, 1}}}});
             }}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Elementwise, Families,
    ::testing::Values(
        Case{"relu", call("nn.relu", {2, 19, 5, 5})},
        Case{"sigmoid_padded_blocks", call("sigmoid", {1, 19, 5, 5})},
        Case{"scalar", call("tanh", {})}, Case{"rank_seven", call("exp", {1, 2, 1, 2, 1, 2, 3})},
        Case{"add_relu",
             [](Graph& graph) {
               Expr y = graph.call("add", {graph.input({1, 16, 7, 7}), graph.input({1, 16, 7, 7})});
               return graph.call("nn.relu", {y});
             }},
        Case{"per_channel",
             [](Graph& graph) {
               Expr y =
                   graph.call("multiply", {graph.input({2, 24, 5, 5}), graph.constant({24, 1, 1})});
               return graph.call("add", {y, graph.constant({1, 24, 1, 1})});
             }},
        Case{"per_channel_odd",
             [](Graph& graph) {
               return graph.call("multiply",
                                 {graph.input({2, 19, 5, 5}), graph.input({2, 19, 1, 1})});
             }},
        Case{"gate",
             [](Graph& graph) {
               return graph.call("multiply",
                                 {graph.input({1, 32, 1, 1}), graph.input({1, 32, 6, 6})});
             }},
        Case{"per_column",
             [](Graph& graph) {
               return graph.call("subtract", {graph.input({3, 5, 40}), graph.constant({40})});
             }},
        Case{"per_row",
             [](Graph& graph) {
               return graph.call("divide", {graph.input({3, 5, 40}), graph.input({3, 5, 1})});
             }},
        Case{"divide",
             [](Graph& graph) {
               Expr low = graph.call("exp", {graph.input({6, 40})});
               Graph other;
               return graph.call("divide", {low, graph.constant({6, 40}, 0.5, 2)});
             }},
        Case{"map",
             [](Graph& graph) {
               return graph.call("add", {graph.input({2, 16, 6, 6}), graph.constant({6, 6})});
             }},
        Case{"nasrnn",
             [](Graph& graph) {
               Expr y = graph.call("tanh", {graph.input({1, 2560})});
               return graph.call("multiply", {y, graph.input({1, 2560})});
             }},
        Case{"itself",
             [](Graph& graph) {
               Expr x = graph.input({4, 17});
               return graph.call("multiply", {x, x});
             }}),
    [](const auto& info) { return info.param.name; });

TEST(Elementwise, IsOfferedInEveryLayoutOfAnImage) {
  Graph graph;
  EXPECT_THAT(check(graph.function(graph.call("nn.relu", {graph.input({1, 19, 8, 8})}))).layouts,
              SizeIs(3));
}

TEST(Elementwise, IsPlainWhereLayoutsCoincide) {
  Graph graph;
  Checked checked = check(graph.function(graph.call("nn.relu", {graph.input({1, 32, 1, 1})})));
  EXPECT_THAT(checked.variants, SizeIs(1));
  EXPECT_THAT(checked.layouts, Contains("plain"));
}

TEST(Elementwise, RefusesOtherTypesAndEmptyTensors) {
  Graph graph;
  Expr x = make_var("x", TensorType{{4}, DType::kInt32});
  EXPECT_NE(refusal(make_function({x}, graph.call("nn.relu", {x}))), "");
  EXPECT_NE(refusal(graph.function(graph.call("nn.relu", {graph.input({0, 4})}))), "");
}

// In the plain layout it transposes into a scratchpad, argument 80.
TEST(Pooling, IsNotLoadedWithoutItsScratchpad) {
  Graph graph;
  const Function function = graph.function(maximum({1, 32, 12, 12})(graph));
  const auto backend = make_onednn_backend();
  const Target target{"onednn", {}, {}};
  const TeamScope team(1);
  const auto variants = backend->variants(function, target, {});
  ASSERT_TRUE(variants.ok()) << variants.status().to_string();
  int lacking = 0;
  for (const Variant& variant : *variants) {
    const auto kernel = backend->compile(function, variant, target, {});
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    SavedKernel saved = (*kernel)->save().value();
    saved.buffers = buffers_of(function, variant);
    const KernelLoader* loader = find_kernel_loader(saved.loader);
    ASSERT_TRUE(loader->load(saved, 1).ok());
    const std::string without =
        std::regex_replace(saved.description, std::regex(R"(,\[80,\d+\])"), "");
    if (without == saved.description) continue;
    saved.description = without;
    EXPECT_THAT(loader->load(saved, 1).status().to_string(),
                ::testing::HasSubstr("lacks the memory that it computes in"));
    ++lacking;
  }
  EXPECT_GE(lacking, 1);
}

TEST(Pooling, RefusesWindowsThatSeeOnlyPadding) {
  Graph graph;
  Expr y =
      graph.call("nn.max_pool2d", {graph.input({1, 8, 4, 4})}, pool({1, 1}, {1, 1}, {1, 1, 1, 1}));
  EXPECT_NE(refusal(graph.function(y)), "");
}

}  // namespace
}  // namespace collage::testing
