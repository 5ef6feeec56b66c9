// Whatever the layouts that called tensor programs and operators put tensors in, the pipeline keeps
// what they compute, and leaves no more programs than there were.
#include <gtest/gtest.h>

#include <random>

#include "ir/op.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/registry.h"
#include "passes/passes.h"
#include "random_tensors.h"
#include "tensor_program/call.h"

namespace collage {
namespace {

using tensor_program::kCallOp;

// Graphs over matrices and blocked matrices: [a, b] in blocks of f columns is [b / f, a, f].
class ProgramGenerator {
 public:
  explicit ProgramGenerator(uint64_t seed) : seed_(seed), rng_(seed) {}

  Function function(size_t size) {
    const Expr x = make_var("x", TensorType{{4, 24}, DType::kFloat32});
    values_ = {x};
    while (values_.size() < size) values_.push_back(step(pick()));
    return make_function({x}, make_tuple({values_.back(), values_[values_.size() / 2]}));
  }

 private:
  size_t below(size_t n) { return rng_() % n; }
  // Mostly the last, so that chains are long.
  Expr pick() { return below(3) ? values_.back() : values_[below(values_.size())]; }

  static Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
    Result<Expr> made = make_call(op, std::move(args), std::move(attrs));
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return *made;
  }
  static Expr program(std::vector<Expr> args, const std::string& body) {
    return call(kCallOp, std::move(args), {{"program", "program { " + body + " }"}});
  }

  Expr step(const Expr& x) {
    const Shape& shape = x->tensor_type().shape;
    if (below(6) == 0) return call("nn.relu", {x});
    if (below(6) == 0) return call("tanh", {x});
    return shape.size() == 2 ? of_matrix(x, shape[0], shape[1])
                             : of_blocks(x, shape[0], shape[1], shape[2]);
  }

  Expr of_matrix(const Expr& x, int64_t a, int64_t b) {
    const int64_t f = below(2) ? 4 : 2;
    if (b % f != 0) return call("transpose", {x}, {{"axes", Ints{1, 0}}});
    const std::string param = fmt::format("param A: float32[{}, {}];", a, b);
    const std::string blocks = fmt::format("[p:{}, i:{}, q:{}]", b / f, a, f);
    const std::string scheduled = below(2) ? " schedule { P.compute_root(); }" : "";
    switch (below(6)) {
      case 0:
        return program({x}, fmt::format("{} result R{} = A[i, p * {} + q];", param, blocks, f));
      case 1:
        return call("transpose", {call("reshape", {x}, {{"newshape", Ints{a, b / f, f}}})},
                    {{"axes", Ints{1, 0, 2}}});
      case 2:  // its result is left in blocks
        return program({x}, fmt::format("{} stage P[i:{}, j:{}] = A[i, j] * 0.5f; "
                                        "result R{} = P[i, p * {} + q];{}",
                                        param, a, b, blocks, f, scheduled));
      case 3:  // it reads blocks
        return program({x}, fmt::format("{} stage P{} = A[i, p * {} + q]; "
                                        "result R[i:{}, j:{}] = P[j / {}, i, j % {}] + 1.0f;{}",
                                        param, blocks, f, a, b, f, f, scheduled));
      case 4: {  // it has a weight in blocks
        const TensorType type{{b, b}, DType::kFloat32};
        const Expr weight = make_constant(random_tensor(type, seed_ + b, -0.2, 0.2));
        return program(
            {x, weight},
            fmt::format("{} param B: float32[{}, {}]; "
                        "stage P[p:{}, k:{}, q:{}] = B[k, p * {} + q]; "
                        "result R[i:{}, j:{}] = sum(k:{}) A[i, k] * P[j / {}, k, j % {}];{}",
                        param, b, b, b / f, b, f, f, a, b, b, f, f, scheduled));
      }
      default:
        return call("transpose", {x}, {{"axes", Ints{1, 0}}});
    }
  }

  Expr of_blocks(const Expr& x, int64_t p, int64_t a, int64_t f) {
    const std::string param = fmt::format("param A: float32[{}, {}, {}];", p, a, f);
    const std::string undone = fmt::format("[i:{}, j:{}] = A[j / {}, i, j % {}]", a, p * f, f, f);
    switch (below(4)) {
      case 0:
        return program({x}, fmt::format("{} result R{};", param, undone));
      case 1:
        return program({x}, fmt::format("{} stage P{}; result R[i:{}, j:{}] = P[i, j] - 0.25f;",
                                        param, undone, a, p * f));
      case 2:
        return call("reshape", {call("transpose", {x}, {{"axes", Ints{1, 0, 2}}})},
                    {{"newshape", Ints{a, p * f}}});
      default:  // as another matrix
        return call("reshape", {x}, {{"newshape", Ints{p * a, f}}});
    }
  }

  uint64_t seed_;
  std::mt19937_64 rng_;
  std::vector<Expr> values_;
};

size_t programs_in(const Function& function) {
  size_t count = 0;
  for (const Expr& node : post_order(function->body)) count += as_op(node, kCallOp) != nullptr;
  return count;
}

TEST(RandomPrograms, ComputeTheSameAfterThePipeline) {
  register_all_ops();
  if (find_op(kCallOp) == nullptr) tensor_program::register_call_ops();
  size_t before = 0, after = 0;
  for (uint64_t seed = 0; seed < 150 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Function function = ProgramGenerator(seed).function(3 + seed % 12);
    Module module(function);
    Result<std::vector<PassRecord>> records = simplification_pipeline().run(module);
    ASSERT_TRUE(records.ok()) << records.status().to_string() << to_text(function);
    expect_same_values(function, module.main(), seed);
    before += programs_in(function);
    after += programs_in(module.main());
  }
  EXPECT_LT(after, before * 9 / 10);  // layouts did cancel
}

}  // namespace
}  // namespace collage
