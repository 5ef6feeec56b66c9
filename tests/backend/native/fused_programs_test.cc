// Kernels of calls of tensor programs together with the operators around them, and with each other.
#include <gmock/gmock.h>

#include <set>

#include "backend/native/called_program.h"
#include "backend/native/native_rule.h"
#include "backend/native/stages/stage_schedule.h"
#include "check.h"
#include "ir/op.h"
#include "tensor_program/call.h"
#include "tensor_program/program_text.h"

namespace collage::native {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string product_text(int64_t m, int64_t k, int64_t n) {
  return fmt::format(
      "program {{ param A: float32[{0}, {1}]; param B: float32[{1}, {2}];"
      "result C[i:{0}, j:{2}] = sum(k:{1}) A[i, k] * B[k, j]; }}",
      m, k, n);
}

std::string norm_text(int64_t m, int64_t n) {
  return fmt::format(
      "program {{ param A: float32[{0}, {1}]; stage S[i:{0}] = sum(k:{1}) A[i, k] * A[i, k];"
      "stage R[i:{0}] = 1.0f / sqrt(S[i] / {1}.0f + 0.001f);"
      "result Y[i:{0}, j:{1}] = A[i, j] * R[i]; }}",
      m, n);
}

std::vector<std::string> variant_names(const Function& f) {
  std::vector<std::string> names;
  const auto program = emitted_stages(f);
  if (!program.ok()) return {program.status().to_string()};
  for (const StageSchedule& schedule : stage_schedules(*program, 2))
    names.push_back(schedule.to_string());
  return names;
}

TEST(FusedPrograms, WithWhatStandsInFrontAndBehind) {
  const Expr x = var("x", {24, 40}), w = var("w", {40, 64}), b = var("b", {64});
  const Expr y = program_call({call("nn.relu", {x}), w}, product_text(24, 40, 64));
  const Function f = function({x, w, b}, call("tanh", {call("add", {y, b})}));
  check_function(f, {.least_variants = 2});
  EXPECT_THAT(variant_names(f), Contains("stages packed"));
}

TEST(FusedPrograms, OfSizesThatNothingDivides) {
  for (const auto& [m, k, n] : {std::array{13, 21, 37}, {1, 7, 50}, {5, 3, 3}, {50, 9, 1}}) {
    SCOPED_TRACE(fmt::format("{}x{}x{}", m, k, n));
    const Expr x = var("x", {m, k}), w = var("w", {k, n}), v = var("v", {n, k});
    const Expr y = program_call({call("exp", {x}), w}, product_text(m, k, n));
    const Expr z = program_call({call("nn.relu", {y}), v}, product_text(m, n, k));
    check_function(function({x, w, v}, call("add", {z, x})),
                   {.tolerance = 1e-4, .every_width = true});
  }
}

TEST(FusedPrograms, OneAfterTheOther) {
  const Expr x = var("x", {32, 48}), w = var("w", {48, 32});
  const Expr normal = program_call({x}, norm_text(32, 48));
  const Expr y = program_call({normal, w}, product_text(32, 48, 32));
  const Function f = function({x, w}, call("nn.softmax", {y}));
  check_function(f, {.least_variants = 3});
  EXPECT_THAT(variant_names(f), Contains(HasSubstr("rows ")));
  check_function(function({x, w}, program_call({y}, norm_text(32, 32))));
}

TEST(FusedPrograms, ConstantWeightsArePackedWhenCompiled) {
  const Expr x = var("x", {16, 24});
  const Expr y = program_call({x, weights({24, 32})}, product_text(16, 24, 32));
  const Function f = function({x}, call("nn.relu", {y}));
  check_function(f);
  const auto program = with_schedule(tensor_program::plan_stages(emitted_stages(f).value()),
                                     {.rows = 0, .packed = true}, 2);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  // Panels are as wide as the processor's register tile.
  EXPECT_THAT(program->to_string(),
              ContainsRegex("const s0_panels0: float32\\[(2, 24, 16|1, 24, 32)\\];"));
}

TEST(FusedPrograms, OfWeightsThatNoCacheHolds) {
  const Expr x = var("x", {19, 260}), w = var("w", {260, 272});
  const Expr y = program_call({x, w}, product_text(19, 260, 272));
  const Function f = function({x, w}, call("nn.relu", {y}));
  EXPECT_EQ(variant_names(f)[0], "stages packed");
  check_function(f, {.tolerance = 1e-4});
}

TEST(FusedPrograms, ReadAtIndexMaps) {
  const Expr x = var("x", {30, 45});
  const std::string text = R"(program {
    param A: float32[30, 45];
    result C[i:30, j:45] = A[i, j] + A[max(i - 1, 0), j] + A[min(i + 1, 29), min(j + 1, 44)];
  })";
  const Expr once = program_call({call("add", {x, x})}, text);
  check_function(function({x}, call("nn.relu", {program_call({once}, text)})));
}

