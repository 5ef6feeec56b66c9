// Tensor programs as text: what is printed parses to an equal program; what is wrong is refused
// with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor_program/evaluate.h"
#include "tensor_program/in_place.h"
#include "tensor_program/parsing.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;

TEST(ProgramText, AScheduledProductOverAPackedMatrix) {
  expect_round_trip(R"(program {
  param A: float32[128, 128];
  const B: float32[128, 128];
  stage P[j1:8, k:128, j0:16] = B[k, j1 * 16 + j0];
  result C[i:128, j:128] = sum(k:128) A[i, k] * P[j / 16, k, j % 16];
  schedule {
    P.compute_root();
    C.split(i, task, row, 8, guarded);
    C.parallel(task);
    C.vectorise(j, 16);
    C.update(0).reorder(j, k, row, task);
    C.update(0).unroll(k);
  }
}
)");
}

TEST(ProgramText, UpdatesSeveralResultsAndExternalStages) {
  expect_round_trip(R"(program {
  param x: float32[4, 10];
  param w: float32[10, 3];
  const t: int32[3] = {2, -1, 0};
  stage part[i:4, u:4] = sum(r:2) x[i, r * 4 + u];
  update part[i, r] = sum(r:2) x[i, 8 + r];
  stage C[i:4, j:3] = extern "cblas_sgemm"(x, w): float32;
  result joined[i:4, j:13]: float32;
  update joined[i, r] = set(r:10) x[i, r];
  update joined[i, r + 10] = set(r:3) C[i, r];
  result largest[i:4] = max(r:4) part[i, r];
  result picked[j:3] = select(t[j] < 0, 0.0f, largest[max(t[j], 0)]);
}
)");
}

TEST(ProgramText, Terms) {
  const std::string head =
      "program {\n  param x: float32[];\n  param n: int64[];\n  result y[i:9] = ";
  for (const char* term :
       {"1.0f / (1.0f + exp(-x[]))", "(x[] + 2.0f) * x[] - x[] / 3.0f", "x[] - (x[] - 1.5f)",
        "-(2.0f)", "-2.0f", "-(-x[])", "inff", "-inff", "nanf", "1e-05f", "float32(i * 2 - 1)",
        "select(i % 2 == 0 && !(x[] > 0.25f) || i >= 7, x[], power(x[], 3.0f))",
        "float32(n[] + 5i64)", "min(max(x[], 0.0f), 6.0f)", "float64(x[]) * 0.1d", "likely(x[])",
        "tanh(sqrt(abs(floor(ceil(round(trunc(sin(cos(log(erf(x[])))))))))))"})
    expect_round_trip(head + term + ";\n}\n");
}

TEST(ProgramText, MemoryScopes) {
  expect_round_trip(
      "program {\n  param x: float32[4] in \"texture\";\n  param y: float32[4];\n"
      "  result z[i:4] in \"global\" = x[i] + y[i];\n}\n");
  EXPECT_THAT(refusal("program {\n  param x: float32[4] in \"a/b\";\n}"),
              HasSubstr("'a/b' is no memory scope"));
  EXPECT_THAT(refusal("program {\n  const c: float32[4] in \"texture\";\n}"), HasSubstr("'in'"));
}

TEST(ProgramText, ParametersThatAreResults) {
  expect_round_trip(
      "program {\n  param n: int32[2];\n  inout X[i:4, j:8] in \"texture\": float32;\n"
      "  param U: float32[2, 8];\n  stage S[i:2, j:8] = U[i, j] * 2.0f;\n"
      "  update X[min(max(n[r], 0), 3), j] = sum(r:2) S[r, j];\n"
      "  update X[i, j] = set() tanh(X[i, j]);\n  schedule {\n    X.parallel(i);\n  }\n}\n");
  auto program = parse_program(
      "program { inout X[i:4]: float32; param B: float32[4]; update X[i] = product() B[i]; }");
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_EQ(program->buffers[0].name, "X_in");
  ASSERT_EQ(in_place_results(*program).size(), 1U);
  EXPECT_EQ(in_place_results(*program)[0].param, &program->buffers[0]);
  EXPECT_EQ(in_place_results(*program)[0].result, 0U);
  const Tensor x = Tensor::from<float>({4}, {1, 2, 3, 4}),
               b = Tensor::from<float>({4}, {2, 3, 4, 5});
  const std::vector<Tensor> results = evaluate(*program, std::vector<Tensor>{x, b}).value();
  EXPECT_EQ(results[0].data<float>()[3], 20);
  EXPECT_EQ(x.data<float>()[3], 4) << "the argument is somebody else's";
  // What something else reads is no in-place result.
  for (const char* text :
       {"program { param A: float32[4]; result C[i:4] = A[i]; update C[i] = sum() A[3 - i]; }",
        "program { param A: float32[4]; result C[i:4] = A[3 - i]; update C[i] = sum() 1.0f; }",
        "program { param A: float32[4]; result C[i:4] = A[i]; }",
        "program { const A: float32[1] = {1.0f}; result C[i:1] = A[i]; update C[i] = sum() 1.0f; "
        "}"})
    EXPECT_TRUE(in_place_results(parse_program(text).value()).empty()) << text;
  const auto refused = [](const std::string& text) {
    return refusal("program { inout X[i:4]: float32; " + text + " }");
  };
  EXPECT_THAT(refused("result Y[i:4] = 1.0f;"), HasSubstr("nothing updates X"));
  EXPECT_THAT(refused("result Y[i:4] = X[i]; update X[i] = sum() Y[i];"),
              HasSubstr("there is no X above"));
  EXPECT_THAT(refused("update X[i] = sum() X[3 - i];"),
              HasSubstr("an update reads X elsewhere than where it writes"));
  EXPECT_THAT(refused("param X_in: float32[4]; update X[i] = sum() 1.0f;"),
              HasSubstr("X_in stands twice"));
}

