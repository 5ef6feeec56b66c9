#include "tensor_program/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ops/interpreter.h"
#include "tensor_program/external.h"
#include "tensor_program/module_programs.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Call : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (find_op(kCallOp) == nullptr) register_call_ops();
    register_external(
        "test.twice",
        [](std::span<const TensorType> types) -> Result<TensorType> {
          if (types.size() != 1) return bad_model("test.twice: one tensor");
          return types[0];
        },
        [](std::span<const DLTensor> inputs, const DLTensor& destination) -> Status {
          for (int64_t i = 0; i < destination.shape[0]; ++i)
            static_cast<float*>(destination.data)[i] =
                2 * static_cast<const float*>(inputs[0].data)[i];
          return {};
        });
  }
};

ParseOptions options() {
  ParseOptions options;
  options.abstract_function = abstract_function;
  return options;
}

/// What the module says, or what is wrong with it.
std::string printed(const std::string& text) {
  const Result<Module> module = parse_module("#[version = \"0.0.5\"]\n" + text, options());
  return module ? to_text(*module) : module.status().to_string();
}

constexpr const char* kModule = R"(#[version = "0.0.5"]
program @scaled {
  param A: float32[3];
  param B: float32[3];
  const f: float32[1] = {10.0f};
  result C[i:3] = A[i] * f[0] + B[i];
}
extern @twice(Tensor[(3), float32]) = "test.twice";
def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) -> Tensor[(3), float32] {
  %0 = @scaled(%x, %y);
  @twice(%0)
}
)";

TEST_F(Call, ModulesOfGraphsProgramsAndExternalFunctionsPrintAndParse) {
  Result<Module> module = parse_module(kModule, options());
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  EXPECT_EQ(module->abstract_functions.size(), 2U);
  EXPECT_EQ(module->abstract_functions.at("scaled")->type().to_string(),
            "fn (Tensor[(3), float32], Tensor[(3), float32]) -> Tensor[(3), float32]");
  EXPECT_EQ(to_text(*module), kModule);
  Result<Module> again = parse_module(to_text(*module), options());
  ASSERT_TRUE(again.ok()) << again.status().to_string() << to_text(*module);
  EXPECT_TRUE(structural_equal(*module, *again));
}

TEST_F(Call, LinkedModulesCompute) {
  Module module = parse_module(kModule, options()).value();
  ASSERT_TRUE(link_programs(module).value());
  EXPECT_FALSE(link_programs(module).value());
  EXPECT_TRUE(module.abstract_functions.empty());
  EXPECT_THAT(to_text(module), HasSubstr("extern \\\"test.twice\\\""));
  const std::vector<Tensor> inputs{Tensor::from<float>({3}, {1, 2, 3}),
                                   Tensor::from<float>({3}, {4, 5, 6})};
  const Result<std::vector<Tensor>> results = interpret(module.main(), inputs);
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_THAT(std::vector<float>((*results)[0].data<float>(), (*results)[0].data<float>() + 3),
              ::testing::ElementsAre(28, 50, 72));
  // What was linked is text of its own.
  Result<Module> again = parse_module(to_text(module), options());
  ASSERT_TRUE(again.ok()) << again.status().to_string() << to_text(module);
  EXPECT_TRUE(structural_equal(module, *again));
}

TEST_F(Call, LinkedProgramsAreNamedAgain) {
  Module module = parse_module(kModule, options()).value();
  ASSERT_TRUE(link_programs(module).value());
  const Result<Module> named = named_programs(module);
  ASSERT_TRUE(named.ok()) << named.status().to_string();
  EXPECT_EQ(to_text(*named), kModule);
  Module again = *named;
  ASSERT_TRUE(link_programs(again).value());
  EXPECT_TRUE(structural_equal(module, again));
  EXPECT_EQ(to_text(module), to_text(again));
}

constexpr const char* kSeveral = R"(#[version = "0.0.5"]
extern @halves(Tensor[(4), float32]) = "test.halves";
def @main(%x: Tensor[(4), float32]) -> (Tensor[(2), float32], Tensor[(2), int64]) {
  %0 = @halves(%x);
  %1 = @halves(%x);
  (%0.0, %1.1)
}
)";

