// Kernels that a toolchain claimed, compiled by a pass and attached to the module: what is attached
// is printed, read back, linked, saved and interpreted, and never compiled again.
#include "backend/targets/external_mods.h"

#include <gmock/gmock.h>

#include <random>

#include "artifact/artifact_file.h"
#include "artifact/damage.h"
#include "base/files.h"
#include "collage/module.h"
#include "collage/passes.h"
#include "compiler/given_model.h"
#include "compiler/model_stages.h"
#include "compiler/saved_program.h"
#include "ir/structural.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "tensor_program/module_programs.h"
#include "test_paths.h"
#include "verify/comparison.h"

namespace collage {
namespace {

using tensor_program::ExternalModCall;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClaimed = R"(#[version = "0.0.5"]
def @dense(%a: Tensor[(8, 16), float32], %w: Tensor[(32, 16), float32], Primitive=1,
           Compiler="onednn", global_symbol="dense_lib") -> Tensor[(8, 32), float32] {
  nn.relu(nn.dense(%a, %w))
}
def @gate(%a: Tensor[(8, 32), float32], Primitive=1, Compiler="native", global_symbol="gate_lib")
    -> (Tensor[(8, 32), float32], Tensor[(8, 32), float32]) {
  (multiply(%a, sigmoid(%a)), negative(%a))
}
def @main(%x: Tensor[(8, 16), float32], %w: Tensor[(32, 16), float32]) {
  %0 = @dense(%x, %w);
  %1 = @gate(tanh(%0));
  %2 = @gate(%0);
  (add(%1.0, 1f), %1.1, %2.0)
}
)";

class ExternalMods : public testing::GivenModel {
 protected:
  ExternalMods() : GivenModel(kClaimed) {}

  ModelPass codegen(const std::string& target) const {
    ProgramOptions options = options_;
    options.targets = {target};
    return passes::codegen(options);
  }
  Result<Model> generated(const Model& model, const std::vector<std::string>& targets) const {
    std::vector<ModelPass> passes;
    for (const std::string& target : targets) passes.push_back(codegen(target));
    return run_passes(model, passes);
  }
  Model with_both() const {
    Result<Model> model = generated(model_of(given_), {"onednn", "native"});
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return *std::move(model);
  }
  static std::string text(const Model& model) {
    ModelTextOptions options;
    options.values = false;
    return model_text(model, options).value();
  }
  // What @main gives by the interpreter.
  static std::vector<Tensor> interpreted(const Model& model, uint64_t seed) {
    const Function main = linked(model).value().impl().module.main();
    const Result<std::vector<Tensor>> outputs = interpret(main, random_inputs(main, seed));
    EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
    return outputs.value();
  }
  static void expect_near(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      const Difference difference =
          compare_tensors(actual[i], expected[i], {.of_scale = 1e-4, .relative = 1e-3});
      EXPECT_TRUE(difference.within) << "output " << i << ": " << difference.reason;
    }
  }
  // Compiled and interpreted, it gives what the given module does.
  void expect_right(const Model& model, const Model& given, uint64_t seed) {
    const std::vector<Tensor> expected = interpreted(given, seed);
    expect_near(interpreted(model, seed), expected);
    Result<Program> program = compile_model(model, options_);
    ASSERT_TRUE(program.ok()) << program.status().to_string() << "\n" << text(model);
    const Function main = linked(given).value().impl().module.main();
    expect_near(program->run(random_inputs(main, seed)).value(), expected);
  }
  // The targets of the steps of attached plans that the program runs.
  static std::vector<std::string> linked_targets(const Program& program) {
    std::vector<std::string> targets;
    for (const Step& step : program.impl().plan->steps) {
      const Result<SavedKernel> saved = step.kernel->save();
      if (!saved.ok()) continue;
      for (const auto& plan : saved->plans)
        for (const Step& inner : plan->steps) targets.push_back(inner.target);
    }
    return targets;
  }
  // A call of an attached module as it is linked.
  static ExternalModCall call_of(const Model& model, const std::string& symbol) {
    for (const Expr& expr : post_order(linked(model).value().impl().module.main()->body))
      if (const auto* call = as<CallNode>(expr))
        if (auto made = tensor_program::external_mod_call(*call); made && made->symbol == symbol)
          return *made;
    ADD_FAILURE() << symbol;
    return {};
  }
  static std::string bytes_of(const ExternalModCall& call) {
    const Tensor& code = as<ConstantNode>(call.mod.code)->value;
    return {static_cast<const char*>(code.raw()), code.bytes()};
  }
  // As it loads with that code.
  static Status loaded(ExternalModCall call, const std::string& bytes) {
    call.mod.code = make_constant(Tensor::from<uint8_t>(
        {static_cast<int64_t>(bytes.size())}, std::vector<uint8_t>(bytes.begin(), bytes.end())));
    return load_external_mod(call, 1).status();
  }
};

