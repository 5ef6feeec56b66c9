// Accesses of programs that come as text: proven to stay inside their arrays, or refused in a line
// that says which does not; and what is accepted computes without leaving them.
#include "tensor_program/accesses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor_program/evaluate.h"
#include "tensor_program/external.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;

/// A program of these declarations; n holds indices, x values.
std::string program_of(const std::string& declarations) {
  return "program {\n  param x: float32[8];\n  param n: int32[8];\n  param q: int64[8];\n" +
         declarations + "\n}\n";
}

/// Why it is refused; "proven" where it is not.
std::string verdict(const std::string& declarations) {
  const Result<Program> program = parse_program(program_of(declarations));
  if (!program.ok()) return "does not parse: " + program.status().to_string();
  const Status status = check_accesses(*program);
  return status.ok() ? "proven" : status.to_string();
}

TEST(Accesses, OfIndexArithmeticAreProven) {
  for (const char* declarations :
       {"result y[i:8] = x[i];",
        "result y[i:8] = x[7 - i];",
        "result y[i:4] = x[i * 2 + 1];",
        "result y[i:64] = x[i / 8] + x[i % 8];",
        "result y[i:16] = x[min(i, 7)];",
        "result y[i:16] = select(i < 8, x[min(i, 7)], 0.0f);",
        "result y[i:16] = x[max(i - 8, 0)];",
        "result y[i:8] = x[abs(i - 7)];",
        "result y[i:8] = x[select(i % 2 == 0, i / 2, 7)];",
        "result y[i:8] = x[int32(i < 4)] + x[-(-i)];",
        "result y[i:8, j:8] = x[i] * x[j / 4 * 4 + j % 4];",
        "result y[i:3] = sum(k:6) x[i + k];",
        "result y[i:5] = x[i % -4 + 3];",
        "result y[i:8] = x[i / 0] + x[i % 0];",
        "const t: int32[3] = {7, 0, 3};\n result y[i:3] = x[t[i]];",
        "const t: bool[2] = {1, 0};\n result y[i:2] = x[int32(t[i])];",
        "stage t[i:8] = i / 2 + 4;\n result y[i:8] = x[t[i]];",
        "result y[i:8] = x[min(max(n[i], 0), 7)];",
        "result y[i:8] = x[int32(min(max(q[i], 0i64), 7i64))] + x[min(max(int32(q[i]), 0), 7)];",
        "result y[i:8] = x[min(max(int32(x[i]), 0), 7)];",
        "result y[i:8] = x[n[i] % 8];",
        "result y[i:8]: float32;\n update y[i] = set() x[i];\n update y[r * 2] = sum(r:4) x[r];",
        "result y[i:4]: float32;\n update y[min(max(n[r], 0), 3)] = sum(r:8) x[r];"})
    EXPECT_EQ(verdict(declarations), "proven") << declarations;
}

TEST(Accesses, OutOfRangeAreRefused) {
  const struct {
    const char *declarations, *why;
  } cases[] = {
      {"result y[i:9] = x[i];",
       "stage y: dimension 0 of x is read: the index i runs from 0 to 8 and has to stay from 0 to "
       "7"},
      {"result y[i:8] = x[i - 1];", "from -1 to 6"},
      {"result y[i:5] = x[i * 2];", "from 0 to 8"},
      {"result y[i:8] = select(i < 8, x[i + 1], 0.0f);", "from 1 to 8"},
      {"result y[i:3] = sum(k:7) x[i + k];", "from 0 to 8"},
      {"result y[i:8] = exp(x[min(i, 8) + i]);", "from 0 to 14"},
      {"result y[i:8] = x[i % -4];", "from -3 to 0"},
      {"result y[i:9] = x[i / -1];", "from -8 to 0"},
      {"const t: int32[2] = {0, 8};\n result y[i:2] = x[t[i]];", "from 0 to 8"},
      {"const t: int32[2] = {-1, 7};\n result y[i:2] = x[t[i]];", "from -1 to 7"},
      {"param e: float32[0];\n result y[i:1] = e[i];", "from 0 to 0 and has to stay from 0 to -1"},
      // of what is read from arrays
      {"result y[i:8] = x[n[i]];", "from -2147483648 to 2147483647"},
      {"result y[i:8] = x[max(n[i], 0)];", "from 0 to 2147483647"},
      {"result y[i:8] = x[n[i + 1] % 8];", "dimension 0 of n is read: the index i + 1"},
      {"result y[i:8] = x[int32(x[i])];", "from -2147483648 to 2147483647"},
      {"stage t[i:8] = n[i];\n result y[i:8] = x[t[i]];", "from -2147483648"},
      {"stage t[i:8] = sum(k:8) i + k;\n result y[i:8] = x[t[i]];", "from -2147483648"},
      {"result y[i:8] = x[min(max(n[i], 0), 8)];", "from 0 to 8"},
      // where an operation on the way may overflow, nothing holds after it
      {"result y[i:8] = x[min(max(n[i] * 4, 0), 7)];", "n[i] * 4, 0), 7) may overflow"},
      {"result y[i:8] = x[min(max(n[i] + 1, 0), 7)];", "may overflow"},
      {"result y[i:8] = x[min(max(-n[i], 0), 7)];", "may overflow"},
      {"result y[i:8] = x[min(max(n[i] / -1, 0), 7)];", "may overflow"},
      {"result y[i:8] = x[i * 65536 * 65536 / 65536 / 65536];", "may overflow"},
      {"result y[i:8] = x[int32(int64(i) * 4611686018427387904i64 % 8i64)];", "may overflow"},
      {"stage t[i:8] = n[i] * n[i];\n result y[i:8] = x[max(min(t[i], 7), 0)];", "may overflow"},
      // of what is written
      {"result y[i:8]: float32;\n update y[i + 1] = set() x[i];",
       "dimension 0 is written: the index i + 1 runs from 1 to 8"},
      {"result y[i:8]: float32;\n update y[r] = sum(r:9) 1.0f;", "from 0 to 8"},
      {"result y[i:8]: float32;\n update y[n[r]] = sum(r:8) x[r];", "from -2147483648"},
      {"result y[i:8]: float32;\n update y[r] = set(r:8) x[r + 1];", "x is read"},
      {"result y[i:8, j:2]: float32;\n update y[i, i] = set() x[i];", "dimension 1 is written"},
  };
  for (const auto& c : cases) EXPECT_THAT(verdict(c.declarations), HasSubstr(c.why));
}