// The first half, and the second half as integers.
void register_halves() {
  ExternalFunction function;
  function.label = "test.halves";
  function.types = [](std::span<const TensorType> types,
                      const Attrs&) -> Result<std::vector<TensorType>> {
    if (types.size() != 1 || types[0].shape != Shape{4}) return bad_model("four elements");
    return std::vector<TensorType>{{{2}, DType::kFloat32}, {{2}, DType::kInt64}};
  };
  function.call = [](std::span<const DLTensor> inputs, std::span<const DLTensor> results,
                     const Attrs&) -> Status {
    const auto* x = static_cast<const float*>(inputs[0].data);
    for (int i = 0; i < 2; ++i) {
      static_cast<float*>(results[0].data)[i] = x[i];
      static_cast<int64_t*>(results[1].data)[i] = static_cast<int64_t>(x[i + 2]);
    }
    return {};
  };
  register_external(std::move(function));
}

TEST_F(Call, FunctionsOfSeveralResultsGiveTuples) {
  register_halves();
  Module module = parse_module(kSeveral, options()).value();
  EXPECT_EQ(module.abstract_functions.at("halves")->type().to_string(),
            "fn (Tensor[(4), float32]) -> (Tensor[(2), float32], Tensor[(2), int64])");
  EXPECT_EQ(to_text(module), kSeveral);
  ASSERT_TRUE(link_programs(module).value());
  EXPECT_THAT(to_text(module), HasSubstr("external_function(%x, label=\"test.halves\""));
  EXPECT_EQ(to_text(named_programs(module).value()), kSeveral);
  const std::vector<Tensor> inputs{Tensor::from<float>({4}, {1, 2, 3, 4})};
  const Result<std::vector<Tensor>> results = interpret(module.main(), inputs);
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_THAT((*results)[0].values<float>(), ::testing::ElementsAre(1, 2));
  EXPECT_THAT((*results)[1].values<int64_t>(), ::testing::ElementsAre(3, 4));
  // What was linked is text of its own.
  Result<Module> again = parse_module(to_text(module), options());
  ASSERT_TRUE(again.ok()) << again.status().to_string() << to_text(module);
  EXPECT_TRUE(structural_equal(module, *again));
}

TEST_F(Call, StagesCallFunctionsOfOneResult) {
  register_halves();
  EXPECT_THAT(printed("program @p {\n  param A: float32[4];\n"
                      "  result C[i:2] = extern \"test.halves\"(A): float32;\n}\n"),
              HasSubstr("test.halves gives 2 arrays, a stage is one"));
  EXPECT_THAT(printed("extern @f(Tensor[(5), float32]) = \"test.halves\";\n"),
              HasSubstr("four elements"));
}

TEST_F(Call, ResultsOfExternalFunctionsCanBeDeclared) {
  const auto text = [](const char* result, const char* label) {
    return fmt::format(R"(#[version = "0.0.5"]
extern @f(Tensor[(3), float32]) -> {} = "{}";
def @main(%x: Tensor[(3), float32]) -> {} {{
  @f(%x)
}}
)",
                       result, label, result);
  };
  const auto linked = [&](const std::string& from) {
    Module module = parse_module(from, options()).value();
    EXPECT_EQ(to_text(module), from);
    return link_programs(module);
  };
  EXPECT_TRUE(linked(text("Tensor[(3), float32]", "test.twice")).ok());
  EXPECT_THAT(linked(text("Tensor[(2), int64]", "test.twice")).status().message(),
              HasSubstr("@f is declared to give Tensor[(2), int64], test.twice gives Tensor[(3)"));
  // A label may be registered after the text was read.
  EXPECT_THAT(linked(text("(Tensor[(2), int64], float32)", "test.later")).status().message(),
              HasSubstr("test.later"));
}

TEST_F(Call, ProgramsWithoutNamesGetSome) {
  const std::string call =
      "tensor_program(%x, program=\"program { param A: float32[2]; result C[i:2] = A[i] ";
  const Module module = parse_module(
                            "def @program0(%x: float32) -> float32 { %x }\n"
                            "def @main(%x: Tensor[(2), float32]) {\n  (" +
                                call + "+ 1.0f; }\"), " + call + "* 2.0f; }\", name=\"a b\"), " +
                                call + "+ 1.0f; }\"), " + call + "- 1.0f; }\"))\n}\n",
                            options())
                            .value();
  EXPECT_EQ(to_text(named_programs(module).value()), R"(#[version = "0.0.5"]
program @a_b {
  param A: float32[2];
  result C[i:2] = A[i] * 2.0f;
}
program @program0_1 {
  param A: float32[2];
  result C[i:2] = A[i] + 1.0f;
}
program @program1 {
  param A: float32[2];
  result C[i:2] = A[i] - 1.0f;
}
def @main(%x: Tensor[(2), float32]) -> (Tensor[(2), float32], Tensor[(2), float32], Tensor[(2), float32], Tensor[(2), float32]) {
  %0 = @program0_1(%x);
  %1 = @a_b(%x);
  %2 = @program0_1(%x);
  %3 = @program1(%x);
  (%0, %1, %2, %3)
}
def @program0(%x: float32) -> float32 {
  %x
}
)");
}