TEST_F(ExternalMods, RunsOfThePassCompose) {
  const Model first = generated(model_of(given_), {"onednn"}).value();
  EXPECT_THAT(text(first), HasSubstr("Compiler=\"native\""));
  const Model model = generated(first, {"native"}).value();
  const std::string printed = text(model);
  EXPECT_THAT(printed, HasSubstr("extern @dense(Tensor[(8, 16), float32], Tensor[(32, 16), "
                                 "float32]) -> Tensor[(8, 32), float32] = \"dense_lib\";\n"));
  EXPECT_THAT(printed, HasSubstr("extern @gate(Tensor[(8, 32), float32]) -> (Tensor[(8, 32), "
                                 "float32], Tensor[(8, 32), float32]) = \"gate_lib\";\n"));
  EXPECT_THAT(printed, HasSubstr("external_mods[\"dense_lib\"] = (\"onednn\", \""));
  EXPECT_THAT(printed, HasSubstr("external_mods[\"gate_lib\"] = (\"native\", \""));
  EXPECT_THAT(printed, HasSubstr("%0 = @dense(%x, %w);"));
  EXPECT_THAT(printed, Not(HasSubstr("Primitive")));
  EXPECT_LT(printed.size(), 2000U) << printed;  // the code by its type alone
  const std::vector<ExternalModule> attached = external_modules(model).value();
  ASSERT_EQ(attached.size(), 2U);
  EXPECT_EQ(attached[0].symbol, "dense_lib");
  EXPECT_EQ(attached[1].target, "native");
  expect_right(model, model_of(given_), 3);
}

TEST_F(ExternalMods, AreReadBackAsTheyArePrinted) {
  const Model model = with_both();
  const auto expect_same = [&](const Result<Model>& read) {
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_TRUE(structural_equal(read->impl().module, model.impl().module));
  };
  const std::vector<Tensor> weights = model_weights(model).value();
  expect_same(parse_model(model_text(model).value()));
  expect_same(parse_model(text(model), weights));
  const std::string script = model_script(model).value();
  EXPECT_THAT(script,
              HasSubstr("I.module_attrs({\"external_mods\": {\"dense_lib\": (\"onednn\", "));
  EXPECT_THAT(script, HasSubstr("R.call_dps_packed(dense, (x, w), (8, 32), dtype=\"float32\")"));
  expect_same(parse_model(script));
  ModelTextOptions by_type;
  by_type.values = false;
  expect_same(parse_model(model_script(model, by_type).value(), weights));
  ASSERT_TRUE(save_model(model, folder_ / "m.relay").ok());
  LoadOptions as_it_is;
  as_it_is.simplify = false;
  expect_same(Model::load(folder_ / "m.relay", as_it_is));
  // What is linked prints as it was.
  const Model as_linked = linked(model).value();
  EXPECT_TRUE(as_linked.impl().module.external_mods.empty());
  EXPECT_EQ(text(as_linked), text(model));
}