TEST(ProgramText, ConstantsAreFoldedAndCommentsLeftOut) {
  auto program = parse_program(R"(
    program {  // a comment
      param x: float32[8];
      result y[i:8] = x[i * 1 + (9 - 3 * 3)] * 2.0f;  // another
    })");
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_THAT(program->to_string(), HasSubstr("y[i:8] = x[i] * 2.0f;"));
}

TEST(ProgramText, MistakesAreNamed) {
  const auto body = [](const std::string& text) {
    return "program {\n  param x: float32[4];\n" + text + "\n}\n";
  };
  EXPECT_THAT(refusal("programme"), HasSubstr("'programme' where 'program' should stand"));
  EXPECT_THAT(refusal(body("")), HasSubstr("without a result"));
  EXPECT_THAT(refusal(body("result y[i:4] = z[i];")),
              HasSubstr("line 3, column 17: there is no z above"));
  EXPECT_THAT(refusal(body("result y[i:4] = x[i, i];")), HasSubstr("2 indices for x"));
  EXPECT_THAT(refusal(body("result y[i:4] = x[j];")), HasSubstr("nothing binds j"));
  EXPECT_THAT(refusal(body("result y[i:4, i:4] = x[i];")), HasSubstr("axis i stands twice"));
  EXPECT_THAT(refusal(body("result x[i:4] = 1.0f;")), HasSubstr("x stands twice"));
  EXPECT_THAT(refusal(body("result y[i:4] = x[i] + i;")), HasSubstr("+ of float32 and int32"));
  EXPECT_THAT(refusal(body("result y[i:4] = exp(x[i], x[i]);")), HasSubstr("exp of 2 arguments"));
  EXPECT_THAT(refusal(body("result y[i:4] = x[i];\n update z[i] = set() x[i];")),
              HasSubstr("line 4, column 10: an update of z"));
  EXPECT_THAT(refusal(body("result y[i:4] = x[i];\n schedule { z.parallel(i); }")),
              HasSubstr("names z, which is no stage"));
  EXPECT_THAT(refusal(body("result y[i:4] = x[i];\n schedule { y.hurry(i); }")),
              HasSubstr("no schedule primitive hurry"));
  EXPECT_THAT(refusal(body("const c: float32[2] = {1.0f};\n result y[i:4] = x[i];")),
              HasSubstr("1 values for c"));
}

