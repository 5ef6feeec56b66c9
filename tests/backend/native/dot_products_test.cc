// Sums of products by instructions: how a program is rewritten for one, and that compiled code has
// it.
#include "backend/native/integers/dot_products.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "backend/native/called_program.h"
#include "backend/native/kernel_builder.h"
#include "backend/native/stages/stage_schedule.h"
#include "base/files.h"
#include "check.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/program_text.h"

namespace collage::native {
namespace {

using ::testing::HasSubstr;
namespace tp = tensor_program;

/// The program after its sum became one of the intrinsic's, in panels of 8 columns.
std::string rewritten(const std::string& text, const std::string& intrinsic) {
  tp::StagePlan plan = tp::plan_stages(tp::parse_program(text).value());
  if (plan.sums.size() != 1) return "no sum";
  if (!use_intrinsic(plan, plan.sums[0], *tp::find_intrinsic(intrinsic), 8, 8)) return "none";
  EXPECT_EQ(plan.sums[0].intrinsic, tp::find_intrinsic(intrinsic));
  const Status verified = tp::verify(plan.program);
  EXPECT_TRUE(verified.ok()) << verified.to_string();
  return plan.program.to_string();
}

TEST(DotProducts, OfRowsAndColumns) {
  EXPECT_EQ(rewritten(R"(program {
  param A: uint8[5, 12];
  param B: int8[16, 12];
  stage S[i:5, j:16] = sum(k:12) (int32(A[i, k]) - 3) * int32(B[j, k]);
  result Y[i:5, j:16] = float32(S[i, j]);
})",
                      "dot_int16x2"),
            R"(program {
  param A: uint8[5, 12];
  param B: int8[16, 12];
  stage S_rows[i:5, k:12] = int16(int32(A[i, k]) - 3);
  stage S_columns[panel:2, k:6, lane:8, term:2] = int16(int32(B[panel * 8 + lane, k * 2 + term]));
  stage S[i:5, j:16] = sum(k:6, term:2) int32(S_rows[i, k * 2 + term]) * int32(S_columns[j / 8, k, j % 8, term]);
  result Y[i:5, j:16] = float32(S[i, j]);
}
)");
}

TEST(DotProducts, OfAConvolution) {
  EXPECT_EQ(rewritten(R"(program {
  param A: uint8[1, 7, 7, 4];
  param B: int8[8, 4, 3, 3];
  stage S[n:1, h:3, w:3, c:8] = sum(k:4, y:3, x:3) int32(A[n, h * 2 + y, w * 2 + x, k]) * int32(B[c, k, y, x]);
  result Y[n:1, h:3, w:3, c:8] = float32(S[n, h, w, c]);
})",
                      "dot_uint8x4"),
            R"(program {
  param A: uint8[1, 7, 7, 4];
  param B: int8[8, 4, 3, 3];
  stage S_columns[panel:1, y:3, x:3, k:1, lane:8, term:4] = B[panel * 8 + lane, k * 4 + term, y, x];
  stage S[n:1, h:3, w:3, c:8] = sum(y:3, x:3, k:1, term:4) int32(A[n, h * 2 + y, w * 2 + x, k * 4 + term]) * int32(S_columns[c / 8, y, x, k, c % 8, term]);
  result Y[n:1, h:3, w:3, c:8] = float32(S[n, h, w, c]);
}
)");
}

/// Rows that may be negative are stored with what makes them none, and the sum begins with as much
/// less; padding is zero before that.
TEST(DotProducts, OfRowsWithAZeroPoint) {
  const std::string text = R"(program {
  param A: uint8[6, 8];
  const B: int8[16, 8, 3];
  stage S[i:6, j:16] = sum(k:8, x:3) select(i + x >= 1 && i + x <= 6, int32(A[max(min(i + x + -1, 5), 0), k]) - 117, 0) * int32(B[j, k, x]);
  result Y[i:6, j:16] = S[i, j] * 2;
})";
  EXPECT_EQ(rewritten(text, "dot_uint8x4"), R"(program {
  param A: uint8[6, 8];
  const B: int8[16, 8, 3];
  stage S_rows[at_i:8, k:8] = uint8(select(at_i >= 1 && at_i <= 6, int32(A[max(min(at_i + -1, 5), 0), k]), 117));
  stage S_columns[panel:2, x:3, k:2, lane:8, term:4] = B[panel * 8 + lane, k * 4 + term, x];
  stage S_start[j:16] = sum(x:3, k:8) int32(B[j, k, x]);
  stage S[i:6, j:16] = S_start[j] * -117;
  update S[i, j] = sum(x:3, k:2, term:4) int32(S_rows[i + x, k * 4 + term]) * int32(S_columns[j / 8, x, k, j % 8, term]);
  result Y[i:6, j:16] = S[i, j] * 2;
}
)");
  tp::Program program = tp::parse_program(text).value();
  Tensor a = Tensor::empty(DType::kUInt8, {6, 8}), b = Tensor::empty(DType::kInt8, {16, 8, 3});
  for (int64_t i = 0; i < a.size(); ++i) a.data<uint8_t>()[i] = static_cast<uint8_t>(i * 89);
  for (int64_t i = 0; i < b.size(); ++i) b.data<int8_t>()[i] = static_cast<int8_t>(i * 37);
  program.buffers[1].value = b;
  const std::vector<Tensor> expected = tp::evaluate(program, std::vector<Tensor>{a}).value();
  for (const char* intrinsic : {"dot_uint8x4", "dot_int16x2"}) {
    tp::StagePlan plan = tp::plan_stages(program);
    ASSERT_TRUE(use_intrinsic(plan, plan.sums[0], *tp::find_intrinsic(intrinsic), 8, 8));
    const std::vector<Tensor> got = tp::evaluate(plan.program, std::vector<Tensor>{a}).value();
    for (int64_t i = 0; i < expected[0].size(); ++i)
      ASSERT_EQ(got[0].data<int32_t>()[i], expected[0].data<int32_t>()[i]) << intrinsic << i;
  }
}