TEST(Accesses, ExternalFunctionsTakeAndGiveTheArraysThatStandThere) {
  register_external(
      "test.first_half",
      [](std::span<const TensorType> types) -> Result<TensorType> {
        if (types.size() != 1 || types[0].shape.size() != 1)
          return bad_model("test.first_half: one vector");
        return TensorType{{types[0].shape[0] / 2}, types[0].dtype};
      },
      [](std::span<const DLTensor>, const DLTensor&) { return Status(); });
  EXPECT_EQ(verdict("result y[i:4] = extern \"test.first_half\"(x): float32;"), "proven");
  EXPECT_THAT(
      verdict("result y[i:8] = extern \"test.first_half\"(x): float32;"),
      HasSubstr("test.first_half gives a Tensor[(4), float32], not a Tensor[(8), float32]"));
  EXPECT_THAT(verdict("result y[i:4] = extern \"test.first_half\"(n): float32;"),
              HasSubstr("gives a Tensor[(4), int32]"));
  EXPECT_THAT(verdict("result y[i:4] = extern \"test.first_half\"(x, x): float32;"),
              HasSubstr("test.first_half: one vector"));
  EXPECT_THAT(verdict("result y[i:4] = extern \"test.missing\"(x): float32;"),
              HasSubstr("no external function 'test.missing'"));
}

TEST(Accesses, WhatIsProvenStaysInsideForTheWorstValues) {
  const std::vector<Tensor> inputs{
      Tensor::from<float>({8}, {-1e30f, 1e30f, -INFINITY, INFINITY, NAN, -1, 8, 3}),
      Tensor::from<int32_t>({8}, {INT32_MIN, INT32_MAX, -1, 0, 7, 8, -8, 3}),
      Tensor::from<int64_t>({8}, {INT64_MIN, INT64_MAX, -1, 0, 7, 8, int64_t{1} << 32, 3})};
  for (const char* declarations :
       {"result y[i:8] = x[min(max(n[i], 0), 7)] + x[n[i] % 8];",
        "result y[i:8] = x[min(max(int32(q[i]), 0), 7)] + x[int32(q[i] % 8i64)];",
        "result y[i:8] = x[min(max(int32(x[i]), 0), 7)];",
        "result y[i:8] = n[i] / n[7 - i] + n[i] % n[7 - i] - n[i] * n[i] + abs(n[i]);",
        "result y[i:8] = q[i] / q[7 - i] + q[i] % q[7 - i] - q[i] * q[i] + abs(q[i]);",
        "result y[i:8] = q[i] / -1i64 + q[i] % -3i64 + -q[i] + int64(x[i]);",
        "result y[i:8] = sum(k:8) q[k];", "result y[i:8] = product(k:8) n[k];",
        "result y[i:4]: float32;\n update y[min(max(n[r], 0), 3)] = sum(r:8) x[r];",
        "result y[i:4]: bool;\n update y[i * 2] = set() n[i] < 0;"}) {
    const Result<Program> program = parse_program(program_of(declarations));
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    const bool written_beyond = std::string(declarations).find("i * 2") != std::string::npos;
    EXPECT_EQ(check_accesses(*program).ok(), !written_beyond) << declarations;
    const Result<std::vector<Tensor>> values = evaluate(*program, inputs);
    EXPECT_EQ(values.ok(), !written_beyond) << declarations;
  }
}

}  // namespace
}  // namespace collage::tensor_program
