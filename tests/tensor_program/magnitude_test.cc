// How large values can be, and tests for what is no number that go with it.
#include "tensor_program/magnitude.h"

#include <gtest/gtest.h>

#include <limits>

#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

/// The value of Y, simplified. `c` is a constant array.
std::string simplified(const std::string& value, float constant = 3) {
  const std::string head = R"(program {
  param A: uint8[4];
  param X: float32[4];
  param c: float32[4];
  stage S[i:4] = sum(k:4) int32(A[k]) * int32(A[i]);
  stage R[i:4] = float32(S[i]) * c[i];
  result Y[i:4] = )";
  Program program = parse_program(head + value + ";\n}\n").value();
  Buffer& buffer = program.buffers[2];
  buffer.is_constant = true;
  buffer.param = -1;
  buffer.value = Tensor::from<float>({4}, {1, -2, constant, 0});
  const std::string text = simplified_by_magnitude(program).to_string(), start = "result Y[i:4] = ";
  const size_t at = text.find(start) + start.size();
  return text.substr(at, text.find(";\n", at) - at);
}

TEST(Magnitude, OfIntegersByFiniteNumbers) {
  EXPECT_EQ(simplified("select(is_nan(float32(A[i])), 0.0f, float32(A[i]))"), "float32(A[i])");
  EXPECT_EQ(simplified("round(select(is_nan(quotient(R[i] + c[i], 0.1f)), 0.0f, "
                       "quotient(R[i] + c[i], 0.1f)))"),
            "round(quotient(R[i] + c[i], 0.1f))");
  EXPECT_EQ(simplified("select(is_nan(max(R[i], 0.0f)), 1.0f, min(R[i], 2.0f))"),
            "min(R[i], 2.0f)");
}

TEST(Magnitude, SmallNumbersAreCutOffAsIntegers) {
  EXPECT_EQ(simplified("uint8(int32(max(min(round(R[i] * 0.1f), 250.0f), -5.0f)) + 5)"),
            "uint8(max(min(int32(round(R[i] * 0.1f)) + 5, 255), 0))");
  EXPECT_EQ(simplified("int32(min(R[i] * 0.1f, 2.0f))"), "min(int32(R[i] * 0.1f), 2)");
  // Limits that are no integers, and numbers that may be none in 32 bits.
  for (const std::string value :
       {"int32(min(R[i] * 0.1f, 2.5f))", "int32(min(R[i] * 9.0f, 2.0f))",
        "int32(max(min(X[i], 250.0f), -5.0f)) + 5", "min(int32(A[i]) * 2147483647, 7) + 1",
        "min(int32(A[i]), 2147483647) + 1"})
    EXPECT_EQ(simplified(value), value);
}

TEST(Magnitude, UnknownWhereSomethingMayBeNoNumber) {
  for (const std::string value : {"X[i]", "R[i] * X[i]", "quotient(R[i], c[i])", "log(R[i])",
                                  "R[i] * 1e38f", "quotient(R[i], 0.0f)", "R[i] * 0.0f / 1e-39f"}) {
    const std::string test = "select(is_nan(" + value + "), 0.0f, 1.0f)";
    EXPECT_NE(simplified(test), "1.0f") << value;
  }
  const std::string test = "select(is_nan(R[i]), 0.0f, R[i])";
  EXPECT_EQ(simplified(test), "R[i]");
  EXPECT_EQ(simplified(test, std::numeric_limits<float>::infinity()), test);
  EXPECT_EQ(simplified(test, std::numeric_limits<float>::quiet_NaN()), test);
}

}  // namespace
}  // namespace collage::tensor_program
