// Whatever the graph, the standard pipeline keeps what it computes. Random graphs are made of the
// pieces that the rules look for, correctly and in near misses.
#include <gtest/gtest.h>

#include <random>

#include "ir/op.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/registry.h"
#include "passes/passes.h"
#include "random_tensors.h"

namespace collage {
namespace {

class GraphGenerator {
 public:
  explicit GraphGenerator(uint64_t seed) : seed_(seed), rng_(seed) {}

  Function function(int size) {
    std::vector<Expr> params = {make_var("a", real({2, 4, 6})), make_var("b", real({2, 4, 6})),
                                make_var("c", real({1, 4, 6, 6}))};
    values_ = params;
    for (int i = 0; i < size; ++i) values_.push_back(step());
    std::vector<Expr> results;
    for (size_t i = values_.size() - 3; i < values_.size(); ++i) results.push_back(values_[i]);
    return make_function(params, make_tuple(std::move(results)));
  }

 private:
  static TensorType real(Shape shape) { return {std::move(shape), DType::kFloat32}; }
  size_t below(size_t n) { return rng_() % n; }
  Expr pick() { return values_[below(values_.size())]; }
  static const Shape& shape_of(const Expr& x) { return x->tensor_type().shape; }
  static int64_t rank_of(const Expr& x) { return static_cast<int64_t>(shape_of(x).size()); }
  Expr constant(const Shape& shape) {
    return make_constant(random_tensor(real(shape), seed_ + 31 * ++constants_, 0.5, 1.5));
  }
  Expr scalar() {
    static constexpr float kValues[] = {0.f, 1.f, 2.f, 0.5f, -1.f, 3.f, 6.f, 1.4142135f, 0.25f};
    return make_scalar<float>(kValues[below(std::size(kValues))]);
  }
  Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
    Result<Expr> result = make_call(op, std::move(args), std::move(attrs));
    EXPECT_TRUE(result.ok()) << result.status().to_string();
    return *result;
  }
  // Keeps values from growing over many steps.
  Expr tame(const Expr& x) { return call("tanh", {x}); }

  Expr operand(const Expr& x) {
    switch (below(4)) {
      case 0:
        return scalar();
      case 1:
        return constant({shape_of(x).back()});
      case 2: {
        Shape shape(shape_of(x).size(), 1);
        if (shape.size() > 1) shape[1] = shape_of(x)[1];
        return constant(shape);
      }
      default:
        for (int i = 0; i < 8; ++i)
          if (Expr y = pick(); shape_of(y) == shape_of(x)) return y;
        return x;
    }
  }

