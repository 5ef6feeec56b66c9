// The pipeline: order, verification, dumps that parse back, timing, disabling; and the verifier.
#include "passes/pipeline.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ops/registry.h"
#include "passes/attention.h"
#include "passes/dead_code.h"
#include "passes/passes.h"
#include "passes/verify.h"
#include "random_tensors.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

Module parse_module_text(const std::string& text) {
  register_all_ops();
  Result<Module> module = parse_module(text);
  if (!module) {
    ADD_FAILURE() << module.status().to_string();
    std::abort();
  }
  return *module;
}

const char* kText = "fn (%x: Tensor[(2), float32]) { nn.relu(multiply(%x, 1f)) }";

Expr var(Shape shape) { return make_var("x", TensorType{std::move(shape), DType::kFloat32}); }

Pass replace_main(std::string name, Function by) {
  return function_pass(std::move(name), [by](const Function&) -> Result<Function> { return by; });
}

// The functions that control flow runs are simplified, those of loops in branches too; what they
// give keeps its type where half precision is computed in float32.
TEST(Pipeline, PassesOfFunctionsEnterControlFlow) {
  Module module = parse_module_text(R"(
def @main(%c: bool, %x: Tensor[(2), float16]) {
  %1 = fn (%a: Tensor[(2), float16]) {
    %0 = fn (%i: int64, %s: Tensor[(2), float16]) {
      (True, nn.relu(multiply(%s, cast(1f, dtype="float16"))))
    };
    control.loop(3i64, True, %0, %a, states=1)
  };
  control.if(%c, %1, fn (%a: Tensor[(2), float16]) { (add(%a, %a),) }, %x)
}
)");
  Result<std::vector<PassRecord>> records = simplification_pipeline().run(module);
  ASSERT_TRUE(records.ok()) << records.status().to_string();
  Module expected = parse_module_text(R"(
def @main(%c: bool, %x: Tensor[(2), float16]) {
  %1 = fn (%a: Tensor[(2), float16]) {
    %0 = fn (%i: int64, %s: Tensor[(2), float16]) {
      (True, cast(nn.relu(cast(%s, dtype="float32")), dtype="float16"))
    };
    %4 = control.loop(3i64, True, %0, %a, states=1);
    (%4.0,)
  };
  %2 = fn (%a: Tensor[(2), float16]) {
    %3 = cast(%a, dtype="float32");
    (cast(add(%3, %3), dtype="float16"),)
  };
  %5 = control.if(%c, %1, %2, %x);
  (%5.0,)
}
)");
  EXPECT_TRUE(structural_equal(module, expected)) << to_text(module);
}

TEST(Pipeline, AFunctionThatSeveralCallsShareStaysOne) {
  Module module = parse_module_text(R"(
def @main(%x: Tensor[(2), float32], %go: bool) {
  %0 = fn (%y: Tensor[(2), float32]) { nn.relu(multiply(%y, 1f)) };
  control.if(%go, %0, %0, control.if(%go, %0, %0, %x))
}
)");
  ASSERT_TRUE(simplification_pipeline().run(module).ok());
  EXPECT_TRUE(verify(module).ok()) << verify(module).to_string();
  const std::string text = to_text(module);
  EXPECT_EQ(text.find("fn ("), text.rfind("fn (")) << text;
}

TEST(Pipeline, RunsInOrderAndReports) {
  Module module = parse_module_text(kText);
  Result<std::vector<PassRecord>> records = simplification_pipeline().run(module);
  ASSERT_TRUE(records.ok()) << records.status().to_string();
  EXPECT_TRUE(
      structural_equal(module, parse_module_text("fn (%x: Tensor[(2), float32]) { nn.relu(%x) }")));
  size_t changed = 0;
  for (const PassRecord& record : *records) {
    EXPECT_GE(record.seconds, 0);
    changed += record.changed;
    if (record.changed) {
      EXPECT_EQ(record.name, "simplify");
    }
  }
  EXPECT_EQ(changed, 1u);
  EXPECT_EQ(records->size(), simplification_pipeline().passes().size());
}

TEST(Pipeline, LeavesPrimitiveFunctionsAsTheyAre) {
  Module module = parse_module_text(
      "fn (%x: Tensor[(2), float32]) {\n"
      "  %0 = fn (%a: Tensor[(2), float32], Primitive=1) { nn.relu(multiply(%a, 1f)) };\n"
      "  %0(%x)\n}");
  Module before = module;
  ASSERT_TRUE(simplification_pipeline().run(module).ok());
  EXPECT_TRUE(structural_equal(module, before));
}

