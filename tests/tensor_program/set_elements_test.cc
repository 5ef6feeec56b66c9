// Which stages get all their elements from the updates that they begin with.
#include "tensor_program/set_elements.h"

#include <gtest/gtest.h>

#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

/// Of the result C, of 4 times 10 elements where the updates give no other declaration.
bool set_whole(const std::string& updates, const std::string& declaration = "C[i:4, j:10]") {
  const Result<Program> program =
      parse_program("program (n = 4) { param A: float32[n, 10]; param N: int32[10]; result " +
                    declaration + ": float32; " + updates + " }");
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  return program.ok() && sets_all_elements(program->stages[0]);
}

TEST(SetElements, ByOneUpdate) {
  EXPECT_TRUE(set_whole("update C[i, j] = set() A[i, j];"));
  EXPECT_TRUE(set_whole("update C[r, j] = set(r:4) A[r, j];"));
  EXPECT_TRUE(set_whole("update C[j, i] = set() A[i, j];", "C[i:10, j:10]"));
  EXPECT_TRUE(set_whole("update C[] = set() A[0, 0];", "C[]"));
  EXPECT_TRUE(set_whole("update C[i, r] = set(r:10) A[i, r]; update C[0, r] = sum(r:10) A[1, r];"));
  EXPECT_FALSE(set_whole("update C[r, j] = set(r:3) A[r, j];"));
  EXPECT_FALSE(set_whole("update C[i, r + 1] = set(r:9) A[i, r];"));
  EXPECT_FALSE(set_whole("update C[i, i] = set() A[i, i];"));
  EXPECT_FALSE(set_whole("update C[i, r * 2] = set(r:5) A[i, r];"));
  EXPECT_FALSE(set_whole("update C[i, min(max(N[r], 0), 9)] = set(r:10) A[i, r];"));
  EXPECT_FALSE(set_whole("update C[i, j] = set() C[i, j] + A[i, j];"));
}

TEST(SetElements, ByPartsAlongOneDimension) {
  const std::string first = "update C[i, r] = set(r:4) A[i, r];",
                    last = "update C[i, r + 4] = set(r:6) A[i, r];";
  EXPECT_TRUE(set_whole(first + last));
  EXPECT_TRUE(set_whole(last + first));
  EXPECT_FALSE(set_whole(first + "update C[i, r + 5] = set(r:5) A[i, r];"));
  EXPECT_FALSE(set_whole(first + "update C[i, r + 4] = sum(r:6) A[i, r];"));
  EXPECT_FALSE(set_whole(first + "update C[i, r] = set(r:10) C[i, r]; " + last));
  EXPECT_FALSE(
      set_whole("update C[r, k] = set(r:2, k:5) A[r, k];"
                "update C[r + 2, k + 5] = set(r:2, k:5) A[r, k];"));
  EXPECT_FALSE(
      set_whole("update C[r, j] = set(r:3) A[r, j]; update C[i, r + 3] = set(r:7) A[i, r];"));
  EXPECT_TRUE(
      set_whole("update C[0, j] = set() A[0, j]; update C[1, j] = set() A[1, j];", "C[i:2, j:10]"));
}

TEST(SetElements, OverSymbols) {
  const std::string declaration = "C[i:n, j:10]";
  EXPECT_TRUE(set_whole("update C[i, r] = set(r:10) A[i, r];", declaration));
  EXPECT_TRUE(set_whole("update C[r, j] = set(r:n) A[r, j];", declaration));
  // For one value only.
  EXPECT_FALSE(set_whole("update C[r, j] = set(r:4) A[r, j];", declaration));
  EXPECT_FALSE(set_whole("update C[r, j] = set(r:n) A[r, j];", "C[i:4, j:10]"));
}

}  // namespace
}  // namespace collage::tensor_program
