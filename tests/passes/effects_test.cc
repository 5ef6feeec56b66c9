// Calls with effects, attributes and updates of several arguments: text to text, what is refused,
// and what the interpreter calls, in which order.
#include "ir/effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "frontend/script/script.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "passes/inline_functions.h"
#include "passes/passes.h"
#include "runtime/run_number.h"
#include "tensor_program/call.h"
#include "tensor_program/external.h"
#include "tensor_program/module_programs.h"

namespace collage {
namespace {

using tensor_program::ExternalFunction;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float>& log_of_calls() {
  static std::vector<float> values;
  return values;
}

/// Logs its first element, and gives the input plus "by".
void register_log() {
  ExternalFunction function;
  function.label = "effects.log";
  function.types = [](std::span<const TensorType> types,
                      const Attrs&) -> Result<std::vector<TensorType>> {
    if (types.size() != 1) return bad_model("one tensor");
    return std::vector<TensorType>{types[0]};
  };
  function.call = [](std::span<const DLTensor> inputs, std::span<const DLTensor> results,
                     const Attrs& attrs) -> Status {
    const auto* x = static_cast<const float*>(inputs[0].data);
    log_of_calls().push_back(x[0]);
    for (int64_t i = 0; i < inputs[0].shape[0]; ++i)
      static_cast<float*>(results[0].data)[i] = x[i] + static_cast<float>(attrs.real("by"));
    return {};
  };
  function.attributes = {{"by", 0.0}};
  function.has_effects = true;
  tensor_program::register_external(std::move(function));
}

/// Adds the second to the first, sets the third to `to`, and gives the old first too.
void register_swap() {
  ExternalFunction function;
  function.label = "effects.swap";
  function.types = [](std::span<const TensorType> types,
                      const Attrs&) -> Result<std::vector<TensorType>> {
    return std::vector<TensorType>{types[2], types[0], types[0]};
  };
  function.call = [](std::span<const DLTensor> inputs, std::span<const DLTensor> results,
                     const Attrs& attrs) -> Status {
    EXPECT_EQ(inputs[2].data, results[0].data);
    EXPECT_EQ(inputs[0].data, results[1].data);
    for (int64_t i = 0; i < inputs[0].shape[0]; ++i) {
      auto* first = static_cast<float*>(inputs[0].data);
      static_cast<float*>(results[2].data)[i] = first[i];
      first[i] += static_cast<const float*>(inputs[1].data)[i];
      static_cast<float*>(inputs[2].data)[i] = static_cast<float>(attrs.ints("to").at(0));
    }
    return {};
  };
  function.updates = {2, 0};
  function.attributes = {{"to", Ints{7}}};
  tensor_program::register_external(std::move(function));
}

class Effects : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_all_ops();
    if (find_op(tensor_program::kCallOp) == nullptr) tensor_program::register_call_ops();
    register_log();
    register_swap();
  }

  static Result<Module> read(const std::string& text) {
    return tensor_program::parse_module_text(
        tensor_program::is_script(text) ? text : "#[version = \"0.0.5\"]\n" + text);
  }
  static Module parsed(const std::string& text) {
    Result<Module> module = read(text);
    EXPECT_TRUE(module.ok()) << module.status().to_string() << text;
    return module.ok() ? std::move(module).value() : Module();
  }
  static std::string refusal(const std::string& text) {
    const Result<Module> module = read(text);
    return module.ok() ? to_text(*module) : module.status().to_string();
  }
  /// What main's function prints as; read and printed again it stays.
  static std::string main_of(const Module& module) {
    const std::string text = to_text(module);
    EXPECT_EQ(to_text(parsed(text.substr(text.find('\n') + 1))), text);
    const Result<std::string> script = tensor_program::to_script(module);
    EXPECT_TRUE(script.ok()) << script.status().to_string();
    EXPECT_TRUE(structural_equal(parsed(*script), module)) << *script << text;
    return text.substr(text.find("def @main"));
  }
  /// What the interpreter gives for `inputs` in a run of a user.
  static std::vector<Tensor> run(Module module, const std::vector<Tensor>& inputs) {
    log_of_calls().clear();
    EXPECT_TRUE(inline_functions(module).ok());
    const Result<bool> linked = tensor_program::link_programs(module);
    EXPECT_TRUE(linked.ok()) << linked.status().to_string();
    EXPECT_TRUE(structural_equal(parsed_linked(module), module));
    // As the text of a saved kernel has it, without names.
    const std::string text = to_text(module);
    EXPECT_TRUE(structural_equal(parsed(text.substr(text.find('\n') + 1)), module)) << text;
    const RunNumber number(0);
    const Result<std::vector<Tensor>> results = interpret(module.main(), inputs);
    EXPECT_TRUE(results.ok()) << results.status().to_string();
    return results.ok() ? *results : std::vector<Tensor>();
  }
  /// The linked module by way of its text, where calls have names again.
  static Module parsed_linked(const Module& module) {
    const std::string text = to_text(tensor_program::named_programs(module).value());
    Module again = parsed(text.substr(text.find('\n') + 1));
    EXPECT_TRUE(tensor_program::link_programs(again).ok());
    return again;
  }
};

