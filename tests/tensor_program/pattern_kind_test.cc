// The fusion kinds of programs: text in, kind out.
#include "tensor_program/pattern_kind.h"

#include <gtest/gtest.h>

#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

std::string kind_of(const std::string& body) {
  const Result<Program> program = parse_program("program { " + body + " }");
  if (!program.ok()) return program.status().to_string();
  return std::string(fusion_kind_name(pattern_kind(*program)));
}

TEST(PatternKind, OfProgramsThatReadWhereTheyWrite) {
  EXPECT_EQ(kind_of("param A: float32[4, 8]; result C[i:4, j:8] = exp(A[i, j]) * 2.0f;"),
            "elementwise");
  EXPECT_EQ(kind_of("param A: float32[4]; param B: float32[4]; stage T[i:4] = A[i] + B[i];"
                    "result C[k:4] = T[k] * T[k];"),
            "elementwise");
  EXPECT_EQ(kind_of("param A: int32[3, 1]; result C[i:3, j:1] = A[i, 0];"), "elementwise");
}

TEST(PatternKind, OfBroadcasts) {
  EXPECT_EQ(kind_of("param A: float32[4, 8]; param B: float32[8];"
                    "result C[i:4, j:8] = A[i, j] + B[j];"),
            "broadcast");
  EXPECT_EQ(kind_of("param A: float32[4, 8]; param B: float32[4];"
                    "result C[i:4, j:8] = A[i, j] + B[i];"),
            "broadcast");
  EXPECT_EQ(kind_of("param A: float32[4, 1]; result C[i:4, j:8] = A[i, 0];"), "broadcast");
  EXPECT_EQ(kind_of("param A: float32[4, 8]; const f: float32[1] = {3};"
                    "result C[i:4, j:8] = A[i, j] * f[0];"),
            "broadcast");
}

TEST(PatternKind, OfMoves) {
  EXPECT_EQ(kind_of("param A: float32[8, 4]; result C[i:4, j:8] = A[j, i];"), "injective");
  // A square one is no element-wise read either.
  EXPECT_EQ(kind_of("param A: float32[4, 4]; result C[i:4, j:4] = A[j, i];"), "injective");
  EXPECT_EQ(kind_of("param A: float32[9]; result C[i:4] = A[i * 2];"), "injective");
  EXPECT_EQ(kind_of("param A: float32[9]; param N: int32[4];"
                    "result C[i:4] = A[min(max(N[i], 0), 8)];"),
            "injective");
  EXPECT_EQ(kind_of("param A: float32[4]; const w: float32[2] = {1, 2};"
                    "result C[i:4] = A[i] * w[i % 2];"),
            "injective");
}

TEST(PatternKind, OfReductions) {
  EXPECT_EQ(kind_of("param A: float32[4, 8]; result C[i:4] = max(k:8) A[i, k];"), "reduction");
  EXPECT_EQ(kind_of("param A: float32[4, 8]; result C[i:4] = sum(k:8) A[i, k] * A[i, k];"),
            "reduction");
  EXPECT_EQ(kind_of("param A: float32[8, 4]; stage S[i:4] = sum(k:8) exp(A[k, i]);"
                    "result C[i:4] = sqrt(S[i]);"),
            "reduction");
}

TEST(PatternKind, OfWhatElementwiseOperatorsMayFollow) {
  EXPECT_EQ(kind_of("param A: float32[4, 8]; param B: float32[8, 3];"
                    "result C[i:4, j:3] = sum(k:8) A[i, k] * B[k, j];"),
            "anchor");
  EXPECT_EQ(kind_of("param A: float32[4, 8]; param B: float32[8, 3];"
                    "stage S[i:4, j:3] = sum(k:8) A[i, k] * B[k, j];"
                    "result C[i:4, j:3] = max(S[i, j], 0.0f);"),
            "anchor");
  // A row needs what was made of all of it.
  EXPECT_EQ(kind_of("param A: float32[4, 8]; stage M[i:4] = max(k:8) A[i, k];"
                    "result C[i:4, j:8] = A[i, j] - M[i];"),
            "anchor");
  EXPECT_EQ(kind_of("param A: float32[4, 8]; stage M[i:4] = max(k:8) A[i, k];"
                    "result C[i:1] = sum(k:4) M[k];"),
            "anchor");
  EXPECT_EQ(kind_of("param A: float32[8]; result C[i:7] = A[i] + A[i + 1];"), "anchor");
}

TEST(PatternKind, OfWhatNothingIsFusedWith) {
  EXPECT_EQ(kind_of("param A: float32[4]; param N: int32[4]; stage H[i:4] = 0.0f;"
                    "update H[min(max(N[r], 0), 3)] = sum(r:4) A[r]; result C[i:4] = H[i];"),
            "opaque");
  EXPECT_EQ(kind_of("param A: float32[3]; result C[i:4]: float32;"
                    "update C[r + 1] = set(r:3) A[r];"),
            "opaque");
  EXPECT_EQ(kind_of("param A: float32[4]; result C[i:4] = extern \"f\"(A): float32;"), "opaque");
}

}  // namespace
}  // namespace collage::tensor_program