/// A zero point that is computed, as by dynamic quantisation, is any number.
TEST(DotProducts, OfRowsWithAComputedZeroPoint) {
  const std::string text = R"(program {
  param A: uint8[6, 8];
  const B: int8[16, 8];
  param z: int32[];
  stage S[i:6, j:16] = sum(k:8) (int32(A[i, k]) - z[]) * int32(B[j, k]);
  result Y[i:6, j:16] = S[i, j] * 2;
})";
  EXPECT_EQ(rewritten(text, "dot_uint8x4"), R"(program {
  param A: uint8[6, 8];
  const B: int8[16, 8];
  param z: int32[];
  stage S_columns[panel:2, k:2, lane:8, term:4] = B[panel * 8 + lane, k * 4 + term];
  stage S_start[j:16] = sum(k:8) int32(B[j, k]);
  stage S[i:6, j:16] = S_start[j] * -z[];
  update S[i, j] = sum(k:2, term:4) int32(A[i, k * 4 + term]) * int32(S_columns[j / 8, k, j % 8, term]);
  result Y[i:6, j:16] = S[i, j] * 2;
}
)");
  tp::Program program = tp::parse_program(text).value();
  Tensor a = Tensor::empty(DType::kUInt8, {6, 8}), b = Tensor::empty(DType::kInt8, {16, 8});
  for (int64_t i = 0; i < a.size(); ++i) a.data<uint8_t>()[i] = static_cast<uint8_t>(i * 89);
  for (int64_t i = 0; i < b.size(); ++i) b.data<int8_t>()[i] = static_cast<int8_t>(i * 37);
  program.buffers[1].value = b;
  tp::StagePlan plan = tp::plan_stages(program);
  ASSERT_TRUE(use_intrinsic(plan, plan.sums[0], *tp::find_intrinsic("dot_uint8x4"), 8, 8));
  for (const int32_t zero : {0, 117, 255, -1000000}) {
    const std::vector<Tensor> inputs{a, Tensor::from<int32_t>({}, {zero})};
    const Tensor got = tp::evaluate(plan.program, inputs).value()[0],
                 expected = tp::evaluate(program, inputs).value()[0];
    for (int64_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(got.data<int32_t>()[i], expected.data<int32_t>()[i]) << zero << " " << i;
  }
}

/// An instruction's last terms may be none: there columns are zero.
TEST(DotProducts, OfThreeChannels) {
  EXPECT_EQ(rewritten(R"(program {
  param A: uint8[7, 7, 3];
  param B: int8[8, 3, 2];
  stage S[h:3, w:7, c:8] = sum(k:3, y:2) int32(A[h * 2 + y, w, k]) * int32(B[c, k, y]);
  result Y[h:3, w:7, c:8] = float32(S[h, w, c]);
})",
                      "dot_int16x2"),
            R"(program {
  param A: uint8[7, 7, 3];
  param B: int8[8, 3, 2];
  stage S_rows[at_h:6, w:7, k:4] = int16(int32(A[at_h, w, min(k, 2)]));
  stage S_columns[panel:1, y:2, k:2, lane:8, term:2] = select(k * 2 + term <= 2, int16(int32(B[panel * 8 + lane, min(k * 2 + term, 2), y])), 0_int16);
  stage S[h:3, w:7, c:8] = sum(y:2, k:2, term:2) int32(S_rows[h * 2 + y, w, k * 2 + term]) * int32(S_columns[c / 8, y, k, c % 8, term]);
  result Y[h:3, w:7, c:8] = float32(S[h, w, c]);
}
)");
}

