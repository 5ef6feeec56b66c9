// onednn.matmul as a stage of a tensor program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/onednn/onednn_backend.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/external.h"
#include "tensor_program/program_text.h"

namespace collage {
namespace {

Tensor counted(Shape shape) {
  Tensor tensor = Tensor::empty(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = static_cast<float>((i * 5 + 3) % 11 - 5);
  return tensor;
}

TEST(OneDnnLabels, ComputeWhatTheSumsDo) {
  make_onednn_backend();
  for (const bool batched : {false, true}) {
    SCOPED_TRACE(batched);
    const std::string b = batched ? "2, " : "", axis = batched ? "n:2, " : "",
                      at = batched ? "n, " : "";
    const auto run = [&](const std::string& stages) {
      auto program = tensor_program::parse_program(
          "program {\n param x: float32[" + b + "5, 7];\n param w: float32[" + b +
          "7, 3];\n param c: float32[3];\n" + stages + "}");
      EXPECT_TRUE(program.ok()) << program.status().to_string();
      const Shape x = batched ? Shape{2, 5, 7} : Shape{5, 7},
                  w = batched ? Shape{2, 7, 3} : Shape{7, 3};
      return tensor_program::evaluate(*program,
                                      std::vector<Tensor>{counted(x), counted(w), counted({3})});
    };
    auto called =
        run("result y[" + axis + "i:5, j:3] = extern \"onednn.matmul\"(x, w, c): float32;");
    auto summed = run("stage p[" + axis + "i:5, j:3] = sum(k:7) x[" + at + "i, k] * w[" + at +
                      "k, j];\nresult y[" + axis + "i:5, j:3] = p[" + at + "i, j] + c[j];");
    ASSERT_TRUE(called.ok()) << called.status().to_string();
    ASSERT_TRUE(summed.ok()) << summed.status().to_string();
    for (int64_t i = 0; i < (*summed)[0].size(); ++i)
      EXPECT_EQ((*called)[0].data<float>()[i], (*summed)[0].data<float>()[i]) << i;
  }
  const auto* function = tensor_program::find_external("onednn.matmul");
  ASSERT_NE(function, nullptr);
  const std::vector<TensorType> wrong{{{5, 7}, DType::kFloat32}, {{5, 7}, DType::kFloat32}};
  EXPECT_FALSE(function->types(wrong, {}).ok());
}

}  // namespace
}  // namespace collage
