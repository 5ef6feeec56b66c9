// Modules that count sizes: how they are cut, and what running the parts gives.
#include "frontend/script/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/interpreter.h"
#include "ops/registry.h"

namespace collage::tensor_program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

ModuleParts cut(const std::string& text) {
  register_all_ops();
  Result<SymbolicModule> module = SymbolicModule::parse(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  Result<ModuleParts> made = ModuleParts::of(*module);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return std::move(*made);
}

std::string text_of(const ModuleParts& parts) {
  std::string text;
  for (const ModulePart& part : parts.parts()) {
    text += "part";
    for (const std::string& input : part.inputs) text += " " + input;
    for (const auto& [symbol, count] : part.counts) text += fmt::format(" {} = {}", symbol, count);
    text += "\n" + part.body;
  }
  return text;
}

Result<std::vector<Tensor>> run(const ModuleParts& parts, std::map<std::string, Tensor> inputs) {
  return parts.run(std::move(inputs), [&](size_t number, const Symbols& values,
                                          const std::vector<Tensor>& tensors) {
    std::vector<TensorType> types;
    for (const Tensor& tensor : tensors) types.push_back({tensor.shape(), tensor.dtype()});
    Result<Module> module = parts.instantiate(parts.parts()[number], types, values);
    return module.ok() ? interpret(module->main(), tensors)
                       : Result<std::vector<Tensor>>(module.status());
  });
}

constexpr const char* kChosen =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(n, 2), float32], %w: Tensor[(n), int64]) {\n"
    "  %0 = nn.relu(%x);\n"
    "  %1 = nonzero(%w);\n"
    "  %2 = match_size(%1.0, %1.1, axis=1, size=k, symbol=\"k\");\n"
    "  %3 = reshape(%2, newshape=[k]);\n"
    "  %4 = take(%0, %3, axis=0);\n"
    "  %5 = full(2f, shape=[k, n]);\n"
    "  %6 = reshape(%4, newshape=[2 * k]);\n"
    "  %7 = topk(%6, k=k);\n"
    "  (%0, %7.0, %5)\n"
    "}\n";

TEST(Parts, BeginWhereASizeIsKnownAndWhereOrderJumps) {
  const ModuleParts parts = cut(kChosen);
  EXPECT_EQ(text_of(parts),
            "part w x\n"
            "  %0 = nn.relu(%\"x\");\n"
            "  %1 = nonzero(%\"w\");\n"
            "  (%0, %1.0, %1.1)\n"
            "part %0 %1.0 k = %1.1\n"
            "  %2 = match_size(%v1_0, {k}i64, axis=1, size=k, symbol=\"k\");\n"
            "  %3 = reshape(%2, newshape=[k]);\n"
            "  %4 = take(%v0, %3, axis=0);\n"
            "  %5 = full(2f, shape=[k, n]);\n"
            "  %6 = reshape(%4, newshape=[2 * k]);\n"
            "  (%5, %6)\n"
            "part %6 k = %1.1\n"
            "  %7 = topk(%v6, k=k);\n"
            "  %7.0\n");
  EXPECT_THAT(parts.results(), ElementsAre("%0", "%7.0", "%5"));
}

TEST(Parts, RunForAnyCount) {
  const ModuleParts parts = cut(kChosen);
  const Tensor x = Tensor::from<float>({3, 2}, {1, -2, 3, 4, -5, 6});
  for (const std::vector<int64_t>& chosen : {std::vector<int64_t>{}, {0}, {2}, {0, 1}, {0, 1, 2}}) {
    std::vector<int64_t> weights(3);
    std::vector<float> wanted;
    for (const int64_t row : chosen) {
      weights[static_cast<size_t>(row)] = 7;
      for (int64_t i = 0; i < 2; ++i)
        wanted.push_back(std::max(0.0f, x.data<float>()[2 * row + i]));
    }
    std::sort(wanted.rbegin(), wanted.rend());
    wanted.resize(chosen.size());
    const auto results = run(parts, {{"x", x}, {"w", Tensor::from<int64_t>({3}, weights)}});
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    const Tensor& best = (*results)[1];
    EXPECT_EQ(std::vector<float>(best.data<float>(), best.data<float>() + best.size()), wanted);
    EXPECT_EQ((*results)[2].shape(), (Shape{static_cast<int64_t>(chosen.size()), 3}));
  }
}

TEST(Parts, OfNestedTextAreThoseOfItsCalls) {
  const ModuleParts parts =
      cut("def @main(%x: Tensor[(n), int64]) {\n"
          "  let %found = nonzero(%x);\n"
          "  add(match_size(%found.0, %found.1, axis=1, size=k, symbol=\"k\"), full(1i64, "
          "shape=[1, k]))\n"
          "}\n");
  EXPECT_EQ(parts.parts().size(), 2);
  const auto results = run(parts, {{"x", Tensor::from<int64_t>({4}, {0, 5, 0, 6})}});
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_EQ((*results)[0].shape(), (Shape{1, 2}));
  EXPECT_EQ((*results)[0].data<int64_t>()[1], 4);
}

TEST(Parts, AnInstanceOfTheModuleHoldsForItsCountAlone) {
  const ModuleParts parts = cut(kChosen);
  const Result<Module> module = parts.module().instantiate({{"n", 3}, {"k", 2}});
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  const Tensor x = Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto two = interpret(module->main(), {{x, Tensor::from<int64_t>({3}, {0, 1, 1})}});
  EXPECT_TRUE(two.ok()) << two.status().to_string();
  const auto one = interpret(module->main(), {{x, Tensor::from<int64_t>({3}, {0, 1, 0})}});
  EXPECT_THAT(one.status().to_string(), HasSubstr("k is 1 in this run, not 2"));
}

TEST(Parts, WhatIsNotCutIsRefused) {
  register_all_ops();
  const auto refusal = [](const std::string& text) {
    const Result<SymbolicModule> module = SymbolicModule::parse(text);
    return module.ok() ? ModuleParts::of(*module).status().to_string()
                       : module.status().to_string();
  };
  const std::string count = "  %1 = nonzero(%x);\n";
  EXPECT_THAT(
      refusal("def @twice(%a: Tensor[(4), int64]) { add(%a, %a) }\n"
              "def @main(%x: Tensor[(4), int64]) {\n" +
              count + "  @twice(match_size(%1.0, %1.1, axis=1, size=k, symbol=\"k\"))\n}\n"),
      HasSubstr("k"));
}

}  // namespace
}  // namespace collage::tensor_program