TEST_F(ExternalMods, OthersAreNotTheSame) {
  const Model model = with_both();
  Module other = model.impl().module;
  other.external_mods.at("dense_lib").variant = "another";
  EXPECT_FALSE(structural_equal(other, model.impl().module));
  other = model.impl().module;
  other.external_mods.at("dense_lib").code = other.external_mods.at("gate_lib").code;
  EXPECT_FALSE(structural_equal(other, model.impl().module));
  other.external_mods.erase("dense_lib");
  EXPECT_FALSE(structural_equal(other, model.impl().module));
}

// No target but the host is left, and still onednn's and native's kernels run.
TEST_F(ExternalMods, AreLinkedAndNotChosenAgain) {
  options_.targets = {"reference"};
  const Model model = with_both();
  Result<Program> program = compile_model(model, options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  std::vector<std::string> targets = linked_targets(*program);
  std::erase(targets, "");  // changes of layout
  EXPECT_THAT(targets, ::testing::UnorderedElementsAre("onednn", "native", "native"));
  expect_right(model, model_of(given_), 4);
}

TEST_F(ExternalMods, AreSavedWithThePrograms) {
  for (const char* target : {"reference", "native"}) {
    options_.targets = {target};
    EXPECT_EQ(testing::run_saved(with_both(), options_, folder_ / "saved.collage", 3, 20), "");
  }
  EXPECT_EQ(testing::accepted_damages(folder_ / "saved.collage", 100), 0);
}

TEST_F(ExternalMods, DamagedCodeIsRefused) {
  const Model model = with_both();
  for (const char* symbol : {"dense_lib", "gate_lib"}) {
    const ExternalModCall call = call_of(model, symbol);
    const std::string bytes = bytes_of(call);
    EXPECT_TRUE(loaded(call, bytes).ok());
    const auto file = ArtifactFile::from_memory(bytes.data(), bytes.size(), nullptr).value();
    for (uint32_t number = 0; number < 160; ++number) {
      const std::string other = testing::damaged(bytes, file->manifest(), number);
      if (other == bytes) continue;
      const Status status = loaded(call, other);
      ASSERT_FALSE(status.ok()) << symbol << " " << number;
      EXPECT_THAT(status.to_string(), HasSubstr(fmt::format("external module {}: ", symbol)));
      EXPECT_THAT(status.to_string(), Not(HasSubstr("\n")));
    }
  }
  ExternalModCall call = call_of(model, "dense_lib");
  EXPECT_THAT(loaded(call, "").to_string(), HasSubstr("external module dense_lib: "));
  Module damaged = model.impl().module;
  Expr& code = damaged.external_mods.at("dense_lib").code;
  code = make_constant(Tensor::zeros(DType::kUInt8, {100}));
  const Result<Program> program = compile_model(model_of(damaged), options_);
  EXPECT_EQ(program.status().to_string(),
            "external module dense_lib: this is no artifact, or damaged: Not a zip archive");
  code = make_constant(Tensor::zeros(DType::kInt8, {100}));
  EXPECT_THAT(compile_model(model_of(damaged), options_).status().to_string(),
              HasSubstr("the code of an external module is a Tensor[(n), uint8]"));
}

TEST_F(ExternalMods, CodeForAnotherProcessorOrCallIsRefused) {
  const ExternalModCall call = call_of(with_both(), "gate_lib");
  const std::string bytes = bytes_of(call);
  const auto file = ArtifactFile::from_memory(bytes.data(), bytes.size(), nullptr).value();
  ASSERT_FALSE(file->manifest().features.empty());
  std::string manifest = manifest_text(file->manifest()), feature = file->manifest().features[0];
  feature.back() = '?';
  manifest.replace(manifest.find("\"" + file->manifest().features[0] + "\"") + 1, feature.size(),
                   feature);
  const Status foreign = loaded(call, testing::with_manifest(bytes, file->manifest(), manifest));
  EXPECT_EQ(foreign.code(), ErrorCode::kUnavailable) << foreign.to_string();
  EXPECT_THAT(foreign.to_string(), HasSubstr("it was made for a processor with " + feature));

  ExternalModCall other = call;
  other.args = {make_var("a", TensorType{{8, 31}, DType::kFloat32})};
  EXPECT_THAT(loaded(other, bytes).to_string(),
              HasSubstr("external module gate_lib: it takes (Tensor[(8, 32), float32]), not "
                        "(Tensor[(8, 31), float32])"));
  other = call;
  other.result = call.result.fields()[0];
  EXPECT_THAT(loaded(other, bytes).to_string(),
              HasSubstr("external module gate_lib: it gives (Tensor[(8, 32), float32], "
                        "Tensor[(8, 32), float32]), not (Tensor[(8, 32), float32])"));
}

TEST_F(ExternalMods, ErrorsNameTheFunctionOrTheSymbol) {
  const Result<Model> unknown = parse_model(R"(
    extern @f(Tensor[(4), float32]) -> Tensor[(4), float32] = "nobody.knows";
    def @main(%x: Tensor[(4), float32]) { @f(%x) })");
  ASSERT_TRUE(unknown.ok()) << unknown.status().to_string();
  EXPECT_THAT(compile_model(*unknown, options_).status().to_string(),
              HasSubstr("there is no external function 'nobody.knows'"));

  const Model refused = parse_model(R"(
    def @f(%x: Tensor[(4), int64], Primitive=1, Compiler="onednn") -> Tensor[(4), int64] { add(%x, %x) }
    def @main(%x: Tensor[(4), int64]) { @f(%x) })")
                            .value();
  const Status status = generated(refused, {"onednn"}).status();
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(status.to_string(), HasSubstr("pass codegen(onednn): @f: onednn does not take it: "));

  const auto parsed = [](const std::string& mods) {
    return parse_model(mods + "def @main(%x: Tensor[(4), float32]) { %x }").status().to_string();
  };
  const std::string code = "meta[relay.Constant][0] /*Tensor[(4), uint8]*/";
  EXPECT_THAT(parsed("external_mods[f] = (\"a\", \"b\", " + code + ");"),
              HasSubstr("expected a string"));
  EXPECT_THAT(parsed("external_mods[\"f\"] = (\"a\", \"b\", 1);"),
              HasSubstr("expected meta[relay.Constant][…]"));
  EXPECT_THAT(parsed("external_mods[\"f\"] = (\"a\", \"b\", " + code + ");"),
              HasSubstr("nothing supplies it"));
  EXPECT_THAT(parsed("external_mods[\"f\"] = (\"a\", \"b\", " + code +
                     ");\nexternal_mods[\"f\"] = ("
                     "\"a\", \"b\", " +
                     code + ");"),
              HasSubstr("line 2, column 15: a second external module 'f'"));
}

// A symbol that a function has already is another's.
TEST_F(ExternalMods, SymbolsAreUnique) {
  const Model model = parse_model(R"(
    extern @other(Tensor[(4), float32]) -> Tensor[(4), float32] = "f_lib";
    def @f(%x: Tensor[(4), float32], Primitive=1, Compiler="native", global_symbol="f_lib")
        -> Tensor[(4), float32] {
      exp(%x)
    }
    def @g(%x: Tensor[(4), float32], Primitive=1, Compiler="native", global_symbol="f_lib")
        -> Tensor[(4), float32] {
      tanh(%x)
    }
    def @main(%x: Tensor[(4), float32]) { (@other(@f(@g(%x))),) })")
                          .value();
  const std::vector<ExternalModule> found =
      external_modules(generated(model, {"native"}).value()).value();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].symbol, "f_lib_1");
  EXPECT_EQ(found[1].symbol, "f_lib_2");
}

