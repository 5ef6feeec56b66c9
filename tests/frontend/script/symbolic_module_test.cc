// Text over symbols: instances, inferred terms, errors.
#include "frontend/script/symbolic_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/script/script.h"
#include "ir/structural.h"
#include "ir/text_printer.h"
#include "ops/registry.h"
#include "random_module.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;

SymbolicModule read(const std::string& text, const std::string& function = "main") {
  register_all_ops();
  Result<SymbolicModule> module = SymbolicModule::parse(text, {}, function);
  EXPECT_TRUE(module.ok()) << module.status().to_string() << "\n" << text;
  return module.ok() ? *module : SymbolicModule();
}

std::string signature(const std::string& text) { return read(text).signature(); }

std::string wrong(const std::string& text) {
  register_all_ops();
  const Result<SymbolicModule> module = SymbolicModule::parse(text);
  return module.ok() ? "ok: " + module->signature() : module.status().to_string();
}

std::string instance(const SymbolicModule& module, const Symbols& values) {
  const Result<Module> made = module.instantiate(values);
  return made.ok() ? to_text(*made) : made.status().to_string();
}

TEST(SymbolicModule, ResultsAreInferredByTheTypeRules) {
  EXPECT_EQ(signature("def @main(%x: Tensor[(n, 64), float32], %y: Tensor[(n, m), float32]) {\n"
                      "  concatenate((%x, %y), axis=1)\n}\n"),
            "fn (%x: Tensor[(n, 64), float32], %y: Tensor[(n, m), float32]) -> "
            "Tensor[(n, m + 64), float32]");
  EXPECT_EQ(signature("def @main(%x: Tensor[(1, 3, h, w), float32], %w: Tensor[(8, 3, 3, 3), "
                      "float32]) {\n  nn.max_pool2d(nn.conv2d(%x, %w, strides=[2, 2], padding=[1, "
                      "1, 1, 1]), pool_size=[2, 2], strides=[2, 2])\n}\n"),
            "fn (%x: Tensor[(1, 3, h, w), float32], %w: Tensor[(8, 3, 3, 3), float32]) -> "
            "Tensor[(1, 8, (h + 1) / 4, (w + 1) / 4), float32]");
  EXPECT_EQ(signature("def @main(%x: Tensor[(n, m, 4), float32]) {\n"
                      "  (reshape(%x, newshape=[n * m * 4]), sum(%x, axis=[1]), exp(%x))\n}\n"),
            "fn (%x: Tensor[(n, m, 4), float32]) -> (Tensor[(4 * n * m), float32], Tensor[(n, 4), "
            "float32], Tensor[(n, m, 4), float32])");
}

TEST(SymbolicModule, ResultsThatAreStatedStay) {
  EXPECT_EQ(signature("def @main(%x: Tensor[(n, 8), float32], %y: Tensor[(n, m), float32]) -> "
                      "(float32, Tensor[(n, 8 + m), float32]) {\n  (1f, concatenate((%x, %y), "
                      "axis=1))\n}\n"),
            "fn (%x: Tensor[(n, 8), float32], %y: Tensor[(n, m), float32]) -> (float32, Tensor[(n, "
            "8 + m), float32])");
  EXPECT_THAT(wrong("def @main(%x: Tensor[(n), float32]) -> Tensor[(n + 1), float32] {\n  %x\n}\n"),
              HasSubstr("annotated as Tensor[(3361), float32]"));
}

TEST(SymbolicModule, DimensionsWithoutATermAreUnknown) {
  EXPECT_EQ(
      signature("def @main(%x: Tensor[(n), float32]) {\n"
                "  strided_slice(%x, begin=[0], end=[n % 3 + 1], strides=[1], axes=[0])\n}\n"),
      "fn (%x: Tensor[(n), float32]) -> Tensor[(?), float32]");
}

TEST(SymbolicModule, AnInstanceIsTheModuleOfNumbers) {
  const SymbolicModule module = read(
      "program @scale {\n"
      "  param A: float32[n, 2 * m];\n"
      "  result C[i:n, j:2 * m] = A[i, j] * float32(m) + float32(j);\n"
      "}\n"
      "def @helper(%a: Tensor[(n, m * 2), float32]) -> Tensor[(m, 2 * n), float32] {\n"
      "  reshape(%a, newshape=[m, (n + n)])\n"
      "}\n"
      "def @main(%x: Tensor[(n, 2 * m), float32], %y: Tensor[(max(n, 2), m), float32]) -> "
      "Tensor[(m, 2 * n), float32] {\n"
      "  %0 = @scale(%x);  /* ty=Tensor[(n, 2 * m), float32] */\n"
      "  @helper(%0)\n"
      "}\n");
  EXPECT_EQ(module.symbols(), (std::vector<std::string>{"n", "m"}));
  EXPECT_EQ(instance(module, {{"n", 3}, {"m", 5}}),
            to_text(parse_module_text(
                        "program @scale {\n"
                        "  param A: float32[3, 10];\n"
                        "  result C[i:3, j:10] = A[i, j] * float32(5) + float32(j);\n"
                        "}\n"
                        "def @helper(%a: Tensor[(3, 10), float32]) -> Tensor[(5, 6), float32] {\n"
                        "  reshape(%a, newshape=[5, 6])\n"
                        "}\n"
                        "def @main(%x: Tensor[(3, 10), float32], %y: Tensor[(3, 5), float32]) -> "
                        "Tensor[(5, 6), float32] {\n"
                        "  @helper(@scale(%x))\n"
                        "}\n")
                        .value()));
}