  Expr step() {
    Expr x = pick();
    switch (below(12)) {
      case 0:
      case 1: {
        static constexpr std::string_view kOps[] = {"add", "subtract", "multiply", "maximum",
                                                    "minimum"};
        std::string_view op = kOps[below(std::size(kOps))];
        Expr y = operand(x);
        return below(2) ? call(op, {x, y}) : call(op, {y, x});
      }
      case 2: {
        static constexpr std::string_view kOps[] = {"nn.relu",  "sigmoid", "tanh",
                                                    "negative", "copy",    "erf"};
        return call(kOps[below(std::size(kOps))], {x});
      }
      case 3:
        return call("clip", {x}, {{"a_min", -1.0 + static_cast<double>(below(3))}, {"a_max", 2.0}});
      case 4: {
        Ints axes(shape_of(x).size());
        for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
        std::shuffle(axes.begin(), axes.end(), rng_);
        return call("transpose", {x}, {{"axes", axes}});
      }
      case 5: {
        Shape shape = shape_of(x);
        std::shuffle(shape.begin(), shape.end(), rng_);
        if (below(2)) shape.insert(shape.begin() + static_cast<int64_t>(below(shape.size())), 1);
        if (shape.size() > 4) shape = {num_elements(shape) / 2, 2};
        return call("reshape", {x}, {{"newshape", shape}});
      }
      case 6: {
        auto axis = static_cast<int64_t>(below(shape_of(x).size()));
        Expr both = call("concatenate", {make_tuple({x, x})}, {{"axis", axis}});
        Expr parts = call("split", {both}, {{"indices_or_sections", int64_t{2}}, {"axis", axis}});
        return *make_tuple_get_item(parts, static_cast<int64_t>(below(2)));
      }
      case 7: {
        Expr weight = constant({below(2) ? 6 : 4, shape_of(x).back()});
        Expr y = call("nn.dense", {call("multiply", {x, make_scalar<float>(0.25f)}), weight});
        if (below(2)) y = call("add", {y, constant({shape_of(y).back()})});
        if (below(2)) y = call("divide", {y, make_scalar<float>(4.f)});
        return tame(y);
      }
      case 8:
        return convolution();
      case 9: {
        if (rank_of(x) < 3) return x;
        Ints axes(shape_of(x).size());
        for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
        std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
        Expr scores = call("nn.matmul", {x, call("transpose", {x}, {{"axes", axes}})});
        scores = call("divide", {scores, make_scalar<float>(2.f)});
        if (below(2)) scores = call("add", {scores, constant({shape_of(scores).back()})});
        return call("nn.matmul", {call("nn.softmax", {scores}), x});
      }
      case 10: {
        Attrs last{{"axis", Ints{below(4) ? -1 : 0}}, {"keepdims", true}};
        Expr centred = call("subtract", {x, call("mean", {x}, last)});
        Expr variance = call("mean", {call("power", {centred, make_scalar<float>(2.f)})}, last);
        Expr root = call("sqrt", {call("add", {variance, make_scalar<float>(0.01f)})});
        Expr y = call("divide", {centred, root});
        return below(2) ? call("multiply", {y, constant({shape_of(y).back()})}) : y;
      }
      default:
        return below(2) ? call("multiply", {x, call("sigmoid", {x})})
                        : call("multiply",
                               {call("multiply", {x, make_scalar<float>(0.5f)}),
                                call("add", {call("erf", {call("divide", {x, scalar_not_zero()})}),
                                             make_scalar<float>(1.f)})});
    }
  }

  Expr scalar_not_zero() { return make_scalar<float>(below(2) ? 1.4142135f : 2.f); }

  Expr convolution() {
    Expr x = values_[2];
    for (int i = 0; i < 8; ++i)
      if (Expr y = pick(); rank_of(y) == 4 && shape_of(y)[2] >= 3 && shape_of(y)[3] >= 3) x = y;
    if (below(2))
      x = call("nn.pad", {x, scalar()}, {{"pad_width", IntLists{{0, 0}, {0, 0}, {1, 1}, {0, 1}}}});
    int64_t channels = 4;
    Expr y = call("nn.conv2d",
                  {call("multiply", {x, make_scalar<float>(0.1f)}),
                   constant({channels, shape_of(x)[1], 3, 3})},
                  {{"padding", Ints{1, 1, 1, 1}}});
    if (below(2)) y = call("nn.bias_add", {y, constant({channels})});
    if (below(2))
      y = *make_tuple_get_item(call("nn.batch_norm", {y, constant({channels}), constant({channels}),
                                                      constant({channels}), constant({channels})}),
                               0);
    if (below(2)) values_.push_back(y);  // used elsewhere too
    return tame(y);
  }

  uint64_t seed_, constants_ = 0;
  std::mt19937_64 rng_;
  std::vector<Expr> values_;
};

TEST(RandomGraphs, ComputeTheSameAfterThePipeline) {
  register_all_ops();
  size_t before = 0, after = 0;
  for (uint64_t seed = 0; seed < 200 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Function function = GraphGenerator(seed).function(4 + static_cast<int>(seed % 20));
    Module module(function);
    Result<std::vector<PassRecord>> records = simplification_pipeline().run(module);
    ASSERT_TRUE(records.ok()) << records.status().to_string() << to_text(function);
    expect_same_values(function, module.main(), seed);
    before += post_order(function->body).size();
    after += post_order(module.main()->body).size();
  }
  EXPECT_LT(after, before);  // the rules did apply
}

}  // namespace
}  // namespace collage