TEST_F(ExternalMods, GoWhereNothingCallsThem) {
  const Model model = with_both();
  Module module = model.impl().module;
  const Expr x = make_var("x", TensorType{{4}, DType::kFloat32});
  module.functions["main"] = make_function({x}, x);
  const Model simple = run_passes(model_of(module), {passes::standard("dead_code")}).value();
  EXPECT_EQ(text(simple).find("external"), std::string::npos) << text(simple);
}

// The seed's listings before and after code is generated: conv_relu is claimed, compiled, and
// attached to the text of the second.
TEST_F(ExternalMods, TheSeedsListing) {
  const auto listing = [](const std::string& name) {
    return read_file(std::filesystem::path(COLLAGE_TESTS_DIR) / "modules" / "script" / name)
        .value();
  };
  const auto with_line_behind = [](std::string text, const std::string& begin,
                                   const std::string& line) {
    const size_t end = text.find(":\n", text.find(begin));
    return text.insert(end + 2, line);
  };
  const Tensor weight = random_tensor({{20, 10, 3, 3}, DType::kFloat32}, 7, {-0.5, 0.5});
  const Result<Model> given = parse_model(
      with_line_behind(listing("4_function_of_a_module.script"), "w: R.Tensor",
                       "        R.func_attr({\"Primitive\": 1, \"Compiler\": \"onednn\", "
                       "\"global_symbol\": \"conv_relu_lib\"})\n"),
      {weight});
  ASSERT_TRUE(given.ok()) << given.status().to_string();
  const Result<Model> made = generated(*given, {"onednn"});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const std::string script = model_script(*made).value();
  const size_t begin = script.find("    I.module_attrs({\"external_mods\": {\"conv_relu_lib\": ");
  ASSERT_NE(begin, std::string::npos);
  const std::string attrs = script.substr(begin, script.find('\n', begin) + 1 - begin);
  const std::string after = listing("5_external_compiler.script");
  EXPECT_THAT(compile_model(parse_model(after, {weight}).value(), options_).status().to_string(),
              HasSubstr("there is no external function 'conv_relu_lib'"));
  const Result<Model> seeds = parse_model(with_line_behind(after, "class ", attrs), {weight});
  ASSERT_TRUE(seeds.ok()) << seeds.status().to_string();
  options_.targets = {"reference"};
  EXPECT_THAT(linked_targets(compile_model(*seeds, options_).value()), Contains("onednn"));
  expect_right(*seeds, *given, 5);
}