TEST_F(Call, NamesAreForPeople) {
  const auto call = [](const std::string& name) {
    return parse_function(
               "fn (%x: Tensor[(2), float32]) {\n  tensor_program(%x, program=\"program "
               "{ param A: float32[2]; result C[i:2] = A[i]; }\", name=\"" +
                   name + "\")\n}\n",
               options())
        .value();
  };
  EXPECT_EQ(canonical_text(call("one")), canonical_text(call("other")));
  EXPECT_TRUE(structural_equal(Expr(call("one")), Expr(call("other"))));
  EXPECT_THAT(to_text(call("one")), HasSubstr("name=\"one\""));
  EXPECT_EQ(name_of_call(*as<CallNode>(call("one")->body)), "one");
  EXPECT_EQ(name_of_call(*as<CallNode>(call("")->body)), "tensor_program");
}

TEST_F(Call, FunctionLiteralsAreLinkedToo) {
  Module module = parse_module(R"(#[version = "0.0.5"]
program @twice { param A: float32[3]; result C[i:3] = A[i] + A[i]; }
def @main(%x: Tensor[(3), float32]) {
  %0 = fn (%p: Tensor[(3), float32], Primitive=1) {
    %1 = fn (%q: Tensor[(3), float32]) {
      @twice(%q)
    };
    %1(%p)
  };
  %0(%x)
}
)",
                               options())
                      .value();
  ASSERT_TRUE(link_programs(module).value());
  EXPECT_TRUE(module.abstract_functions.empty());
  EXPECT_THAT(to_text(module), Not(HasSubstr("@twice")));
  const std::vector<Tensor> inputs{Tensor::from<float>({3}, {1, 2, 3})};
  const Result<std::vector<Tensor>> results = interpret(module.main(), inputs);
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_EQ((*results)[0].data<float>()[2], 6);
}

TEST_F(Call, SeveralResultsAreATuple) {
  const Module module = parse_module(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  %0 = tensor_program(%x, program="program { param A: float32[2]; result C[i:2] = A[i] + 1.0f; result D[i:2] = C[i] * C[i]; }");
  %1 = %0.1;
  %1
}
)",
                                     options())
                            .value();
  const std::vector<Tensor> inputs{Tensor::from<float>({2}, {1, 2})};
  const std::vector<Tensor> results = interpret(module.main(), inputs).value();
  EXPECT_EQ(results[0].data<float>()[1], 9);
}

TEST_F(Call, DefinitionsMayStandInAnyOrderAndOverAnyLines) {
  const std::string text = printed(R"(
def @main(%x: Tensor[(2, 2), float32]) -> Tensor[(2), float32] { @sums(@twice(%x)) }
extern
  @twice(
    Tensor[(2, 2), float32],  // what it takes
  )
  = "test.twice"
  ;
program @sums { param A: float32[2, 2];
  // a comment with { and "
  stage S[i:2] = sum(k:2)
    A[i,
      k];
  result C[i:2] in "global" = S[i]; schedule { S.compute_root(); C
    .unroll(i); }
}
)");
  EXPECT_EQ(text, R"(#[version = "0.0.5"]
program @sums {
  param A: float32[2, 2];
  stage S[i:2] = sum(k:2) A[i, k];
  result C[i:2] in "global" = S[i];
  schedule {
    S.compute_root();
    C.unroll(i);
  }
}
extern @twice(Tensor[(2, 2), float32]) = "test.twice";
def @main(%x: Tensor[(2, 2), float32]) -> Tensor[(2), float32] {
  %0 = @twice(%x);
  @sums(%0)
}
)");
}