TEST(Pipeline, DisablesPassesByName) {
  Module module = parse_module_text(kText), before = module;
  PipelineOptions options;
  options.disabled = {"simplify"};
  Result<std::vector<PassRecord>> records = simplification_pipeline().run(module, options);
  ASSERT_TRUE(records.ok());
  EXPECT_TRUE(structural_equal(module, before));
  ::setenv("COLLAGE_DISABLE_PASS", "fold_scale,simplify", 1);
  EXPECT_TRUE(simplification_pipeline().run(module).ok());
  EXPECT_TRUE(structural_equal(module, before));
  ::setenv("COLLAGE_DISABLE_PASS", "symplify", 1);
  Result<std::vector<PassRecord>> wrong = simplification_pipeline().run(module);
  ::unsetenv("COLLAGE_DISABLE_PASS");
  EXPECT_EQ(wrong.status().code(), ErrorCode::kUsage);
  EXPECT_THAT(wrong.status().to_string(),
              HasSubstr("cannot disable pass 'symplify'; the passes are"));
}

TEST(Pipeline, AnErrorNamesThePassAndLeavesTheModule) {
  Module module = parse_module_text(kText), before = module;
  Expr x = var({2}), stranger = var({2});
  Pipeline dangling({replace_main("bad", make_function({x}, stranger))});
  EXPECT_THAT(dangling.run(module).status().to_string(),
              HasSubstr("module after pass bad: @main: node: rule 'variable is bound'"));
  Pipeline failing({{"worse", [](Module&) -> Result<bool> { return internal_error("no"); }}});
  EXPECT_EQ(failing.run(module).status().to_string(), "pass worse: no");
  EXPECT_TRUE(structural_equal(module, before));
}

TEST(Pipeline, DumpsParseBack) {
  fs::path folder = fs::temp_directory_path() / fmt::format("collage_pipeline_test_{}", ::getpid());
  fs::remove_all(folder);
  Module module = parse_module_text(
      "fn (%x: Tensor[(200), float32]) { add(multiply(%x, 1f), full(2f, shape=[200])) }");
  Module before = module;
  PipelineOptions options;
  options.dump = folder.string();
  ASSERT_TRUE(simplification_pipeline().run(module, options).ok());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".relay") names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names, (std::vector<std::string>{"00_input.relay", "07_fold_constants.relay",
                                             "10_simplify.relay"}));
  EXPECT_TRUE(structural_equal(*load_module(folder / names[0]), before));
  EXPECT_TRUE(structural_equal(*load_module(folder / names[2]), module));
  fs::remove_all(folder);
  options.dump = folder.string() + ":^simp";
  module = before;
  ASSERT_TRUE(simplification_pipeline().run(module, options).ok());
  EXPECT_TRUE(fs::exists(folder / "10_simplify.relay"));
  EXPECT_FALSE(fs::exists(folder / "07_fold_constants.relay"));
  options.dump = folder.string() + ":(";
  EXPECT_EQ(simplification_pipeline().run(module, options).status().code(), ErrorCode::kUsage);
  fs::remove_all(folder);
}

TEST(Pipeline, DropsFunctionsThatMainDoesNotReach) {
  Module module = parse_module_text(
      "def @main(%x: float32) -> float32 { @a(%x) }\n"
      "def @a(%x: float32) -> float32 { nn.relu(@b(%x)) }\n"
      "def @b(%x: float32) -> float32 { abs(%x) }\n"
      "def @c(%x: float32) -> float32 { @b(%x) }\n");
  ASSERT_TRUE(remove_dead_code(module).ok());
  EXPECT_EQ(module.functions.size(), 3u);
  EXPECT_FALSE(module.has("c"));
}