const char* const kHalfConvolution = R"(program {
  param A: bfloat16[6, 8];
  param B: bfloat16[8, 8, 3];
  stage S[i:6, j:8] = sum(k:8, x:3) select(i + x >= 1 && i + x <= 6, float32(A[max(min(i + x + -1, 5), 0), k]), 0.0f) * float32(B[j, k, x]);
  result Y[i:6, j:8] = max(S[i, j], 0.0f);
})";

TEST(DotProducts, OfBfloat16) {
  EXPECT_EQ(rewritten(kHalfConvolution, "dot_bfloat16x2"), R"(program {
  param A: bfloat16[6, 8];
  param B: bfloat16[8, 8, 3];
  stage S_rows[at_i:8, k:8] = bfloat16(select(at_i >= 1 && at_i <= 6, float32(A[max(min(at_i + -1, 5), 0), k]), 0.0f));
  stage S_columns[panel:1, x:3, k:4, lane:8, term:2] = B[panel * 8 + lane, k * 2 + term, x];
  stage S[i:6, j:8] = sum(x:3, k:4, term:2) float32(S_rows[i + x, k * 2 + term]) * float32(S_columns[j / 8, x, k, j % 8, term]);
  result Y[i:6, j:8] = max(S[i, j], 0.0f);
}
)");
  std::string real = kHalfConvolution;
  for (size_t at = 0; (at = real.find("bfloat16[", at)) != std::string::npos;)
    real.replace(at, 8, "float32");
  EXPECT_EQ(rewritten(real, "dot_bfloat16x2"), "none") << "digits would be lost";
}

TEST(DotProducts, NoneOfWhatDoesNotFit) {
  const auto product = [](const std::string& a, const std::string& b, int terms, int columns) {
    return rewritten(fmt::format(R"(program {{
      param A: uint8[5, {0}];
      param B: int8[{1}, {0}];
      param W: int32[{1}, {0}];
      stage S[i:5, j:{1}] = sum(k:{0}) {2} * {3};
      result Y[i:5, j:{1}] = float32(S[i, j]);
    }})",
                                 terms, columns, a, b),
                     "dot_uint8x4");
  };
  const std::string a = "int32(A[i, k])", b = "int32(B[j, k])";
  EXPECT_THAT(product(a, b, 12, 16), HasSubstr("int32(A[i, k * 4 + term])"));
  EXPECT_THAT(product(b, a, 12, 16), HasSubstr("int32(A[i, k * 4 + term])"));
  EXPECT_THAT(product(a, b, 11, 16), HasSubstr("S_rows"));
  EXPECT_EQ(product(a, b, 5, 16), "none") << "four terms at a time";
  EXPECT_EQ(product(a, b, 12, 6), "none") << "lanes";
  EXPECT_EQ(product("(int32(A[i, k]) - 3)", b, 12, 16), "none")
      << "sums of columns that are computed";
  EXPECT_EQ(product(a, "W[j, k]", 12, 16), "none") << "of any size";
  EXPECT_EQ(product(a, "int32(B[j, (i + k) % 12])", 12, 16), "none") << "rows have their own";
}

/// Whether the code of the function for a processor has the instruction.
bool has(const std::string& instruction, const Function& f, const std::string& schedule,
         const std::string& target) {
  KernelDump none;
  const BuiltKernel built = stage_kernel({f, Variant::plain("", f), schedule, 1, none}).value();
  std::vector<Halide::Argument> inputs;
  for (const Binding& binding : built.bindings) inputs.push_back(binding.buffer.param());
  const std::string file =
      std::filesystem::temp_directory_path() / ("collage_dot_" + std::to_string(::getpid()) + ".s");
  Halide::Pipeline pipeline = built.pipeline;
  pipeline.compile_to_assembly(file, inputs, "kernel", Halide::Target(target));
  const std::string code = read_file(file).value();
  std::filesystem::remove(file);
  return code.find(instruction) != std::string::npos;
}