TEST(SymbolicModule, AttributesMayBeTerms) {
  const SymbolicModule module = read(
      "def @main(%x: Tensor[(n, 6), float32]) {\n"
      "  reshape(%x, newshape=[(n + 1) / 2 + n / 2, min(6, n + 6), 2 / 2])\n}\n");
  EXPECT_THAT(instance(module, {{"n", 4}}), HasSubstr("newshape=[4, 6, 1]"));
  const SymbolicModule whole = read(
      "def @main(%x: Tensor[(n, 6), float32]) {\n  strided_slice(%x, begin=(0, 0), end=(n - "
      "1, 6), strides=(1, 1), axes=(0, 1))\n}\n");
  EXPECT_THAT(instance(whole, {{"n", 4}}), HasSubstr("Tensor[(3, 6), float32]"));
}

TEST(SymbolicModule, ShapesBindSymbols) {
  const SymbolicModule module = read(
      "def @main(%x: Tensor[(n, 64), float32], %y: Tensor[(n, m), float32], %z: Tensor[(m + "
      "n), float32]) {\n  (%x, %y, %z)\n}\n");
  const auto bound = [&](const std::vector<Shape>& shapes) {
    const Result<Symbols> values = module.bind(shapes);
    return values.ok() ? fmt::format("n {} m {}", values->at("n"), values->at("m"))
                       : values.status().to_string();
  };
  EXPECT_EQ(bound({{3, 64}, {3, 5}, {8}}), "n 3 m 5");
  EXPECT_EQ(bound({{0, 64}, {0, 5}, {5}}), "n 0 m 5");
  EXPECT_EQ(bound({{3, 64}, {4, 5}, {8}}),
            "symbol n is 3 by dimension 0 of 'x', and 4 by dimension 0 of 'y'");
  EXPECT_EQ(bound({{3, 64}, {3, 5}, {9}}), "dimension 0 of 'z' is 9, not m + n with m = 5, n = 3");
  EXPECT_EQ(bound({{3, 63}, {3, 5}, {8}}), "dimension 1 of 'x' is 63, not 64");
  EXPECT_EQ(bound({{3, 64, 1}, {3, 5}, {8}}),
            "'x' has 3 dimensions, not 2: Tensor[(n, 64), float32]");
  EXPECT_EQ(bound({{3, 64}}), "1 shapes of 3 parameters");
  EXPECT_EQ(module.bind({{"x", {3, 64}}}, {}).status().to_string(),
            "symbol m has no value: give one");
  EXPECT_EQ(module.bind({{"x", {3, 64}}}, {{"n", 4}}).status().to_string(),
            "symbol n is 4 by what is given, and 3 by dimension 0 of 'x'");
  EXPECT_EQ(module.bind({{"x", {3, 64}}}, {{"m", 4}}).value(), (Symbols{{"n", 3}, {"m", 4}}));
}

TEST(SymbolicModule, WhatIsWrongIsSaidWhenItIsRead) {
  const auto main = [](const std::string& params, const std::string& body) {
    return wrong("def @main(" + params + ") {\n  " + body + "\n}\n");
  };
  EXPECT_EQ(main("%x: Tensor[(n + 1), float32]", "%x"),
            "symbol n is no dimension of @main's parameters alone: no shape says what "
            "it is");
  EXPECT_THAT(main("%x: Tensor[(n), float32]", "reshape(%x, newshape=[k])"),
              HasSubstr("an attribute's value"));
  EXPECT_THAT(main("%x: Tensor[(n), float32]", "reshape(%x, newshape=[n * k])"),
              HasSubstr("k is no symbol: no parameter of @main has it in its shape"));
  EXPECT_THAT(main("%x: Tensor[(n), float32], %y: Tensor[(m), float32]", "add(%x, %y)"),
              HasSubstr("m = 6720, n = 3360: line 2, column 3: add: "));
  EXPECT_THAT(main("%x: Tensor[(n), float32], %y: Tensor[(n - 100000), float32]", "%x"),
              HasSubstr("n = 3360: line 1, column 49: the extent n - 100000 is -96640"));
  EXPECT_THAT(main("%x: Tensor[(n +), float32]", "%x"), HasSubstr("ok: fn ()"));
  EXPECT_THAT(main("%x: (Tensor[(n), float32], float32), %y: Tensor[(n), float32]", "%y"),
              HasSubstr("ok: fn ()"));
  // Text without symbols is left to those who read it.
  EXPECT_EQ(main("%x: Tensor[(4), float32]", "%y"), "ok: fn (%x: Tensor[(4), float32]) -> ()");
}

