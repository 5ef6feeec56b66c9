#include "tensor_program/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ops/interpreter.h"
#include "tensor_program/external.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Call : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (find_op(kCallOp) == nullptr) register_call_op();
    register_external({"test.twice",
                       [](std::span<const TensorType> types) -> Result<TensorType> {
                         if (types.size() != 1) return bad_model("test.twice: one tensor");
                         return types[0];
                       },
                       [](std::span<const DLTensor> inputs, const DLTensor& destination) -> Status {
                         for (int64_t i = 0; i < destination.shape[0]; ++i)
                           static_cast<float*>(destination.data)[i] =
                               2 * static_cast<const float*>(inputs[0].data)[i];
                         return {};
                       }});
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

constexpr const char* kModule = R"(
abstract "tensor_program" @scaled: fn (Tensor[(3), float32], Tensor[(3), float32]) -> Tensor[(3), float32] = "program { param A: float32[3]; param B: float32[3]; const f: float32[1] = {10}; result C[i:3] = A[i] * f[0] + B[i]; }";
abstract "external" @twice: fn (Tensor[(3), float32]) -> Tensor[(3), float32] = "test.twice";
def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) -> Tensor[(3), float32] {
  %0 = @scaled(%x, %y);
  @twice(%0)
}
)";

TEST_F(Call, ModulesOfGraphsProgramsAndExternalFunctionsPrintAndParse) {
  Result<Module> module = parse_module(std::string("#[version = \"0.0.5\"]") + kModule, options());
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  EXPECT_EQ(module->abstract_functions.size(), 2U);
  Result<Module> again = parse_module(to_text(*module), options());
  ASSERT_TRUE(again.ok()) << again.status().to_string() << to_text(*module);
  EXPECT_TRUE(structural_equal(*module, *again));
}

TEST_F(Call, LinkedModulesCompute) {
  Module module = parse_module(std::string("#[version = \"0.0.5\"]") + kModule, options()).value();
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

TEST_F(Call, FunctionLiteralsAreLinkedToo) {
  Module module = parse_module(R"(#[version = "0.0.5"]
abstract "tensor_program" @twice: fn (Tensor[(3), float32]) -> Tensor[(3), float32] = "program { param A: float32[3]; result C[i:3] = A[i] + A[i]; }";
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

TEST_F(Call, ErrorsSayWhatIsWrong) {
  const std::string one =
      "abstract \"tensor_program\" @p: fn (Tensor[(3), float32]) -> Tensor[(3), float32] = ";
  EXPECT_THAT(printed(one + "\"program { param A: float32[3]; result C[i:2] = A[i]; }\";\n"),
              HasSubstr("the function has type fn (Tensor[(3), float32]) -> Tensor[(2), float32], "
                        "not fn (Tensor[(3), float32]) -> Tensor[(3), float32]"));
  EXPECT_THAT(printed(one + "\"program { param A: float32[3]; result C[i:3] = B[i]; }\";\n"),
              HasSubstr("B"));
  EXPECT_THAT(printed(one + "\"program { param A: float32[3]; const B: float32[3]; result C[i:3] = "
                            "B[i] + A[i]; }\";\n"),
              HasSubstr("the program's constant B has no values"));
  EXPECT_THAT(printed("abstract \"external\" @p: fn (Tensor[(3), float32]) -> Tensor[(3), "
                      "float32] = \"no.such\";\n"),
              HasSubstr("there is no external function 'no.such'"));
  EXPECT_THAT(printed("abstract \"other\" @p: fn (Tensor[(3), float32]) -> Tensor[(3), float32] = "
                      "\"x\";\n"),
              HasSubstr("no kind of function 'other': expected tensor_program or external"));
  const std::string program =
      "program=\"program { param A: float32[3]; result C[i:3] = A[i]; }\")\n}\n";
  EXPECT_THAT(printed("def @main(%x: Tensor[(4), float32]) {\n  tensor_program(%x, " + program),
              HasSubstr("parameter 0 is Tensor[(3), float32], not Tensor[(4), float32]"));
  EXPECT_THAT(printed("def @main(%x: Tensor[(3), float32]) {\n  tensor_program(%x, %x, " + program),
              HasSubstr("the program takes 1 tensors, not 2"));
}

}  // namespace
}  // namespace collage::tensor_program
