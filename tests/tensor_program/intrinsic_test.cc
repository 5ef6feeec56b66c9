// Intrinsics in schedules: which sums are one, and what is said of those that are none.
#include "tensor_program/intrinsic.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor_program/accesses.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;

/// A product of 4 rows by 32 columns, of 64 terms, its sum and its step as given.
Status checked(const std::string& sum, const std::string& step,
               const std::string& columns = "const B: int16[2, 32, 16, 2]") {
  return parse_program(fmt::format(R"(program {{
    param A: int16[4, 64];
    {};
    result C[i:4, j:32] = {};
    schedule {{ C.{}; }}
  }})",
                                   columns, sum, step))
      .status();
}

const std::string kSum = "sum(k:32, r:2) int32(A[i, k * 2 + r]) * int32(B[j / 16, k, j % 16, r])";
const std::string kStep = "update(0).tensorise(j, r, dot_int16x2, 8)";

/// The first update of the stage by lanes of eight.
Primitive tensorise(const Stage& stage, const std::string& intrinsic) {
  return {stage.name, 0, PrimitiveKind::kTensorise, {"j", "r", intrinsic}, 8};
}

TEST(Intrinsic, IsWhatItsProgramComputes) {
  for (const Intrinsic& intrinsic : intrinsics()) {
    EXPECT_EQ(find_intrinsic(intrinsic.name), &intrinsic);
    EXPECT_TRUE(check_accesses(intrinsic.program).ok());
    EXPECT_EQ(intrinsic.program.buffers.size(), 2 * intrinsic.products());
    // It is itself, of as many lanes as it was declared with, where elements may have any value.
    EXPECT_EQ(match_tensorised(intrinsic.program, intrinsic.stage(),
                               tensorise(intrinsic.stage(), intrinsic.name), intrinsic)
                  .ok(),
              !intrinsic.lanes_bound.has_value())
        << intrinsic.name;
  }
  EXPECT_EQ(find_intrinsic("dot_int16x3"), nullptr);
}

/// Elements of the lanes have to be known to stay within the bound.
TEST(Intrinsic, OfSmallNumbers) {
  const auto checked = [](const std::string& element) {
    return parse_program(fmt::format(R"(program {{
      param A: uint8[4, 8];
      param B: int8[8, 8];
      stage P[k:2, j:8, r:4] = {};
      result C[i:4, j:8] = sum(k:2, r:4) int32(A[i, k * 4 + r]) * int32(P[k, j, r]);
      schedule {{ C.update(0).tensorise(j, r, dot_uint8x4_small, 8); }}
    }})",
                                     element))
        .status();
  };
  EXPECT_EQ(checked("max(min(B[j, k * 4 + r], 64_int8), -64_int8)").to_string(),
            Status().to_string());
  EXPECT_THAT(checked("max(min(B[j, k * 4 + r], 65_int8), -64_int8)").message(),
              HasSubstr("something else"));
  EXPECT_THAT(checked("B[j, k * 4 + r]").message(), HasSubstr("something else"));
}

/// Two products are added up in 16 bits: of constants with values alone that is known.
TEST(Intrinsic, OfTwoProducts) {
  const std::string text = R"(program {
    param A: uint8[4, 16];
    const T: int32[1, 2, 2];
    const B: int8[1, 2, 8, 4];
    const D: int8[1, 2, 8, 4];
    result C[i:4, j:8] = sum(k:2, r:4) int32(A[i, min(max(T[j / 8, k, 0], 0), 12) + r]) * int32(B[j / 8, k, j % 8, r]) + int32(A[i, min(max(T[j / 8, k, 1], 0), 12) + r]) * int32(D[j / 8, k, j % 8, r]);
  })";
  Program program = parse_program(text).value();
  const auto checked = [&](const std::string& name) {
    const Stage& stage = program.stages[0];
    return match_tensorised(program, stage, tensorise(stage, name), *find_intrinsic(name)).status();
  };
  EXPECT_THAT(checked("dot_uint8x4_twice").message(), HasSubstr("something else"))
      << "of any values";
  Tensor b = Tensor::zeros(DType::kInt8, {1, 2, 8, 4}), d = b.clone();
  const auto set = [](Tensor& weights, int64_t at, std::vector<int> values) {
    for (const int value : values) weights.data<int8_t>()[at++] = static_cast<int8_t>(value);
  };
  program.buffers[2].value = b;
  EXPECT_THAT(checked("dot_uint8x4_twice").message(), HasSubstr("something else"));
  program.buffers[3].value = d;
  EXPECT_EQ(checked("dot_uint8x4_twice").to_string(), Status().to_string());
  set(b, 6, {64, -64}), set(d, 6, {64, -64});
  EXPECT_EQ(checked("dot_uint8x4_twice").to_string(), Status().to_string());
  set(b, 6, {64, 1});
  EXPECT_THAT(checked("dot_uint8x4_twice").message(), HasSubstr("fit 16 bits")) << "129 * 255";
  set(b, 6, {1, -64}), set(d, 6, {-64, -1});
  EXPECT_THAT(checked("dot_uint8x4_twice").message(), HasSubstr("fit 16 bits")) << "-129 * 255";
  set(d, 6, {65, -1});
  EXPECT_THAT(checked("dot_uint8x4_twice").message(), HasSubstr("something else"));
  EXPECT_THAT(checked("dot_uint8x4_small").message(), HasSubstr("something else"));
}

