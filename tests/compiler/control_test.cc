// Control flow compiled: the kernel that runs plans of functions gives what the interpreter gives,
// as it was made and as it was saved, on random modules too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "compiler/given_model.h"
#include "compiler/saved_program.h"
#include "ir/structural.h"
#include "ir/text_printer.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "passes/passes.h"
#include "passes/verify.h"
#include "runtime/run_number.h"
#include "saved_layouts.h"
#include "verify/comparison.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLoader = "reference.control";

// Rows of 3 are copied to aligned memory, states of 16 are not; the body has weights of its own.
constexpr const char* kRecurrence = R"(#[version = "0.0.5"]
def @main(%n: int64, %h: Tensor[(16), float32], %xs: Tensor[(5, 3), float32],
          %w: Tensor[(16, 3), float32]) {
  %0 = fn (%i: int64, %s: Tensor[(16), float32], %x: Tensor[(3), float32],
           %m: Tensor[(16, 3), float32]) {
    %1 = sum(multiply(%m, %x), axis=[1]);
    %2 = tanh(add(multiply(%s, 0.5f), %1));
    (less(sum(%2), 8f), %2, %2, strided_slice(%2, begin=[0], end=[3]))
  };
  %3 = control.loop(%n, True, %0, %h, %xs, %w, states=1, scanned=1, rows=5);
  %4 = fn (%a: Tensor[(16), float32]) { exp(%a) };
  %5 = control.if(less(sum(%h), 0f), %4, fn (%a: Tensor[(16), float32]) { %a }, %3.0);
  (%5, %3.1, %3.2)
}
)";

class CompiledControl : public testing::GivenModel {
 protected:
  CompiledControl() : GivenModel(kRecurrence) {}

  static void expect_equal(const Module& module, Executor& executor,
                           const std::vector<Tensor>& inputs) {
    const Result<std::vector<Tensor>> expected = interpret(module.main(), inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().to_string();
    std::vector<Tensor> outputs;  // all of them are written
    for (const PlanSignature& output : executor.plan().outputs) {
      outputs.push_back(Tensor::empty(output.type.dtype, output.type.shape));
      std::memset(outputs.back().raw(), 0x55, outputs.back().bytes());
    }
    const Status status = executor.run(inputs, outputs);
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Difference difference =
          compare_tensors(outputs[i], (*expected)[i], {.of_scale = 1e-4, .relative = 1e-3});
      EXPECT_TRUE(difference.within) << "output " << i << ": " << difference.reason << "\n"
                                     << to_text(module);
    }
  }

  // Whether the program's plan has a kernel of control flow.
  static bool has_control(const Plan& plan) {
    return std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
      const Result<SavedKernel> saved = step.kernel->save();
      return saved.ok() && saved->loader == kLoader;
    });
  }
};

TEST_F(CompiledControl, GivesWhatTheInterpreterGives) {
  for (const char* target : {"reference", "native"}) {
    options_.targets = {target};
    Result<Program> program = compile_model(model_of(given_), options_);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    EXPECT_TRUE(has_control(*program->impl().plan));
    for (const int64_t trips : {0, 1, 2, 3, 5, 90})
      for (const double sign : {-1.0, 1.0}) {
        std::vector<Tensor> inputs = random_inputs(given_.main(), static_cast<uint64_t>(trips));
        inputs[0] = Tensor::scalar<int64_t>(trips);
        inputs[1] = random_tensor({{16}, DType::kFloat32}, 5, {0.1 * sign, 0.2 * sign});
        expect_equal(given_, *program->impl().executor, inputs);
      }
  }
}

TEST_F(CompiledControl, IsSavedWithThePlansThatItRuns) {
  for (const char* target : {"reference", "native"}) {
    options_.targets = {target};
    EXPECT_EQ(testing::run_saved(model_of(given_), options_, folder_ / "saved.collage", 3, 20), "");
  }
  EXPECT_EQ(testing::accepted_damages(folder_ / "saved.collage", 200), 0);
}