// Text as other tools of the Relay world print it: comments, None, several lines a call.
TEST(Pipeline, ReadsAndSimplifiesRelayTextOfTheWorld) {
  register_all_ops();
  ParseOptions constants;
  constants.constant = [](const TensorType& type, size_t index) -> Result<Tensor> {
    return random_tensor(type, index, -0.5, 0.5);
  };
  Result<Function> parsed = parse_function(R"(
fn (%x: Tensor[(1, 1, 28, 28), float32]) -> Tensor[(1, 10), float32] {
  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]]);
  # a partition that somebody made
  %2 = fn (%p: Tensor[(1, 1, 32, 32), float32],
           Primitive=1,
           Compiler="tensorrt",
           global_symbol="conv_1") -> Tensor[(1, 8, 28, 28), float32] {
    %1 = fn (%q: Tensor[(1, 1, 32, 32), float32],
             Composite="tensorrt.conv2d") -> Tensor[(1, 8, 28, 28), float32] {
      nn.conv2d(%q, meta[relay.Constant][0] /*Tensor[(8, 1, 5, 5), float32]*/,
                padding=[0, 0, 0, 0], channels=8, kernel_size=[5, 5])
    };
    %1(%p)
  };
  %3 = %2(%0);
  %4 = add(%3, meta[relay.Constant][1] /*Tensor[(8, 1, 1), float32]*/);
  %5 = nn.relu(%4);
  %6 = nn.max_pool2d(%5, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
  %7 = nn.pad(%6, 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]]);
  %8 = nn.conv2d(%7, meta[relay.Constant][2] /*Tensor[(16, 8, 5, 5), float32]*/,
                 padding=[0, 0, 0, 0], channels=16, kernel_size=[5, 5]);
  %9 = nn.max_pool2d(%8, pool_size=[3, 3], strides=[3, 3], padding=[0, 0, 0, 0]);
  %10 = reshape(%9, newshape=[1, 256]);
  %11 = nn.dense(%10, meta[relay.Constant][3] /*Tensor[(10, 256), float32]*/, units=None, out_dtype="float32");
  add(%11, meta[relay.Constant][4] /*Tensor[(1, 10), float32]*/)
})",
                                           constants);
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  Module module(*parsed);
  ASSERT_TRUE(simplification_pipeline().run(module).ok());
  expect_same_values(*parsed, module.main());
}

TEST(Verifier, AcceptsWhatIsLegal) { EXPECT_TRUE(verify(parse_module_text(kText)).ok()); }

TEST(Verifier, NamesTheRuleThatIsBroken) {
  Module base = parse_module_text(kText);
  Expr x = var({2});
  auto error = [](Function function) { return verify(Module(std::move(function))).to_string(); };
  EXPECT_THAT(error(make_function({}, x)), HasSubstr("'variable is bound'"));
  EXPECT_THAT(error(make_function({x, x}, x)), HasSubstr("a parameter twice"));
  const OpDef* relu = find_op("nn.relu");
  Expr lying = std::make_shared<CallNode>(relu, nullptr, std::vector<Expr>{x}, Attrs{},
                                          TensorType{{3}, DType::kFloat32}, "here");
  EXPECT_THAT(error(make_function({x}, lying)),
              HasSubstr("nn.relu (from 'here'): rule 'type is as inferred'"));
  static OpDef impostor = *relu;
  Expr unregistered =
      std::make_shared<CallNode>(&impostor, nullptr, std::vector<Expr>{x}, Attrs{}, x->type(), "");
  EXPECT_THAT(error(make_function({x}, unregistered)), HasSubstr("'operator is registered'"));
  Expr no_defaults = std::make_shared<CallNode>(find_op("nn.leaky_relu"), nullptr,
                                                std::vector<Expr>{x}, Attrs{}, x->type(), "");
  EXPECT_THAT(error(make_function({x}, no_defaults)), HasSubstr("'attributes are normalised'"));
  Expr global = make_global_var("f", Type::function({x->type()}, x->type()));
  EXPECT_THAT(error(make_function({x}, *make_function_call(global, {x}))),
              HasSubstr("@f is not in the module"));
}

TEST(Attention, ExpandsToWhatItComputes) {
  for (const char* extra :
       {"scale=0.5f", "%m, scale=1f", "scale=2f, causal=True", "%m, scale=0.25f, causal=True"}) {
    Module module = parse_module_text(
        fmt::format("fn (%q: Tensor[(2, 4, 6, 8), float32], %k: Tensor[(2, 4, 6, 8), float32], "
                    "%v: Tensor[(2, 4, 6, 5), float32], %m: Tensor[(6, 6), float32]) {{ "
                    "nn.attention(%q, %k, %v, {}) }}",
                    extra));
    Result<Function> expanded = expand_attention(module.main());
    ASSERT_TRUE(expanded.ok()) << expanded.status().to_string();
    EXPECT_EQ(as_op((*expanded)->body, "nn.attention"), nullptr);
    expect_same_values(module.main(), *expanded);
    // And back again.
    Module again(*expanded);
    ASSERT_TRUE(simplification_pipeline().run(again).ok());
    EXPECT_TRUE(as_op(again.main()->body, "nn.attention") != nullptr) << extra;
  }
}

}  // namespace
}  // namespace collage
