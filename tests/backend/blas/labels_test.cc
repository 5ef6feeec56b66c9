// cblas_sgemm as a stage of a tensor program: values, types, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/blas/blas_backend.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/external.h"
#include "tensor_program/program_text.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

Tensor counted(Shape shape) {
  Tensor tensor = Tensor::empty(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = static_cast<float>((i * 5 + 3) % 11 - 5);
  return tensor;
}

class Labels : public ::testing::Test {
 protected:
  void SetUp() override { make_blas_backend(); }

  static Result<std::vector<Tensor>> run(const std::string& text, std::vector<Tensor> inputs) {
    auto program = tensor_program::parse_program(text);
    if (!program.ok()) return program.status();
    return tensor_program::evaluate(*program, inputs);
  }
};

TEST_F(Labels, AreListed) {
  for (const char* label : {"cblas_sgemm", "cblas_sgemm_nt"})
    EXPECT_NE(tensor_program::find_external(label), nullptr) << label;
}

/// Four operators (a product, its bias, a residual, an activation) over two calls.
TEST_F(Labels, ComputeWhatTheSumsDo) {
  const std::vector<Tensor> inputs{counted({5, 7}), counted({7, 3}), counted({3}), counted({5, 3})};
  const std::string head = R"(program {
  param a: float32[5, 7];
  param b: float32[7, 3];
  param c: float32[3];
  param r: float32[5, 3];
)";
  auto called = run(head + R"(
  stage t[i:3, j:7] = b[j, i];
  stage p[i:5, j:3] = extern "cblas_sgemm"(a, b, c): float32;
  stage q[i:5, j:3] = extern "cblas_sgemm_nt"(a, t, r): float32;
  result y[i:5, j:3] = max(p[i, j] + q[i, j], 0.0f);
})",
                    inputs);
  auto summed = run(head + R"(
  stage p[i:5, j:3] = sum(k:7) a[i, k] * b[k, j];
  result y[i:5, j:3] = max(p[i, j] + c[j] + p[i, j] + r[i, j], 0.0f);
})",
                    inputs);
  ASSERT_TRUE(called.ok()) << called.status().to_string();
  ASSERT_TRUE(summed.ok()) << summed.status().to_string();
  for (int64_t i = 0; i < 15; ++i)
    EXPECT_EQ((*called)[0].data<float>()[i], (*summed)[0].data<float>()[i]) << i;
}

TEST_F(Labels, RefuseWhatDoesNotFit) {
  const auto failure = [](const std::string& stage) {
    auto results =
        run("program {\n  param a: float32[5, 7];\n  param b: float32[7, 3];\n  " + stage + "\n}",
            {counted({5, 7}), counted({7, 3})});
    EXPECT_FALSE(results.ok());
    return results.ok() ? "" : results.status().message();
  };
  EXPECT_THAT(failure("result y[i:5, j:3] = extern \"cblas_sgemm_nt\"(a, b): float32;"),
              HasSubstr("of shapes (5, 7) and (7, 3)"));
  EXPECT_THAT(failure("result y[i:5, j:4] = extern \"cblas_sgemm\"(a, b): float32;"),
              HasSubstr("gives a Tensor[(5, 3), float32]"));
  EXPECT_THAT(failure("result y[i:5, j:3] = extern \"cblas_sgemm\"(a): float32;"),
              HasSubstr("of 1 arrays"));
  EXPECT_THAT(failure("result y[i:5, j:3] = extern \"cblas_sgemm\"(a, b, a): float32;"),
              HasSubstr("adds no array of shape (5, 7)"));
}

}  // namespace
}  // namespace collage