TEST_F(Call, ConstantsKeepAllTheirValues) {
  std::string values = "1.5f";
  for (int i = 1; i < 100; ++i) values += ", " + std::to_string(i) + ".0f";
  const std::string text = "#[version = \"0.0.5\"]\nprogram @p {\n  param A: float32[100];\n" +
                           ("  const f: float32[100] = {" + values) +
                           "};\n  result C[i:100] = A[i] * f[i];\n}\n"
                           "def @main(%x: Tensor[(100), float32]) -> Tensor[(100), float32] {\n"
                           "  @p(%x)\n}\n";
  Module module = parse_module(text, options()).value();
  EXPECT_EQ(to_text(module), text);
  const Result<bool> linked = link_programs(module);
  ASSERT_TRUE(linked.ok()) << linked.status().to_string();
}

TEST_F(Call, ErrorsSayWhatIsWrongAndWhere) {
  const auto wrong = [](const std::string& declarations) {
    return printed("program @p {\n  param A: float32[3];\n" + declarations + "\n}\n");
  };
  EXPECT_EQ(wrong("  result C[i:3] = B[i];"), "line 4, column 19: there is no B above");
  EXPECT_EQ(wrong("  result C[i:3] = 2.0f *;"), "line 4, column 25: ';' where a name should stand");
  EXPECT_EQ(wrong("  result C[i:3] = A[i, 0];"),
            "line 4, column 10: stage C: tensor program: 2 indices for A");
  EXPECT_EQ(
      wrong("  stage S[i:3] = A[i];\n  result C[i:4] = A[i];"),
      "line 5, column 10: stage C: dimension 0 of A is read: the index i runs from 0 to 3 and "
      "has to stay from 0 to 2");
  EXPECT_EQ(wrong("  result C[i:3] = A[i];\n  schedule { D.parallel(i); }"),
            "line 5, column 3: tensor program: the schedule names D, which is no stage");
  EXPECT_EQ(wrong("  const B: float32[3];\n  result C[i:3] = B[i] + A[i];"),
            "line 4, column 9: the program's constant B has no values");
  EXPECT_EQ(wrong("  result C[i:3] = A[i]"), "line 5, column 1: 'the end' where ';' should stand");
  EXPECT_EQ(wrong("  param B: float32[3];"),
            "line 3, column 3: tensor program: a program without "
            "a result");
  EXPECT_EQ(printed("program @p {\n  param A: float32[3];\n"),
            "line 2, column 13: this '{' is not closed");
  EXPECT_EQ(printed("program @p fn"), "line 2, column 12: expected '{', found 'fn'");
  EXPECT_EQ(printed("program p {}"),
            "line 2, column 9: expected a global name such as @scale, found 'p'");
  EXPECT_EQ(printed("extern @p(Tensor[(3), float32]) =\n  \"no.such\";"),
            "line 3, column 3: there is no external function 'no.such'");
  EXPECT_EQ(printed("extern @p(Tensor[(3), float32], float32) = \"test.twice\";"),
            "line 2, column 44: test.twice: one tensor");
  EXPECT_EQ(printed("extern @p((float32,)) = \"test.twice\";"),
            "line 2, column 25: an external function takes tensors alone");
  EXPECT_EQ(printed("extern @p(float32) = \"test.twice\""),
            "line 2, column 34: expected ';', found the end of the text");
  const std::string twice = "extern @p(float32) = \"test.twice\";\n";
  EXPECT_EQ(printed(twice + twice), "line 3, column 1: @p is defined twice");
  EXPECT_THAT(
      printed("abstract \"tensor_program\" @p: fn () -> float32 = \"\";"),
      HasSubstr("expected 'def', 'fn', 'program', 'extern', 'external_mods' or '#[metadata]'"));
  const Result<Module> unknown = parse_module(twice);
  EXPECT_EQ(unknown.status().to_string(),
            "line 1, column 1: @p: extern functions cannot be read here");
  const std::string program =
      "program=\"program { param A: float32[3]; result C[i:3] = A[i]; }\")\n}\n";
  EXPECT_THAT(printed("def @main(%x: Tensor[(4), float32]) {\n  tensor_program(%x, " + program),
              HasSubstr("parameter 0 is Tensor[(3), float32], not Tensor[(4), float32]"));
  EXPECT_THAT(printed("def @main(%x: Tensor[(3), float32]) {\n  tensor_program(%x, %x, " + program),
              HasSubstr("the program takes 1 tensors, not 2"));
}

}  // namespace
}  // namespace collage::tensor_program