TEST(FusedPrograms, RowsOfAttention) {
  const Expr q = var("q", {2, 32, 16}), k = var("k", {2, 32, 16}), v = var("v", {2, 32, 16});
  const std::string text = R"(program {
    param Q: float32[2, 32, 16];
    param K: float32[2, 32, 16];
    param V: float32[2, 32, 16];
    stage P[h:2, i:32, j:32] = sum(d:16) Q[h, i, d] * K[h, j, d];
    stage M[h:2, i:32] = max(j:32) P[h, i, j];
    stage E[h:2, i:32, j:32] = exp(P[h, i, j] - M[h, i]);
    stage Z[h:2, i:32] = sum(j:32) E[h, i, j];
    stage O[h:2, i:32, d:16] = sum(j:32) E[h, i, j] * V[h, j, d];
    result Y[h:2, i:32, d:16] = O[h, i, d] / Z[h, i];
  })";
  const Function f =
      function({q, k, v},
               call("nn.relu", {program_call({call("multiply", {q, weights({16})}), k, v}, text)}));
  check_function(f, {.least_variants = 3, .every_width = true});
  EXPECT_THAT(variant_names(f), Contains(HasSubstr("rows ")));
}

TEST(FusedPrograms, ElementwiseOnesBehindAnchorsOfTheLibrary) {
  const std::string text = R"(program {
    param A: float32[8, 32];
    param B: float32[32];
    result C[i:8, j:32] = max(A[i, j] + B[j], 0.25f);
  })";
  const Expr x = var("x", {8, 24}), b = var("b", {32});
  const Expr y = call("nn.matmul", {call("exp", {x}), weights({24, 32})});
  check_function(function({x, b}, program_call({y, b}, text)));
  const Expr image = var("image", {1, 4, 9, 9});
  const Expr z = call("nn.conv2d", {image, weights({8, 4, 3, 3})});
  check_function(function({image}, program_call({z}, R"(program {
    param A: float32[1, 8, 7, 7];
    result C[n:1, c:8, y:7, x:7] = A[n, c, y, x] * 0.5f;
  })")));
}

TEST(FusedPrograms, OfMasksWithInfinities) {
  const Expr x = var("x", {24, 24});
  const Expr y = program_call({call("exp", {x})}, R"(program {
    param A: float32[24, 24];
    stage C[i:24, j:24] = select(j <= i, A[i, j], -inff);
    stage M[i:24] = max(j:24) C[i, j];
    stage E[i:24, j:24] = exp(C[i, j] - M[i]);
    stage Z[i:24] = sum(j:24) E[i, j];
    result Y[i:24, j:24] = E[i, j] / Z[i];
  })");
  check_function(function({x}, call("negative", {y})), {.least_variants = 2});
}

TEST(FusedPrograms, NoStagesBesideAnAnchor) {
  const Expr x = var("x", {8, 24});
  const Expr y = call("nn.matmul", {program_call({x}, norm_text(8, 24)), weights({24, 32})});
  EXPECT_FALSE(check_supported(function({x}, y)));
}

TEST(FusedPrograms, IndicesThatOverflowInWhatComputesThemAreRefused) {
  // Of a parameter nothing need be known; of a sum it has to be that it does not overflow.
  const Expr x = var("x", {9}), n = var("n", {12}, DType::kInt32);
  const std::string text = R"(program {
    param A: float32[9];
    param N: int32[12];
    stage G[i:12] = A[min(max(N[i], 0), 8)];
    result Y[i:12] = G[i] + G[11 - i];
  })";
  EXPECT_TRUE(emitted_stages(function({x, n}, program_call({x, n}, text))).ok());
  const Function f = function({x, n}, program_call({x, call("add", {n, n})}, text));
  EXPECT_THAT(emitted_stages(f).status().message(), HasSubstr("may overflow"));
}

TEST(FusedPrograms, AScheduleIsKeptWhereTheProgramRunsAlone) {
  const Expr x = var("x", {8, 32});
  const std::string text = R"(program {
    param A: float32[8, 32];
    stage M[i:8] = max(k:32) A[i, k];
    result C[i:8, j:32] = A[i, j] - M[i];
    schedule { M.compute_root(); C.vectorise(j, 8); }
  })";
  EXPECT_FALSE(emitted_stages(function({x}, program_call({x}, text))).ok());
  check_function(function({x}, program_call({x}, text)));
  check_function(function({x}, call("exp", {program_call({x}, text)})));
  check_function(function({x}, program_call({call("exp", {x})}, text)));
}

std::set<std::string> candidates(const Function& f) {
  const DataflowGraph graph(f);
  const auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"native", make_native_rule(), Target{"native", {}, {}}});
  std::set<std::string> labels;
  for (const CandidatePartition& candidate : all_candidates(graph, spec))
    labels.insert(candidate.sub_graph.ops_label(graph));
  return labels;
}

TEST(FusedPrograms, AreCandidatesWithTheirNeighbours) {
  const Expr x = var("x", {8, 24}), w = var("w", {24, 32});
  const Expr y = program_call({call("exp", {x}), w}, product_text(8, 24, 32));
  const Function f = function({x, w}, call("tanh", {program_call({y}, norm_text(8, 32))}));
  const std::set<std::string> fused = candidates(f);
  EXPECT_THAT(fused, Contains("tensor_program"));
  EXPECT_THAT(fused, Contains("exp+tensor_program"));
  EXPECT_THAT(fused, Contains("tensor_program+tanh"));
  EXPECT_THAT(fused, Contains("exp+tensor_program+tensor_program+tanh"));
}

}  // namespace
}  // namespace collage::native