const Tensor kX = Tensor::from<float>({2}, {1, 2});

TEST_F(Effects, CallsKeepTheOrderOfTheText) {
  const Module module = parsed(R"(extern @log(Tensor[(2), float32]) = "effects.log";
def @main(%x: Tensor[(2), float32]) {
  %0 = @log(%x);
  %1 = add(%x, 3f);
  %2 = @log(%1);
  %3 = @log(%x);
  exp(%x)
}
)");
  EXPECT_EQ(main_of(module), R"(def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
  %0 = exp(%x);
  %1 = add(%x, 3f);
  %2 = @log(%x);
  %3 = after(%1, %2);
  %4 = @log(%3);
  %5 = after(%x, %4);
  %6 = @log(%5);
  after(%0, %6)
}
)");
  run(module, {kX});
  EXPECT_THAT(log_of_calls(), ElementsAre(1, 4, 1));
}

TEST_F(Effects, DataOrdersCallsToo) {
  const Module module = parsed(R"(extern @log(Tensor[(2), float32], by=1.5) = "effects.log";
def @main(%x: Tensor[(2), float32]) {
  @log(exp(@log(%x)))
}
)");
  EXPECT_THAT(to_text(module), HasSubstr("extern @log(Tensor[(2), float32], by=1.5f, effects=1) = "
                                         "\"effects.log\";"));
  EXPECT_EQ(main_of(module).find("after"), std::string::npos);
  EXPECT_THAT(run(module, {Tensor::from<float>({2}, {-1.5, -1.5})})[0].values<float>(),
              ElementsAre(2.5, 2.5));
  EXPECT_THAT(log_of_calls(), ElementsAre(-1.5, 1));
}

TEST_F(Effects, ControlFlowHasThoseOfItsFunctions) {
  const Module module = parsed(R"(extern @log(Tensor[(2), float32]) = "effects.log";
def @main(%x: Tensor[(2), float32], %c: bool) {
  %0 = @log(%x);
  %1 = fn (%i: int64, %s: Tensor[(2), float32]) {
    %2 = @log(%s);
    (True, add(%s, 10f))
  };
  %3 = control.loop(2i64, True, %1, %x, states=1);
  %4 = fn (%a: Tensor[(2), float32]) { @log(negative(%a)) };
  %5 = control.if(%c, %4, fn (%a: Tensor[(2), float32]) { %a }, %x);
  %6 = @log(add(%x, 100f));
  %3.0
}
)");
  for (const bool condition : {true, false}) {
    EXPECT_THAT(run(module, {kX, Tensor::scalar<bool>(condition)})[0].values<float>(),
                ElementsAre(21, 22));
    if (condition) {
      EXPECT_THAT(log_of_calls(), ElementsAre(1, 1, 11, -1, 101));
    } else {
      EXPECT_THAT(log_of_calls(), ElementsAre(1, 1, 11, 101));
    }
  }
}

TEST_F(Effects, FunctionsHaveThoseOfTheirCalls) {
  const char* text = R"(extern @log(Tensor[(2), float32]) = "effects.log";
def @twice(%a: Tensor[(2), float32], %b: Tensor[(2), float32]) -> Tensor[(2), float32] {
  %0 = @log(%b);
  %1 = @log(add(%b, 10f));
  %a
}
def @constant(%a: Tensor[(2), float32]) -> Tensor[(2), float32] {
  %0 = @log(meta[relay.Constant][0]);
  %a
}
def @main(%x: Tensor[(2), float32]) {
  %0 = @twice(%x, %x);
  %1 = @twice(%x, add(%x, 1f));
  %2 = @constant(%x);
  %3 = fn (%p: Tensor[(2), float32], Primitive=1) { %0 = @log(%p); multiply(%p, 2f) };
  %4 = %3(%x);
  %5 = @log(%x);
  (%x, %4)
}
#[metadata]
{"relay.Constant": [{"shape": [2], "dtype": "float32", "values": [5, 5]}]}
)";
  const Module module = parsed(text);
  main_of(module);
  const std::vector<Tensor> results = run(module, {kX});
  EXPECT_THAT(log_of_calls(), ElementsAre(1, 11, 2, 12, 5, 1, 1));
  EXPECT_THAT(results.at(0).values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(results.at(1).values<float>(), ElementsAre(2, 4));
}