TEST(ProgramText, NestingAndSizesHaveLimits) {
  const auto value = [](const std::string& term) {
    return "program {\n  param x: float32[4];\n  result y[i:4] = " + term + ";\n}\n";
  };
  const auto repeated = [](const std::string& text, int times) {
    std::string made;
    for (int i = 0; i < times; ++i) made += text;
    return made;
  };
  const char* deep = "terms nested more than 256 levels deep";
  for (const int times : {300, 200'000}) {
    EXPECT_THAT(refusal(value(repeated("(", times))), HasSubstr(deep));
    EXPECT_THAT(refusal(value(repeated("(", times) + "1.0f" + repeated(")", times))),
                HasSubstr(deep));
    EXPECT_THAT(refusal(value(repeated("-", times) + "x[i]")), HasSubstr(deep));
    EXPECT_THAT(refusal(value(repeated("!", times) + "x[i]")), HasSubstr(deep));
    EXPECT_THAT(refusal(value(repeated("exp(", times) + "x[i]" + repeated(")", times))),
                HasSubstr(deep));
    EXPECT_THAT(refusal(value("x[i]" + repeated(" + x[i]", times))), HasSubstr(deep));
    EXPECT_THAT(refusal(value(repeated("x[", times) + "i" + repeated("]", times))),
                HasSubstr(deep));
  }
  expect_round_trip("program {\n  param x: float32[4];\n  result y[i:4] = x[i]" +
                    repeated(" + x[i]", 200) + ";\n}\n");
  EXPECT_THAT(refusal("program {" + repeated("param x: float32[4];", 2000) + "}"),
              HasSubstr("more than 1000 declarations"));
  EXPECT_THAT(refusal("program { param x: float32[2147483647, 2147483647, 2147483647]; result "
                      "y[i:4] = 1.0f; }"),
              HasSubstr("too many elements"));
  EXPECT_THAT(refusal(value("1.0f;\n result z[i:2147483647, j:2147483647, k:2147483647] = 1.0f")),
              HasSubstr("too many elements"));
  EXPECT_THAT(refusal(value("sum(a:2147483647, b:2147483647, c:2147483647) 1.0f")),
              HasSubstr("too many elements"));
  EXPECT_THAT(refusal(value("sum(k:0) 1.0f")), HasSubstr("axis k of extent 0"));
  EXPECT_THAT(refusal("program { const c: float32[65536, 65536, 65536, 65536] = {1.0f}; result "
                      "y[i:4] = 1.0f; }"),
              HasSubstr("too many elements"));
}

TEST(ProgramText, NumbersFitTheirTypes) {
  const auto value = [](const std::string& term) {
    return "program {\n  param n: int64[4];\n  result y[i:4] = " + term + ";\n}\n";
  };
  EXPECT_THAT(refusal(value("2147483648")), HasSubstr("2147483648 is no int32"));
  EXPECT_THAT(refusal(value("-2147483649")), HasSubstr("-2147483649 is no int32"));
  EXPECT_THAT(refusal(value("9223372036854775808i64")), HasSubstr("is no int64"));
  EXPECT_THAT(refusal(value("99999999999999999999i64")), HasSubstr("no number"));
  EXPECT_THAT(refusal(value("256_uint8")), HasSubstr("256 is no uint8"));
  EXPECT_THAT(refusal(value("1e99f")), HasSubstr("no number"));
  // What would overflow is left to be computed.
  for (const char* term :
       {"2147483647 + 1", "-2147483648 - 1", "65536 * 65536", "-2147483648 / -1",
        "9223372036854775807i64 + 1i64", "-9223372036854775808i64 * -1i64", "-(-2147483648)"})
    expect_round_trip("program {\n  param n: int64[4];\n  result y[i:4] = " + std::string(term) +
                      ";\n}\n");
  const auto folded = parse_program(value("7 / 0 + 7 % 0 + -7 / 2 + -7 % 2 + 7 % -2"));
  ASSERT_TRUE(folded.ok()) << folded.status().to_string();
  EXPECT_THAT(folded->to_string(), HasSubstr("= -4;"));
}

TEST(ProgramText, OperationsAreOfTypesThatHaveThem) {
  const auto value = [](const std::string& term) {
    return "program {\n  param x: float32[4];\n  result y[i:4] = " + term + ";\n}\n";
  };
  EXPECT_THAT(refusal(value("exp(i)")), HasSubstr("exp of int32"));
  EXPECT_THAT(refusal(value("power(i, 2)")), HasSubstr("power of int32"));
  EXPECT_THAT(refusal(value("x[i] % 2.0f")), HasSubstr("% of float32"));
  EXPECT_THAT(refusal(value("i && i")), HasSubstr("&& of int32"));
  EXPECT_THAT(refusal(value("!x[i]")), HasSubstr("! of float32"));
  EXPECT_THAT(refusal(value("(i < 2) + (i < 3)")), HasSubstr("+ of bool"));
  EXPECT_THAT(refusal(value("select(i, 1.0f, 2.0f)")), HasSubstr("select by int32"));
}

TEST(ProgramText, SchedulesHaveTheArgumentsTheyNeed) {
  const auto scheduled = [](const std::string& step) {
    return "program {\n  param x: float32[4];\n  stage s[i:4] = sum(k:2) x[i];\n  result y[i:4] = "
           "s[i];\n  schedule { " +
           step + "; }\n}\n";
  };
  for (const char* step :
       {"y.split(i)", "y.split(i, a, b)", "y.split(i, a, b, 0)", "y.fuse(i)", "y.reorder()",
        "y.vectorise()", "y.vectorise(i, 100000)", "y.unroll()", "y.parallel(i, j)",
        "s.compute_at(y)", "s.compute_root(i)", "s.inline(2)", "s.update(0).compute_root()",
        "s.update(0).compute_at(y, i)", "s.update(1).unroll(k)", "s.update(2147483647).unroll(k)",
        "s.allow_races(i)"})
    EXPECT_THAT(refusal(scheduled(step)), HasSubstr("tensor program: ")) << step;
}

}  // namespace
}  // namespace collage::tensor_program