TEST(SymbolicModule, ScriptDeclaresSymbolsAsTvmDoes) {
  const std::string text = R"(
@ir_module
class Module:
    @T.prim_func
    def mm(X: T.Buffer((n, d), "float32"), W: T.Buffer((d, m), "float32"), Y: T.Buffer((n, m), "float32")):
        n = T.int64()
        for i, j, k in T.grid(n, m, d):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = 0
                Y[vi, vj] += X[vi, vk] * W[vk, vj]

    @R.function
    def main(x: R.Tensor(("n", "d"), "float32"), w: R.Tensor(("d", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv0 = R.call_tir(mm, (x, w), R.Tensor((n, m), dtype="float32"))
            lv1: R.Tensor(("n * m // 1",), "float32") = R.flatten(lv0)
            gv0: R.Tensor((n * m,), "float32") = R.exp(lv1)
            R.output(gv0)
        return gv0
)";
  const SymbolicModule module = read(text);
  EXPECT_EQ(module.signature(),
            "fn (%x: Tensor[(n, d), float32], %w: Tensor[(d, m), float32]) -> Tensor[(n * m), "
            "float32]");
  const std::string made = instance(module, {{"n", 2}, {"d", 3}, {"m", 4}});
  EXPECT_THAT(made, HasSubstr("result Y[i:2, j:4] = sum(k:3) X[i, k] * W[k, j];"));
  EXPECT_THAT(made, HasSubstr("newshape=[8]"));
  EXPECT_THAT(parse_module_text(text).status().to_string(), HasSubstr("n is a symbol"));
}

TEST(SymbolicModule, NumbersAboveAScriptAreNoSymbols) {
  const SymbolicModule module = read(R"(
d = 3

@ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", d + 1), "float32")):
        return R.exp(x)
)");
  EXPECT_EQ(module.symbols(), std::vector<std::string>{"n"});
  EXPECT_EQ(module.signature(), "fn (%x: Tensor[(n, 4), float32]) -> Tensor[(n, 4), float32]");
}

TEST(SymbolicModule, RandomInstancesAreTheModulesOfNumbers) {
  register_all_ops();
  size_t with_terms = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const std::string family = collage::testing::RandomModule(seed).text();
    const SymbolicModule module = read(family);
    ASSERT_FALSE(module.symbols().empty()) << family;
    for (const Symbols& values :
         {Symbols{{"n", 1}, {"m", 1}}, Symbols{{"n", 5}, {"m", 2}}, Symbols{{"n", 4}, {"m", 9}}}) {
      collage::testing::RandomModuleOptions options;
      options.values = {values.at("n"), values.at("m")};
      const std::string numbers = collage::testing::RandomModule(seed, options).text();
      const Result<Module> expected = parse_module_text(numbers);
      ASSERT_TRUE(expected.ok()) << expected.status().to_string() << "\n" << numbers;
      const Result<Module> made = module.instantiate(values);
      ASSERT_TRUE(made.ok()) << made.status().to_string() << "\n" << family;
      EXPECT_TRUE(structural_equal(*made, *expected)) << to_text(*made) << to_text(*expected);
      std::vector<Shape> shapes;
      for (const Expr& param : made->main()->params) shapes.push_back(param->tensor_type().shape);
      EXPECT_EQ(module.bind(shapes).value(), values);
      const std::vector<TensorType> types = made->main()->body->type().leaves();
      ASSERT_EQ(types.size(), module.results().size());
      for (size_t i = 0; i < types.size(); ++i)
        for (size_t d = 0; d < types[i].shape.size(); ++d) {
          const Term& term = module.results()[i].shape[d];
          if (!term.defined()) continue;
          ++with_terms;
          EXPECT_EQ(value_of(term, values), types[i].shape[d]) << term_to_string(term) << "\n"
                                                               << family;
        }
    }
  }
  EXPECT_GT(with_terms, 500U);
}

}  // namespace
}  // namespace collage::tensor_program