TEST_F(Effects, ScriptUpdatesWhatItCalls) {
  const Module module = parsed(R"(@ir_module
class M:
    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
        R.call_packed("effects.log", x, by=0.5)
        R.call_packed("effects.log", y)
        z = R.exp(y)
        R.call_packed("effects.swap", x, y, z, to=[3])
        R.call_packed("effects.log", x)
        old = R.call_packed("effects.swap", x, y, z)
        return (x, z, old[2])
)");
  main_of(module);
  const std::vector<Tensor> results = run(module, {kX, Tensor::from<float>({2}, {20, 30})});
  EXPECT_THAT(log_of_calls(), ElementsAre(1, 20, 21));
  EXPECT_THAT(results.at(0).values<float>(), ElementsAre(21, 32));
  EXPECT_THAT(results.at(1).values<float>(), ElementsAre(3, 3));
  EXPECT_THAT(results.at(2).values<float>(), ElementsAre(21, 32));
}

TEST_F(Effects, WhatNobodyKnowsMayHaveThem) {
  const Module module = parsed(R"(@ir_module
class M:
    g = R.extern("effects.unknown2", (R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), updates=[0], k=[1, 2])
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        R.call_packed("effects.unknown", x)
        R.call_packed("effects.prints", x, x)
        R.call_packed(g, x)
        y = R.call_dps_packed("effects.pure", (x,), (3,))
        return y
)");
  main_of(module);
  const std::string text = to_text(module);
  EXPECT_THAT(text, HasSubstr("extern @effects_unknown(Tensor[(2), float32], effects=1) -> "
                              "Tensor[(2), float32]"));
  EXPECT_THAT(text, HasSubstr("extern @effects_prints(Tensor[(2), float32], Tensor[(2), float32], "
                              "effects=1) -> bool"));
  EXPECT_THAT(text, HasSubstr("extern @g(Tensor[(2), float32], k=[1, 2], updates=[0]) -> "));
  EXPECT_THAT(text, HasSubstr("extern @effects_pure(Tensor[(2), float32]) -> "));
}

TEST_F(Effects, OutsideOfARunNothingIsCalled) {
  Module module = parsed(R"(extern @log(Tensor[(2), float32], by=1) = "effects.log";
def @main(%x: Tensor[(2), float32]) {
  add(@log(%x), 1f)
}
)");
  ASSERT_TRUE(tensor_program::link_programs(module).ok());
  log_of_calls().clear();
  const Result<std::vector<Tensor>> results = interpret(module.main(), std::vector<Tensor>{kX});
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_THAT((*results)[0].values<float>(), ElementsAre(1, 1));
  EXPECT_TRUE(log_of_calls().empty());
  EXPECT_TRUE(tensor_program::is_local(module.main()));
}

TEST_F(Effects, WhatIsWrongIsRefused) {
  const auto linked = [&](const std::string& text) {
    Module module = parsed(text);
    const Result<bool> made = tensor_program::link_programs(module);
    return made.ok() ? to_text(module) : made.status().to_string();
  };
  EXPECT_THAT(refusal("extern @f(Tensor[(2), float32], to=3) = \"effects.log\";\n"),
              HasSubstr("effects.log: unknown attribute 'to'"));
  EXPECT_THAT(refusal("extern @f(Tensor[(2), float32], by=\"x\") = \"effects.log\";\n"),
              HasSubstr("effects.log: attribute 'by'"));
  EXPECT_THAT(refusal("extern @f(Tensor[(2), float32], updates=[1]) = \"effects.log\";\n"),
              HasSubstr("updates lists parameters, from 0"));
  EXPECT_THAT(refusal("extern @f(Tensor[(2), float32], effects=2) = \"effects.log\";\n"),
              HasSubstr("effects is 0 or 1"));
  EXPECT_THAT(refusal("program @p {\n  param A: float32[2];\n"
                      "  result C[i:2] = extern \"effects.log\"(A): float32;\n}\n"),
              HasSubstr("effects.log has effects: graph functions may call it, stages may not"));
  EXPECT_THAT(refusal("extern @f() -> float32, effects=1 = \"x\";\n"), HasSubstr("expected '='"));
  EXPECT_THAT(
      refusal("extern @f(effects=1) -> float32 = \"effects.none\";\n"
              "def @main(%x: float32) { %0 = @f(); %1 = @f(); %x }\n"),
      HasSubstr("@f has effects and stands behind others that do, so it needs an argument"));
  EXPECT_THAT(linked("extern @f(Tensor[(2), float32], updates=[0]) -> Tensor[(2), float32] = "
                     "\"effects.log\";\n"
                     "def @main(%x: Tensor[(2), float32]) { @f(%x) }\n"),
              HasSubstr("effects.log updates other arguments than it is declared to"));
  EXPECT_THAT(
      refusal("@ir_module\nclass M:\n    @R.function\n    def main(x: R.Tensor((2,))):\n"
              "        R.call_packed(\"effects.swap\", x, x, R.exp(x))\n        return x\n"),
      HasSubstr("effects.swap updates its argument 2, which has no name of its type here"));
  // Read before the label was registered with effects.
  Module early = parsed(
      "extern @f(Tensor[(2), float32]) -> Tensor[(2), float32] = \"effects.late\";\n"
      "def @main(%x: Tensor[(2), float32]) { @f(%x) }\n");
  ExternalFunction late = *tensor_program::find_external("effects.log");
  late.label = "effects.late";
  ASSERT_TRUE(tensor_program::register_external(late));
  EXPECT_THAT(tensor_program::link_programs(early).status().to_string(),
              HasSubstr("effects.late has effects, and is declared without effects=1"));
}