TEST(Intrinsic, SumsThatAreOne) {
  EXPECT_EQ(checked(kSum, kStep).to_string(), Status().to_string());
  // Either way round, and with columns that are a dimension.
  EXPECT_TRUE(
      checked("sum(k:32, r:2) int32(B[j / 16, k, j % 16, r]) * int32(A[i, r + k * 2])", kStep)
          .ok());
  EXPECT_TRUE(checked("sum(k:32, r:2) int32(A[i, k * 2 + r]) * int32(B[k, j, r])",
                      "update(0).tensorise(j, r, dot_int16x2, 16)", "param B: int16[32, 32, 2]")
                  .ok());
  const std::string text = R"(program {
  param A: int16[4, 64];
  param B: int16[32, 32, 2];
  result C[i:4, j:32] = sum(k:32, r:2) int32(A[i, k * 2 + r]) * int32(B[k, j, r]);
  schedule {
    C.update(0).tensorise(j, r, dot_int16x2, 8);
  }
}
)";
  EXPECT_EQ(parse_program(text).value().to_string(), text);
}

TEST(Intrinsic, SumsThatAreNone) {
  const auto refused = [](const Status& status, const std::string& why) {
    ASSERT_FALSE(status.ok()) << why;
    EXPECT_THAT(status.message(), HasSubstr(why));
  };
  refused(checked(kSum, "update(0).tensorise(j, r, dot_int16x3, 8)"), "there is no intrinsic");
  refused(checked(kSum, "tensorise(j, r, dot_int16x2, 8)"), "for updates");
  refused(checked(kSum, "update(0).tensorise(i, r, dot_int16x2, 4)"), "innermost axis");
  refused(checked(kSum, "update(0).tensorise(j, k, dot_int16x2, 8)"), "2 terms at a time");
  refused(checked(kSum, "update(0).tensorise(j, r, dot_int16x2, 24)"), "24 lanes do not divide");
  refused(checked(kSum, "update(0).tensorise(j, r, dot_uint8x4, 8)"), "4 terms at a time");
  // Blocks of columns that vectors reach beyond.
  refused(checked(kSum, "update(0).tensorise(j, r, dot_int16x2, 32)"), "something else");
  const auto other = [&](const std::string& sum, const std::string& columns) {
    refused(checked(sum, kStep, columns), "something else");
  };
  // Of other types, of terms that lie apart, of lanes that lie apart, of shared lanes.
  other("sum(k:32, r:2) int32(A[i, k * 2 + r]) * int32(B[k, j, r])", "param B: int8[32, 32, 2]");
  other("sum(k:32, r:2) int32(A[i, r * 32 + k]) * int32(B[k, j, r])", "param B: int16[32, 32, 2]");
  other("sum(k:32, r:2) int32(A[i, k * 2 + r]) * int32(B[k, r, j])", "param B: int16[32, 2, 32]");
  other("sum(k:32, r:2) int32(A[i, k * 2 + r]) * int32(B[k, j, r])", "param B: int16[32, 32, 3]");
  other("sum(k:32, r:2) int32(A[i, k * 2 + r]) * int32(A[i, k * 2 + r])", "param B: int16[1]");
  other("sum(k:32, r:2) int32(A[i, k * 2 + r]) + int32(B[k, j, r])", "param B: int16[32, 32, 2]");
  refused(checked("max(k:32, r:2) int32(A[i, k * 2 + r]) * int32(B[k, j, r])", kStep,
                  "param B: int16[32, 32, 2]"),
          "adds up no elements");
}

void nothing(int64_t, void*, const void*, const void*, const int64_t*) {}

/// What programs of tiles have to be, and that what is multiplied besides has to be the same.
TEST(Intrinsic, OfTiles) {
  const auto registered = [](const std::string& name, const std::string& sum, IntrinsicCall call) {
    return register_intrinsic(name,
                              fmt::format(R"(program (k = 4) {{
      param A: float32[2, k];
      param B: float32[8, k];
      result C[i:2, j:8] = sum(t:k) {};
    }})",
                                          sum),
                              call, true);
  };
  EXPECT_THAT(registered("test_tile", "A[i, t] * B[j, t]", nothing).message(),
              HasSubstr("its lowering makes"));
  for (const char* sum : {"A[i, t] * B[j, t] * B[j, 0]", "A[i, t]", "A[i, t] * B[i, t]",
                          "A[i, t] * B[t, t]", "A[i, t * t] * B[j, t]"})
    EXPECT_THAT(registered("test_tile", sum, nothing).message(), HasSubstr("is no sum")) << sum;
  EXPECT_EQ(registered("test_tile", "A[i, t] * B[j, t] * 2.0f", nullptr).to_string(),
            Status().to_string());
  const auto checked = [](const std::string& sum) {
    return parse_program(fmt::format(R"(program {{
      param A: float32[4, 2, 8];
      param B: float32[2, 16, 8];
      result C[i:4, j:16] = sum(n:2, t:8) {};
      schedule {{ C.update(0).tensorise(i, j, t, test_tile, 8); }}
    }})",
                                     sum))
        .status();
  };
  EXPECT_EQ(checked("B[n, j, t] * A[i, n, t] * 2.0f").to_string(), Status().to_string());
  for (const char* sum :
       {"A[i, n, t] * B[n, j, t] * 3.0f", "A[i, n, t] * B[n, t, t] * 2.0f",
        "A[i, n, t] * B[n, i + j, t] * 2.0f", "A[i, i / 3, t] * B[n, j, t] * 2.0f",
        "A[i, n, 7 - t] * B[n, j, t] * 2.0f"})
    EXPECT_FALSE(checked(sum).ok()) << sum;
}

}  // namespace
}  // namespace collage::tensor_program
