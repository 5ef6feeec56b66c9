// Modules and passes by the public headers alone: text, graphs, passes of the user's between those
// of the library, and programs of every stage.
#include <collage/collage.h>
#include <collage/module.h>
#include <collage/passes.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>

namespace {

using collage::Expression;
using collage::Model;
using collage::ModelPass;
using collage::Program;
using collage::ProgramOptions;
using collage::Result;
using collage::Tensor;
namespace passes = collage::passes;

constexpr const char* kText = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(8, 16), float32]) -> Tensor[(8, 32), float32] {
  %0 = nn.dense(%x, meta[relay.Constant][0] /*Tensor[(32, 16), float32]*/);
  %1 = nn.relu(%0);
  %2 = tanh(%1);
  %3 = sigmoid(%2);
  multiply(%2, %3)
}
)";

Tensor filled(const collage::Shape& shape) {
  Tensor tensor = Tensor::empty(collage::DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = 0.1f * static_cast<float>((i * 37) % 19 - 9);
  return tensor;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class Modules : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("collage_modules_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    options_.threads = 1;
    options_.worker = std::filesystem::read_symlink("/proc/self/exe");
    options_.database = folder_ / "costs.db";
    options_.effort = collage::Effort::kFast;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Model given() {
    const Result<Model> model = collage::parse_model(kText, {filled({32, 16})});
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return *model;
  }
  static std::string text(const Model& model) {
    collage::ModelTextOptions options;
    options.values = false;
    return collage::model_text(model, options).value();
  }
  // A pass of the user's: tanh by sigmoid.
  static Result<Model> without_tanh(const Model& model) {
    using Value = Result<std::optional<Expression>>;
    return collage::rewrite_calls(model, [](const Expression& call) -> Value {
      if (call.op() != "tanh") return std::nullopt;
      const Expression two = *Expression::constant(Tensor::scalar(2.0f));
      const Expression one = *Expression::constant(Tensor::scalar(1.0f));
      const Expression doubled = *Expression::call("multiply", {call.arguments()[0], two});
      const Expression inner = *Expression::call("sigmoid", {doubled});
      const Expression scaled = *Expression::call("multiply", {inner, two});
      return std::optional(*Expression::call("subtract", {scaled, one}, {}, call.origin()));
    });
  }
  Program compiled(const Model& model, std::vector<std::string> targets) {
    options_.targets = std::move(targets);
    Result<Program> program = Program::compile(model, options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    return *std::move(program);
  }
  // What the model gives, compiled for these targets, is what the given one gives by the reference.
  void expect_right(const Model& model, std::vector<std::string> targets) {
    expect_same(model, given(), filled({8, 16}), std::move(targets));
  }
  // As `like` by the reference.
  void expect_same(const Model& model, const Model& like, const Tensor& x,
                   std::vector<std::string> targets) {
    const Tensor expected = compiled(like, {"reference"}).run({x}).value()[0];
    const Tensor actual = compiled(model, std::move(targets)).run({x}).value()[0];
    ASSERT_EQ(actual.shape(), expected.shape());
    for (int64_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual.data<float>()[i], expected.data<float>()[i], 1e-4f) << i;
  }

  std::filesystem::path folder_;
  ProgramOptions options_;
};

ProgramOptions onednn_without_tanh() {
  ProgramOptions options;
  options.targets = {"onednn"};
  options.exclude = {"onednn:tanh", "onednn:sigmoid", "onednn:multiply"};
  return options;
}

ProgramOptions only(const std::string& target) {
  ProgramOptions options;
  options.targets = {target};
  return options;
}

TEST_F(Modules, TwoToolchainsWithAPassBetweenThem) {
  const Result<Model> model =
      collage::run_passes(given(), {passes::partition_for(onednn_without_tanh()),
                                    {"without_tanh", without_tanh},
                                    passes::partition_for(only("native"))});
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const std::string printed = text(*model);
  EXPECT_EQ(count(printed, "Compiler=\"onednn\""), 1u) << printed;
  EXPECT_GE(count(printed, "Compiler=\"native\""), 1u) << printed;
  EXPECT_EQ(count(printed, "tanh("), 0u) << printed;
  // All is claimed: @main only calls kernels.
  const std::string main = printed.substr(printed.find("def @main"));
  EXPECT_EQ(count(main, "@collage_"), count(main, "= @collage_") + 1) << printed;
  expect_right(*model, {"onednn", "native"});
  options_.keep_module = true;
  const std::string stated = text(compiled(*model, {"onednn", "native"}).module().value());
  EXPECT_EQ(count(stated, "Target="), count(main, "@collage_")) << stated;
  EXPECT_EQ(count(stated, "Target=\"onednn\""), 1u) << stated;
  EXPECT_EQ(count(stated, "Target=\"native\""), count(stated, "Target=") - 1) << stated;
  // Claimed kernels stay as they are.
  const Result<Model> again = passes::partition_for(only("onednn")).run(*model);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(text(*again), printed);
  const Result<Model> parsed =
      collage::parse_model(printed, collage::model_weights(*model).value());
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  EXPECT_EQ(text(*parsed), printed);
  expect_right(*parsed, {"onednn", "native"});
}

TEST_F(Modules, EveryStageCompiles) {
  expect_right(given(), {"native"});  // not simplified
  Model model = given();
  for (const std::string& name : passes::standard_names()) {
    const Result<Model> next = collage::run_passes(model, {passes::standard(name)});
    ASSERT_TRUE(next.ok()) << next.status().to_string();
    model = *next;
  }
  EXPECT_EQ(collage::model_text(model).value(),
            collage::model_text(passes::simplify().run(given()).value()).value());
  EXPECT_EQ(model.inputs()[0].name, "x");
  expect_right(model, {"native"});
}

TEST_F(Modules, TextRoundTrips) {
  const std::string whole = collage::model_text(given()).value();
  EXPECT_EQ(collage::model_text(collage::parse_model(whole).value()).value(), whole);
  EXPECT_EQ(text(given()), kText + std::string());
  const std::filesystem::path file = folder_ / "m.relay";
  ASSERT_TRUE(collage::save_model(given(), file).ok());
  collage::LoadOptions load;
  load.simplify = false;
  EXPECT_EQ(collage::model_text(Model::load(file, load).value()).value(), whole);
}

TEST_F(Modules, ListsWhatTheyDefine) {
  const Model model = collage::parse_model(R"(
    program @doubled { param A: float32[4]; result C[i:4] = A[i] * 2.0f; }
    def @twice(%y: Tensor[(4), float32]) -> Tensor[(4), float32] { @doubled(@doubled(%y)) }
    def @main(%x: Tensor[(4), float32]) { nn.relu(@twice(%x)) })")
                          .value();
  const auto kinds_of = [](const Model& of) {
    std::string listed;
    const Result<std::vector<collage::ModuleFunction>> functions = collage::module_functions(of);
    for (const collage::ModuleFunction& function : *functions)
      listed +=
          function.name +
          (function.kind == collage::ModuleFunction::Kind::kProgram ? " program " : " graph ");
    return listed;
  };
  EXPECT_EQ(kinds_of(model), "main graph twice graph doubled program ");
  const Model simplified = passes::simplify().run(model).value();
  EXPECT_EQ(kinds_of(simplified), "main graph doubled program ");
  const Expression twice = collage::global_function(model, "twice").value();
  EXPECT_EQ(twice.type(), "fn (Tensor[(4), float32]) -> Tensor[(4), float32]");
  for (const Model& stage : {model, simplified}) {
    Program program = compiled(stage, {"native"});
    const Tensor y = program.run({Tensor::from<float>({4}, {-1, 0, 1, 2})}).value()[0];
    EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + 4),
              (std::vector<float>{0, 0, 4, 8}));
  }
}

TEST_F(Modules, GraphsAreReadAndBuilt) {
  const Expression main = collage::graph_function(given()).value();
  ASSERT_EQ(main.kind(), Expression::Kind::kFunction);
  const Expression product = main.body().at(0);
  EXPECT_EQ(product.op(), "multiply");
  EXPECT_TRUE(product.arguments()[0] == product.arguments()[1].arguments()[0]) << "one tanh";
  EXPECT_EQ(product.tensors()[0].shape, (collage::Shape{8, 32}));
  const Expression dense = product.arguments()[0].arguments()[0].arguments()[0];
  EXPECT_EQ(dense.op(), "nn.dense");
  EXPECT_EQ(dense.arguments()[1].value().shape(), (collage::Shape{32, 16}));
  EXPECT_EQ(dense.arguments()[0].name(), "x");

  // @main calls a kernel that stands here: softmax of what it was given.
  const Expression p = *Expression::parameter("p", collage::DType::kFloat32, {8, 32});
  const Expression softmax = *Expression::call("nn.softmax", {p}, {{"axis", int64_t{-1}}});
  const Expression kernel = *Expression::function(
      {p}, softmax, {{"Primitive", int64_t{1}}, {"Composite", std::string("mine")}});
  const Expression called = *Expression::call(kernel, {product});
  const Expression changed = *Expression::function(main.parameters(), called);
  const Model model = collage::with_function(given(), "main", changed).value();
  ASSERT_TRUE(collage::verify_model(model).ok());
  const Tensor y = compiled(model, {"native"}).run({filled({8, 16})}).value()[0];
  float sum = 0;
  for (int64_t i = 0; i < 32; ++i) sum += y.data<float>()[i];
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST_F(Modules, MatchesOfAPatternAreKernels) {
  const ModelPass fuse =
      passes::fuse_pattern("is_op('multiply')($x, is_op('sigmoid')($x))", "my.swish");
  const Model model =
      collage::run_passes(given(), {fuse, passes::partition_for(only("onednn"))}).value();
  const std::string printed = text(model);
  EXPECT_EQ(count(printed, "Composite=\"my.swish\""), 1u) << printed;
  EXPECT_EQ(count(printed, "@collage_my_swish"), 2u) << printed;
  expect_right(model, {"onednn", "native"});
  const Model owned =
      passes::fuse_pattern("is_op('tanh')(*)", "my.tanh", "native").run(given()).value();
  EXPECT_EQ(count(text(owned), "Compiler=\"native\""), 1u) << text(owned);
  expect_right(owned, {"onednn", "native"});
  EXPECT_EQ(text(passes::fuse_pattern("is_op('nn.softmax')(*)", "none").run(given()).value()),
            text(given()));
  // What somebody decided on is no part of a match, whatever the pattern says of it.
  const Model decided = collage::parse_model(R"(
    def @main(%x: Tensor[(4), float32]) {
      %0 = fn (%p: Tensor[(4), float32], Primitive=1) { exp(%p) };
      tanh(%0(%x))
    })")
                            .value();
  for (const char* pattern : {"is_function()(*)", "is_op('tanh')(is_function()(*))"})
    EXPECT_EQ(text(passes::fuse_pattern(pattern, "mine").run(decided).value()), text(decided));
}

TEST_F(Modules, PatternsSeeFunctionsThatAreCalledByName) {
  const Model model = collage::parse_model(R"(
    def @scaled(%p: Tensor[(4), float32]) -> Tensor[(4), float32] { multiply(%p, 3f) }
    def @swish(%p: Tensor[(4), float32], Composite="my.swish") -> Tensor[(4), float32] { @scaled(multiply(%p, sigmoid(%p))) }
    def @main(%x: Tensor[(4), float32]) { tanh(@swish(exp(%x))) })")
                          .value();
  const auto kernel = [&](const std::string& pattern) {
    const std::string printed = text(passes::fuse_pattern(pattern, "mine").run(model).value());
    const size_t begin = printed.find("Primitive=1"), end = printed.find("\n}", begin);
    return begin == std::string::npos ? printed : printed.substr(begin, end - begin);
  };
  for (const char* pattern :
       {"is_op('tanh')(is_function().where(Composite == 'my.swish')(*))",
        "is_op('tanh')(is_function([$p], is_op('multiply')(*, is_constant()))(*))"}) {
    const std::string inside = kernel(pattern);
    for (const char* op : {"sigmoid(", "multiply(", "tanh(", "3f"})
      EXPECT_NE(inside.find(op), std::string::npos) << op << inside;
    EXPECT_EQ(inside.find("exp("), std::string::npos) << inside;
    EXPECT_EQ(inside.find("@"), std::string::npos) << inside;
    expect_same(passes::fuse_pattern(pattern, "mine").run(model).value(), model, filled({4}),
                {"native"});
  }
  // Functions that no match holds are called by name as before.
  EXPECT_EQ(kernel("is_function().where(Composite == 'your.swish')(*)"), text(model));
}

// `body` of %x, with every match of the pattern replaced by tanh of what $x is in it.
std::string with_tanh(const std::string& body, const std::string& pattern) {
  const Model model =
      collage::parse_model("def @main(%x: Tensor[(4), float32]) { " + body + " }").value();
  const auto tanh = [](const collage::PatternMatch& match) -> Result<std::optional<Expression>> {
    const auto x = match.values.find("x");
    if (x == match.values.end()) return std::nullopt;
    return std::optional(*Expression::call("tanh", {x->second}));
  };
  const Result<Model> result = collage::rewrite_matches(model, pattern, tanh);
  if (!result.ok()) return result.status().to_string();
  EXPECT_TRUE(collage::verify_model(*result).ok()) << body;
  const std::string printed = collage::model_text(*result).value();
  const size_t begin = printed.find("{\n") + 2;
  return printed.substr(begin, printed.find("\n}") - begin);
}

TEST_F(Modules, MatchesOfAPatternAreReplaced) {
  const std::string swish = "is_op('multiply')($x, is_op('sigmoid')($x))";
  // Inputs of a match are replaced before it, and a value inside of it stays for its other users.
  EXPECT_EQ(with_tanh("%0 = multiply(sigmoid(%x), %x); multiply(%0, sigmoid(%0))", swish),
            "  %0 = tanh(%x);\n  tanh(%0)");
  EXPECT_EQ(with_tanh("%0 = sigmoid(%x); add(multiply(%0, %x), %0)", swish),
            "  %0 = tanh(%x);\n  %1 = sigmoid(%x);\n  add(%0, %1)");
  EXPECT_EQ(with_tanh("multiply(%x, sigmoid(exp(%x)))", swish),
            "  %0 = exp(%x);\n  %1 = sigmoid(%0);\n  multiply(%x, %1)");
  // What took another's place has the users of both.
  const std::string once = "is_op('nn.relu')(is_op('tanh')($x).used_once()) | is_op('exp')($x)";
  EXPECT_EQ(with_tanh("nn.relu(tanh(%x))", once), "  tanh(%x)");
  EXPECT_EQ(with_tanh("%0 = tanh(%x); add(nn.relu(%0), %0)", once),
            "  %0 = tanh(%x);\n  %1 = nn.relu(%0);\n  add(%1, %0)");
  EXPECT_EQ(with_tanh("%0 = exp(%x); add(nn.relu(%0), %0)", once),
            "  %0 = tanh(%x);\n  %1 = nn.relu(%0);\n  add(%1, %0)");
  // A name of an alternative that was not taken is absent; a replacement is typed.
  EXPECT_EQ(with_tanh("add(exp(%x), nn.relu(%x))", "is_op('exp')($x) | is_op('nn.relu')($y)"),
            "  %0 = tanh(%x);\n  %1 = nn.relu(%x);\n  add(%0, %1)");
  EXPECT_EQ(with_tanh("sum(%x)", "is_op('sum')($x)"),
            "@main: a call of sum: its replacement is a Tensor[(4), float32], not a float32");
  EXPECT_EQ(with_tanh("%x", "is_op('nn.rellu')(*)"), "column 7: unknown operator 'nn.rellu'");
}

TEST_F(Modules, StatedKernelsCompileToTheSame) {
  const Model simplified = passes::simplify().run(given()).value();
  options_.keep_module = true;
  const Program program = compiled(simplified, {"onednn", "native"});
  const Model stated = program.module().value();
  EXPECT_GE(count(text(stated), "Variant="), 1u) << text(stated);
  EXPECT_EQ(stated.inputs()[0].name, "x");
  options_.frozen_costs = true;  // nothing is measured
  const Model parsed = collage::parse_model(collage::model_text(stated).value()).value();
  for (const Model& again : {stated, parsed})
    EXPECT_EQ(text(compiled(again, {"onednn", "native"}).module().value()), text(stated));
  options_.frozen_costs = false;
  expect_right(stated, {"onednn", "native"});
  options_.keep_module = false;
  const Result<Model> none = compiled(given(), {"reference"}).module();
  EXPECT_EQ(none.status().code(), collage::ErrorCode::kUsage);
}

TEST_F(Modules, PartitionedByWhatWasMeasured) {
  options_.always_measure = true;
  const Model model = passes::simplify().run(given()).value();
  options_.targets = {"onednn"};
  const ModelPass apply = passes::apply_history_best(options_);
  const Result<Model> early = collage::run_passes(model, {apply});
  EXPECT_EQ(early.status().code(), collage::ErrorCode::kFrozenCosts);
  const auto unknown = [&] {
    size_t sum = 0;
    const auto tasks = collage::extract_tasks(model, options_);
    for (const collage::MeasuringTask& task : *tasks) sum += task.unknown;
    return sum;
  };
  const size_t before = unknown();
  EXPECT_GT(before, 0u);
  compiled(model, {"onednn"});
  EXPECT_LT(unknown(), before);
  const Result<Model> partitioned = collage::run_passes(model, {apply});
  ASSERT_TRUE(partitioned.ok()) << partitioned.status().to_string();
  EXPECT_GE(count(text(*partitioned), "Target=\"onednn\""), 1u) << text(*partitioned);
  expect_right(*partitioned, {"onednn"});
}

// The error of passes over the given model.
std::string told(const Model& model, const std::vector<ModelPass>& passes,
                 collage::ErrorCode code) {
  const Result<Model> result = collage::run_passes(model, passes);
  EXPECT_EQ(result.status().code(), code) << result.status().to_string();
  return result.status().to_string();
}

TEST_F(Modules, BrokenPassesAreNamed) {
  using collage::ErrorCode;
  const Expression loose = *Expression::parameter("y", collage::DType::kFloat32, {4});
  const Expression body = *Expression::call("nn.relu", {loose});
  const ModelPass unbound = {"unbound", [&](const Model& model) {
                               return collage::with_function(model, "main",
                                                             *Expression::function({}, body));
                             }};
  EXPECT_EQ(told(given(), {passes::standard("simplify"), unbound}, ErrorCode::kBadModel),
            "module after pass unbound: @main: node: rule 'variable is bound': variable %y is no "
            "parameter of its function");
  const ModelPass other_type = {
      "other_type", [](const Model& model) {
        return collage::rewrite_calls(
            model, [](const Expression& call) -> Result<std::optional<Expression>> {
              if (call.op() != "nn.relu") return std::nullopt;
              return std::optional(*Expression::constant(Tensor::scalar(1.0f)));
            });
      }};
  EXPECT_EQ(told(given(), {other_type}, ErrorCode::kBadModel),
            "pass other_type: @main: a call of nn.relu: its replacement is a float32, not a "
            "Tensor[(8, 32), float32]");
  const ModelPass throws = {
      "throws", [](const Model&) -> Result<Model> { throw std::runtime_error("no more"); }};
  EXPECT_EQ(told(given(), {throws}, ErrorCode::kInternal),
            "pass throws: threw an exception: no more");
  EXPECT_EQ(told(given(), {{"empty", nullptr}}, ErrorCode::kUsage),
            "pass empty: it is no function");
  // One that was broken before is told where it is used, whatever uses it.
  const Model broken = unbound.run(given()).value();
  EXPECT_EQ(Program::compile(broken, options_).status().code(), ErrorCode::kBadModel);
  EXPECT_EQ(passes::simplify().run(broken).status().code(), ErrorCode::kBadModel);
  EXPECT_EQ(told(broken, {}, ErrorCode::kBadModel).substr(0, 25), "module before the passes:");
}

TEST_F(Modules, MisuseIsTold) {
  using collage::ErrorCode;
  EXPECT_EQ(told(given(), {passes::standard("simplfy")}, ErrorCode::kUsage).substr(0, 63),
            "pass simplfy: there is no standard pass of that name; they are ");
  ProgramOptions two;
  two.targets = {"onednn", "native"};
  EXPECT_EQ(told(given(), {passes::partition_for(two)}, ErrorCode::kUsage),
            "pass partition_for(onednn, native): one toolchain a pass, not several: onednn, "
            "native");
  EXPECT_EQ(told(given(), {passes::partition_for(only("reference"))}, ErrorCode::kUsage),
            "pass partition_for(reference): what no toolchain takes is the host's already: name "
            "one");
  EXPECT_EQ(told(given(), {passes::fuse_pattern("is_op('nn.rellu')(*)", "a")}, ErrorCode::kUsage),
            "pass fuse_pattern(a): column 7: unknown operator 'nn.rellu'");
  EXPECT_EQ(collage::parse_model("def @f() { 1f }").status().to_string(),
            "there is no function @main");
  EXPECT_EQ(collage::parse_model("def @main(%x: (float32, float32)) { %x.0 }").status().to_string(),
            "@main takes %x, a (float32, float32): inputs are tensors");
  EXPECT_EQ(collage::parse_model(kText).status().to_string(),
            "line 3, column 21: constant 0 is given by its type only, Tensor[(32, 16), float32], "
            "and nothing supplies it");
  EXPECT_FALSE(collage::parse_model(kText, {filled({16, 32})}).ok());
  EXPECT_EQ(collage::graph_function(given(), "none").status().to_string(),
            "the module has no graph function @none");
  EXPECT_EQ(collage::save_model(given(), folder_ / "m.txt").code(), ErrorCode::kUsage);
  const Expression x = *Expression::parameter("x", collage::DType::kFloat32, {4});
  EXPECT_EQ(Expression::call("nn.rellu", {x}).status().to_string(), "unknown operator 'nn.rellu'");
  EXPECT_EQ(Expression::call("nn.softmax", {x}, {{"axes", int64_t{0}}}).status().to_string(),
            "nn.softmax: unknown attribute 'axes'");
  EXPECT_FALSE(Expression::call(x, {x}).ok());
  EXPECT_FALSE(Expression::function({x, x}, x).ok());
  EXPECT_FALSE(Expression::constant(Tensor()).ok());
  EXPECT_FALSE(Expression::parameter("x", collage::DType::kFloat32, {-1}).ok());
  EXPECT_FALSE(Expression::item(x, 0).ok());
}

}  // namespace