/// A module of random values with calls that log in between, some of functions, some in them.
std::string random_text(uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int below) {
    return static_cast<int>(random() % static_cast<uint32_t>(below));
  };
  const auto body = [&](const std::string& param, int statements, bool calls) {
    std::string text;
    std::vector<std::string> values = {param};
    for (int i = 0; i < statements; ++i) {
      const auto value = [&] {
        return values[static_cast<size_t>(draw(static_cast<int>(values.size())))];
      };
      const std::string name = fmt::format("%{}", i);
      const int kind = draw(calls ? 6 : 5);
      text += "  " + name + " = ";
      if (kind == 0) text += fmt::format("add({}, {}f)", value(), draw(4));
      if (kind == 1) text += fmt::format("nn.relu({})", value());
      if (kind == 2 || kind == 3)
        text += fmt::format("@log({})", draw(4) == 0 ? "meta[relay.Constant][0]" : value());
      if (kind == 4) text += fmt::format("@reshaped({})", value());
      if (kind == 5) text += fmt::format("@inner({})", value());
      text += ";\n";
      values.push_back(name);
    }
    return text + "  " + values[static_cast<size_t>(draw(static_cast<int>(values.size())))] + "\n";
  };
  const char* type = "Tensor[(2), float32]";
  return fmt::format(
      "extern @log({0}, by=1) = \"effects.log\";\n"
      "def @reshaped(%a: {0}) -> {0} {{\n  reshape(reshape(%a, newshape=[1, 2]), "
      "newshape=[2])\n}}\n"
      "def @inner(%a: {0}) -> {0} {{\n{1}}}\ndef @main(%x: {0}) -> {0} {{\n{2}}}\n"
      "#[metadata]\n{{\"relay.Constant\": [{{\"shape\": [2], \"dtype\": \"float32\", "
      "\"values\": [0.5, 0.25]}}]}}\n",
      type, body("%a", 4, false), body("%x", 12, true));
}

/// What a reader of the text calls, line by line: the values that are logged, then the result.
std::vector<float> read_line_by_line(const std::string& text, const std::string& function,
                                     float x) {
  std::map<std::string, float> values = {{function == "main" ? "%x" : "%a", x},
                                         {"meta[relay.Constant][0]", 0.5f}};
  std::vector<float> logged;
  std::istringstream lines(text.substr(text.find("def @" + function)));
  std::string line;
  std::getline(lines, line);
  static const std::regex call(R"(  (%\d+) = (@?[\w.]+)\(([^,)]+)(?:, (\d)f)?\);)");
  for (std::smatch parts; std::getline(lines, line) && std::regex_match(line, parts, call);) {
    const float arg = values.at(parts[3]);
    float& value = values[parts[1]];
    value = arg;
    if (parts[2] == "add") value = arg + std::stof(parts[4]);
    if (parts[2] == "nn.relu") value = std::max(arg, 0.0f);
    if (parts[2] == "@log") {
      logged.push_back(arg);
      value = arg + 1;
    }
    if (parts[2] == "@inner") {
      const std::vector<float> inner = read_line_by_line(text, "inner", arg);
      logged.insert(logged.end(), inner.begin(), inner.end() - 1);
      value = inner.back();
    }
  }
  logged.push_back(values.at(line.substr(2)));
  return logged;
}

TEST_F(Effects, RandomModulesKeepTheOrderThroughAllPasses) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const std::string text = random_text(seed);
    SCOPED_TRACE(text);
    Module module = parsed(text);
    main_of(module);
    const auto changed = simplification_pipeline().run(module);
    ASSERT_TRUE(changed.ok()) << changed.status().to_string();
    log_of_calls().clear();
    const RunNumber number(0);
    const Result<std::vector<Tensor>> results = interpret(module.main(), std::vector<Tensor>{kX});
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    std::vector<float> seen = log_of_calls();
    seen.push_back((*results)[0].values<float>()[0]);
    ASSERT_EQ(seen, read_line_by_line(text, "main", 1)) << to_text(module);
  }
}

}  // namespace
}  // namespace collage