/// Weights whose groups go in pairs, and weights of which none do.
TEST(DotProducts, OfTwoGroupsAtATime) {
  const std::string text = R"(program {
  param A: uint8[5, 16];
  const B: int8[8, 16];
  stage S[i:5, j:8] = sum(k:16) (int32(A[i, k]) - 3) * int32(B[j, k]);
  result Y[i:5, j:8] = S[i, j] * 2;
})";
  tp::Program program = tp::parse_program(text).value();
  Tensor a = Tensor::empty(DType::kUInt8, {5, 16});
  for (int64_t i = 0; i < a.size(); ++i) a.data<uint8_t>()[i] = static_cast<uint8_t>(i * 89);
  for (const int bound : {32, 64}) {
    Tensor b = Tensor::empty(DType::kInt8, {8, 16});
    for (int64_t i = 0; i < b.size(); ++i)
      b.data<int8_t>()[i] = static_cast<int8_t>(i % 3 == 0 ? -bound : bound);
    program.buffers[1].value = b;
    tp::StagePlan plan = tp::plan_stages(program);
    ASSERT_TRUE(use_intrinsic(plan, plan.sums[0], *tp::find_intrinsic("dot_uint8x4_twice"), 8, 8));
    EXPECT_TRUE(tp::verify(plan.program).ok());
    EXPECT_EQ(plan.sums[0].intrinsic->name,
              bound == 32 ? "dot_uint8x4_twice" : "dot_uint8x4_small");
    EXPECT_THAT(
        plan.program.to_string(),
        HasSubstr(bound == 32
                      ? "update S[i, j] = sum(k:2, term:4) int32(A[i, S_terms[j / 8, k, 0] + "
                        "term]) * int32(S_first[j / 8, k, j % 8, term]) + int32(A[i, "
                        "S_terms[j / 8, k, 1] + term]) * int32(S_second[j / 8, k, j % 8, term]);"
                      : "update S[i, j] = sum(k:4, term:4) int32(A[i, k * 4 + term]) * "
                        "int32(S_columns[j / 8, k, j % 8, term]);"));
    const std::vector<Tensor> expected = tp::evaluate(program, std::vector<Tensor>{a}).value();
    const std::vector<Tensor> got = tp::evaluate(plan.program, std::vector<Tensor>{a}).value();
    for (int64_t i = 0; i < expected[0].size(); ++i)
      ASSERT_EQ(got[0].data<int32_t>()[i], expected[0].data<int32_t>()[i]) << bound << " " << i;
  }
  EXPECT_EQ(rewritten(text, "dot_uint8x4_twice"), "none") << "weights of any value";
}

Function product_of_bytes(int32_t zero_point, int64_t bits = 8) {
  const Expr x = var("x", {12, 64}, DType::kUInt8);
  Tensor bytes = Tensor::empty(DType::kInt8, {32, 64});
  for (int64_t i = 0; i < bytes.size(); ++i) {
    const auto any = static_cast<int8_t>(i * 37);
    // The largest are what pairs just do not saturate with.
    bytes.data<int8_t>()[i] = bits == 8 ? any : std::clamp<int8_t>(any, -64, 64);
  }
  return function({x}, call("qnn.dense",
                            {x, make_constant(bytes), make_scalar(0.02f), make_scalar(zero_point),
                             make_scalar(0.1f), make_scalar(int32_t{0})},
                            {{"weight_bits", bits}}));
}

TEST(DotProducts, AreInstructions) {
  const std::string avx2 = "x86-64-linux-no_runtime-sse41-avx-avx2-fma-f16c";
  const std::string vnni = avx2 + "-avx512-avx512_skylake-avx512_cannonlake-avx512_zen4";
  const Function bytes = product_of_bytes(0);
  EXPECT_TRUE(has("vpmaddwd", bytes, "stages dot_int16x2", avx2));
  EXPECT_FALSE(has("vpdpwssd", bytes, "stages dot_int16x2", avx2));
  EXPECT_TRUE(has("vpdpwssd", bytes, "stages dot_int16x2", vnni));
  EXPECT_TRUE(has("vpdpbusd", bytes, "stages dot_uint8x4", vnni));
  EXPECT_TRUE(has("vpdpbusd", product_of_bytes(117), "stages dot_uint8x4", vnni));
  const Function narrow = product_of_bytes(117, 7);
  EXPECT_TRUE(has("vpmaddubsw", narrow, "stages dot_uint8x4_small", avx2));
  EXPECT_FALSE(has("vpaddw", narrow, "stages dot_uint8x4_small", avx2));
  EXPECT_TRUE(has("vpaddw", narrow, "stages dot_uint8x4_twice", avx2));
  const std::string avx512 = avx2 + "-avx512-avx512_skylake";
  EXPECT_TRUE(has("vpmaddubsw", narrow, "stages dot_uint8x4_small", avx512));
  EXPECT_TRUE(has("vpdpbusd", narrow, "stages dot_uint8x4", vnni));
  check_function(narrow);
  const Expr a = var("a", {6, 8}, DType::kBFloat16), b = var("b", {8, 8, 3}, DType::kBFloat16);
  const Function half = function({a, b}, program_call({a, b}, kHalfConvolution));
  EXPECT_TRUE(has("vdpbf16ps", half, "stages dot_bfloat16x2", vnni));
  check_function(half);  // with the instruction, where the processor has it
}

}  // namespace
}  // namespace collage::native