TEST_F(CompiledControl, OtherPlansAreRefused) {
  options_.targets = {"reference"};
  Result<Program> program = compile_model(model_of(given_), options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  for (const Step& step : program->impl().plan->steps) {
    Result<SavedKernel> saved = step.kernel->save();
    if (!saved.ok() || saved->loader != kLoader) continue;
    const KernelLoader* loader = find_kernel_loader(kLoader);
    ASSERT_NE(loader, nullptr);
    for (const BufferId id : step.inputs)
      saved->buffers.inputs.push_back(program->impl().plan->buffers[id].bytes);
    for (const BufferId id : step.outputs)
      saved->buffers.outputs.push_back(program->impl().plan->buffers[id].bytes);
    testing::SavedLayouts::all().expect_known_kernel(kLoader, saved->description);
    EXPECT_TRUE(loader->load(*saved, 1).ok());
    SavedKernel smaller = *saved;
    smaller.buffers.outputs[0] -= 1;
    EXPECT_FALSE(loader->load(smaller, 1).ok());
    smaller = *saved;
    smaller.plans[0] = program->impl().plan;
    EXPECT_FALSE(loader->load(smaller, 1).ok());
    smaller = *saved;
    smaller.plans.clear();
    EXPECT_THAT(loader->load(smaller, 1).status().to_string(), HasSubstr("0 plans"));
  }
}

// Makes functions of tensors of one type, with conditions and loops in them.
class RandomControl {
 public:
  explicit RandomControl(uint32_t seed) : random_(seed) {}

  Function main() {
    std::vector<Expr> params = {make_var("x", type_), make_var("y", type_),
                                make_var("rows", TensorType{{kRows, 2, 3}, DType::kFloat32}),
                                make_var("n", TensorType{{}, DType::kInt64})};
    rows_ = params[2];
    trips_ = params[3];
    std::vector<Expr> values = {params[0], params[1]};
    grow(values, 6, 2);
    return make_function(params, make_tuple({values.back(), values[values.size() - 2]}));
  }

 private:
  static constexpr int64_t kRows = 3;

  size_t below(size_t count) { return random_() % count; }
  const Expr& any(const std::vector<Expr>& values) { return values[below(values.size())]; }
  static Expr made(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
    return make_call(op, std::move(args), std::move(attrs)).value();
  }
  Expr decided(const Expr& value) {
    return made("less", {made("sum", {value}), make_scalar<float>(0.25f)});
  }

  void grow(std::vector<Expr>& values, int calls, int depth) {
    const bool outside = depth == 2;
    for (int i = 0; i < calls; ++i) {
      switch (below(depth > 0 ? 7 : 4)) {
        case 0:
          values.push_back(made("tanh", {any(values)}));
          break;
        case 1:
          values.push_back(made("multiply", {any(values), any(values)}));
          break;
        case 2:
          values.push_back(made("sigmoid", {made("add", {any(values), any(values)})}));
          break;
        case 3:
          values.push_back(made("negative", {any(values)}));
          break;
        case 4: {
          const Expr a = any(values), b = any(values);
          values.push_back(made("control.if", {decided(any(values)), function(2, depth - 1),
                                               function(2, depth - 1), a, b}));
          break;
        }
        default:
          values.push_back(loop(values, depth, outside));
      }
    }
  }

  Function function(size_t count, int depth) {
    std::vector<Expr> params;
    for (size_t i = 0; i < count; ++i) params.push_back(make_var("p", type_));
    std::vector<Expr> values = params;
    grow(values, 3, depth);
    return make_function(params, values.back());
  }

  Expr loop(const std::vector<Expr>& values, int depth, bool outside) {
    const bool scans = outside && below(2) == 0, stacks = below(2) == 0;
    const Expr counter = make_var("i", TensorType{{}, DType::kInt64});
    std::vector<Expr> params = {counter}, inside;
    for (int i = 0; i < (scans ? 3 : 2); ++i) {
      params.push_back(make_var("s", type_));
      inside.push_back(params.back());
    }
    grow(inside, 3, depth - 1);
    inside.push_back(
        made("add", {inside.back(), made("cast", {counter}, {{"dtype", DType::kFloat32}})}));
    const Expr next = made("tanh", {inside.back()});
    const Expr goes_on = below(2) == 0 ? Expr(make_scalar<bool>(true)) : decided(next);
    std::vector<Expr> results = {goes_on, next};
    if (stacks) results.push_back(any(inside));
    const Expr trips =
        outside && below(2) == 0 ? trips_ : make_scalar<int64_t>(static_cast<int64_t>(below(5)));
    // One state; a row, or else an invariant, or both.
    std::vector<Expr> args = {trips, make_scalar<bool>(true),
                              make_function(params, make_tuple(results)), any(values)};
    if (scans) args.push_back(rows_);
    args.push_back(any(values));
    const Expr made_loop = made("control.loop", args,
                                {{"states", int64_t{1}},
                                 {"scanned", int64_t{scans ? 1 : 0}},
                                 {"rows", scans || stacks ? kRows : int64_t{-1}}});
    Expr result = make_tuple_get_item(made_loop, 0).value();
    if (stacks)
      result = made("add", {result, made("sum", {make_tuple_get_item(made_loop, 1).value()},
                                         {{"axis", std::vector<int64_t>{0}}})});
    return result;
  }

  const TensorType type_{{2, 3}, DType::kFloat32};
  std::mt19937 random_;
  Expr rows_, trips_;
};

TEST_F(CompiledControl, RandomModules) {
  int with_control = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Module module(RandomControl(seed).main());
    const Result<Module> again = parse_module(to_text(module));
    ASSERT_TRUE(again.ok()) << again.status().to_string() << "\n" << to_text(module);
    EXPECT_TRUE(structural_equal(module, *again));
    EXPECT_TRUE(verify(module).ok()) << verify(module).to_string();
    Module simplified = module;
    ASSERT_TRUE(simplification_pipeline().run(simplified).ok());
    options_.targets = {seed % 10 == 0 ? "native" : "reference"};
    Result<Program> program = compile_model(model_of(simplified), options_);
    ASSERT_TRUE(program.ok()) << program.status().to_string() << "\n" << to_text(module);
    with_control += has_control(*program->impl().plan) ? 1 : 0;
    for (const int64_t trips : {0, 2, 7}) {
      std::vector<Tensor> inputs = random_inputs(module.main(), seed);
      inputs[3] = Tensor::scalar<int64_t>(trips);
      expect_equal(module, *program->impl().executor, inputs);
    }
  }
  EXPECT_GT(with_control, 10);
}

}  // namespace
}  // namespace collage