// Random graphs whose kernels two toolchains claim in turn.
TEST_F(ExternalMods, RandomModules) {
  std::mt19937 random(20261130);
  const auto below = [&](size_t count) { return random() % count; };
  size_t attached = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const TensorType type{{4, 8}, DType::kFloat32};
    std::vector<Expr> params = {make_var("x", type), make_var("y", type)}, values = params;
    const auto any = [&] { return values[below(values.size())]; };
    for (int i = 0; i < 8; ++i) {
      static constexpr const char* kUnary[] = {"tanh", "nn.relu", "negative", "sigmoid"};
      static constexpr const char* kBinary[] = {"add", "multiply", "maximum"};
      if (below(4) == 0) {
        const Tensor weight = random_tensor({{8, 8}, DType::kFloat32}, random(), {-0.5, 0.5});
        values.push_back(make_call("nn.dense", {any(), make_constant(weight)}).value());
      } else if (below(2) == 0) {
        values.push_back(make_call(kUnary[below(4)], {any()}).value());
      } else {
        values.push_back(
            make_call("tanh", {make_call(kBinary[below(3)], {any(), any()}).value()}).value());
      }
    }
    const Model given =
        model_of(Module(make_function(params, make_tuple({values.back(), any(), any()}))));
    Model model = given;
    const bool claims_all = below(2) == 0;
    for (const char* target : {"onednn", "native"}) {
      if (!claims_all && below(2) == 0) continue;
      ProgramOptions only = options_;
      only.targets = {target};
      Result<Model> next = run_passes(model, {passes::partition_for(only), codegen(target)});
      ASSERT_TRUE(next.ok()) << next.status().to_string() << "\n" << text(model);
      model = *std::move(next);
    }
    attached += external_modules(model).value().size();
    const Result<Model> again = parse_model(model_text(model).value());
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_EQ(text(*again), text(model));
    options_.targets = {seed % 2 == 0 ? "reference" : "native"};
    expect_right(*again, given, seed);
  }
  EXPECT_GT(attached, 20U);
}

}  // namespace
}  // namespace collage
