// Kernels that are calls of tensor programs, as graph functions make them.
#include "backend/native/called_program.h"

#include <gmock/gmock.h>

#include "backend/native/native_rule.h"
#include "check.h"
#include "ir/op.h"
#include "tensor_program/call.h"
#include "tensor_program/external.h"

namespace collage::native {
namespace {

using ::testing::HasSubstr;

TEST(CalledProgram, WithTheScheduleItBrings) {
  const Expr a = var("a", {24, 40}), b = var("b", {40, 64});
  const std::string text = R"(program {
    param A: float32[24, 40];
    param B: float32[40, 64];
    stage P[j1:4, k:40, j0:16] = B[k, j1 * 16 + j0];
    result C[i:24, j:64] = sum(k:40) A[i, k] * P[j / 16, k, j % 16];
    schedule {
      P.compute_root();
      C.vectorise(j, 16);
      C.parallel(i);
    }
  })";
  check_function(function({a, b}, program_call({a, b}, text)));
  check_function(function({b, a}, program_call({a, b}, text)));
  check_function(function({a}, program_call({a, weights({40, 64})}, text)));
}

TEST(CalledProgram, WithoutAScheduleGetsOne) {
  const Expr x = var("x", {6, 50});
  const std::string text = R"(program {
    param A: float32[6, 50];
    const f: float32[2] = {3, -1};
    stage M[i:6] = max(k:50) A[i, k];
    stage E[i:6, j:50] = exp(A[i, j] - M[i]);
    result S[i:6] = sum(k:50) E[i, k];
    result Y[i:6, j:50] = E[i, j] * f[0] + f[1];
  })";
  const Function f = function({x}, program_call({x}, text));
  check_function(f);
  const auto program = called_program(f).value();
  ASSERT_TRUE(program.has_value());
  EXPECT_THAT(program->to_string(), HasSubstr("M.compute_root();"));
  EXPECT_THAT(program->to_string(), HasSubstr("Y.vectorise(j, 16);"));
}

TEST(CalledProgram, LoopsDoNotRunPastArrays) {
  // Inner stages of extents that vectors and splits do not divide: a vector more would be read from
  // beyond A, and stored.
  const Expr x = var("x", {21});
  for (const char* schedule :
       {"", "schedule { P.compute_root(); P.vectorise(j, 16); Y.vectorise(i, 8); }",
        "schedule { P.compute_root(); P.split(j, a, b, 5); P.unroll(b); Y.split(i, a, b, 4); }",
        "schedule { P.compute_at(Y, a); P.vectorise(j, 8); Y.split(i, a, b, 4); }",
        "schedule { S.update(0).vectorise(j, 16); S.compute_root(); S.vectorise(j, 16); }"}) {
    const std::string text = std::string(R"(program {
      param A: float32[21];
      stage P[j:21] = A[j] * 2.0f;
      stage S[j:21] = sum(k:3) P[min(j + k, 20)];
      result Y[i:19] = S[i] + S[i + 2] + P[20 - i];
    )") + schedule + "}";
    SCOPED_TRACE(text);
    check_function(function({x}, program_call({x}, text)));
  }
}

TEST(CalledProgram, ReadsAndWritesWhereClampedDataSay) {
  const Expr x = var("x", {9}), n = var("n", {12}, DType::kInt32);
  const std::string text = R"(program {
    param A: float32[9];
    param N: int32[12];
    stage G[i:12] = A[min(max(N[i], 0), 8)];
    stage H[j:5] = sum(k:2) A[j + k];
    update H[min(max(N[r], 0), 4)] = sum(r:12) G[r];
    result Y[j:5] = H[j];
  })";
  const Function f = function({x, n}, program_call({x, n}, text));
  std::vector<float> values;
  for (int i = 0; i < 9; ++i) values.push_back(static_cast<float>(i * i));
  const std::vector<int32_t> wild{INT32_MIN, INT32_MAX, -1, 0, 1, 4, 5, 8, 9, 1 << 30, -7, 3};
  check_with_inputs(f, {Tensor::from<float>({9}, values), Tensor::from<int32_t>({12}, wild)});
}

TEST(CalledProgram, DividesAsProgramsSay) {
  const Expr a = var("a", {9}, DType::kInt32), b = var("b", {9}, DType::kInt32);
  const std::string text = R"(program {
    param A: int32[9];
    param B: int32[9];
    result Q[i:9] = A[i] / B[i] * 100 + A[i] / -3;
    result R[i:9] = A[i] % B[i] * 100 + A[i] % -3;
    result Z[i:9] = A[i % -4 + 3] + A[i / -2 + 4];
  })";
  const Function f = function({a, b}, program_call({a, b}, text));
  check_with_inputs(f, {Tensor::from<int32_t>({9}, {7, -7, 7, -7, 6, -6, 0, 5, -5}),
                        Tensor::from<int32_t>({9}, {2, 2, -2, -2, -3, 3, -3, 0, 0})});
}

// The least value of a type has no opposite.
TEST(CalledProgram, DividesLeastValues) {
  const auto check = [](DType dtype, const Tensor& a, const Tensor& b) {
    SCOPED_TRACE(dtype_name(dtype));
    const std::string text = fmt::format(R"(program {{
      param A: {0}[8];
      param B: {0}[8];
      result Q[i:8] = A[i] / B[i];
      result R[i:8] = A[i] % B[i];
      result U[i:8] = A[i] / {0}(-3);
      result V[i:8] = A[i] % {0}(-3);
      result W[i:8] = A[i] / {0}(-1);
      result X[i:8] = {0}(-128) / A[i];
      result Y[i:8] = {0}(-128) % A[i];
    }})",
                                         dtype_name(dtype));
    const Expr x = var("a", {8}, dtype), y = var("b", {8}, dtype);
    check_with_inputs(function({x, y}, program_call({x, y}, text)), {a, b}, {.tolerance = 0});
  };
  constexpr int8_t kLow8 = INT8_MIN;
  check(DType::kInt8, Tensor::from<int8_t>({8}, {kLow8, kLow8, kLow8, kLow8, kLow8, 127, -127, 0}),
        Tensor::from<int8_t>({8}, {-3, 3, -1, 0, kLow8, kLow8, kLow8, kLow8}));
  constexpr int32_t kLow32 = INT32_MIN;
  check(DType::kInt32,
        Tensor::from<int32_t>({8}, {kLow32, kLow32, kLow32, kLow32, kLow32, INT32_MAX, -7, 0}),
        Tensor::from<int32_t>({8}, {-3, 3, -1, 0, kLow32, kLow32, kLow32, kLow32}));
  constexpr int64_t kLow64 = INT64_MIN;
  check(DType::kInt64,
        Tensor::from<int64_t>({8}, {kLow64, kLow64, kLow64, kLow64, kLow64, INT64_MAX, -7, 0}),
        Tensor::from<int64_t>({8}, {-3, 3, -1, 0, kLow64, kLow64, kLow64, kLow64}));
}

// A place in a stage that nothing reads, and which is therefore not computed, is none.
TEST(CalledProgram, StagesAtThoseThatNothingReads) {
  const Expr x = var("x", {8});
  for (const char* at : {"P.compute_at(Q, i);", "P.compute_at(Q, i); P.hoist_storage(Q, i);"}) {
    for (const char* stage : {"A[i]", "sum(k:4) A[max(i - k, 0)]"}) {
      const std::string text = fmt::format(R"(program {{
        param A: float32[8];
        stage P[i:8] = {};
        stage Q[i:8] = sum(k:4) P[i];
        result C[i:8] = P[i];
        schedule {{ {} Q.update(0).unroll(k); }}
      }})",
                                           stage, at);
      SCOPED_TRACE(text);
      check_function(function({x}, program_call({x}, text)));
    }
  }
}

// They are summed up as often all the same.
TEST(CalledProgram, SumsWhoseTermsAreAllOne) {
  const Expr x = var("x", {8});
  for (const char* schedule : {"", "schedule { C.update(0).unroll(k); }"}) {
    const std::string text = fmt::format(R"(program {{
      param A: float32[8];
      result C[i:8] = sum(k:4, l:2) A[i];
      result D[i:8] = product(k:4) A[i];
      result E[i:8] = sum(k:4, l:3) A[max(i - k, 0)];
      result F[i:8] = max(k:4) A[i];
      {}
    }})",
                                         schedule);
    SCOPED_TRACE(text);
    check_function(function({x}, program_call({x}, text)));
  }
}

// Elements that no update sets are zero.
TEST(CalledProgram, ResultsOfUpdatesAlone) {
  const Expr x = var("x", {5}), n = var("n", {5}, DType::kInt32);
  const std::string text = R"(program {
    param A: float32[5];
    param N: int32[5];
    result Y[j:20]: float32;
    update Y[r + 10] = set(r:5) A[r];
    result Z[j:3, i:5]: float32;
    update Z[1, i] = set() A[i];
    update Z[2, i] = sum() A[i];
    stage S[j:20]: float32;
    update S[min(max(N[r], 0), 19)] = set(r:5) A[r];
    result T[j:20] = S[j] * 2.0f;
    result B[j:9]: bool;
    update B[r] = set(r:5) A[r] > 0.0f;
  })";
  const Function f = function({x, n}, program_call({x, n}, text));
  check_with_inputs(f, {Tensor::from<float>({5}, {1, -2, 3, 4, 5}),
                        Tensor::from<int32_t>({5}, {3, 3, -1, 40, 7})});
}

TEST(CalledProgram, RefusesWhatItsCodeCannotHold) {
  const auto why = [](const std::string& text, std::vector<Expr> params) {
    const Result<Expr> made = make_call(tensor_program::kCallOp, params, {{"program", text}});
    if (!made.ok()) return made.status().to_string();
    return called_program(function(params, *made)).status().to_string();
  };
  EXPECT_THAT(why("program { param A: float32[4]; result Y[i:4] = A[i + 1]; }", {var("x", {4})}),
              HasSubstr("the index i + 1 runs from 1 to 4"));
  EXPECT_THAT(why("program { param A: float32[4]; result Y[i:40000, j:40000] = A[i % 4]; }",
                  {var("x", {4})}),
              HasSubstr("native: Y has more than 2147483647 bytes"));
  std::string chain = "program { param A: float32[4]; stage s0[i:4] = A[i];";
  for (int i = 1; i < 300; ++i) chain += fmt::format("stage s{}[i:4] = s{}[i] + 1.0f;", i, i - 1);
  EXPECT_THAT(why(chain + "result Y[i:4] = s299[i]; }", {var("x", {4})}),
              HasSubstr("native: a tensor program of 301 stages"));
}

TEST(CalledProgram, CallsFunctionsOfLibraries) {
  tensor_program::register_external(
      "test.negate",
      [](std::span<const TensorType> types) -> Result<TensorType> { return types[0]; },
      [](std::span<const DLTensor> inputs, const DLTensor& to) -> Status {
        for (int64_t i = 0; i < to.shape[0]; ++i)
          static_cast<float*>(to.data)[i] = -static_cast<const float*>(inputs[0].data)[i];
        return {};
      });
  const Expr x = var("x", {33});
  check_function(function({x}, program_call({x}, R"(program {
    param A: float32[33];
    stage T[i:33] = A[i] + 1.0f;
    stage N[i:33] = extern "test.negate"(T): float32;
    result Y[i:33] = N[i] * N[i];
  })")));
  // Rows and columns are where the text has them.
  tensor_program::register_external(
      "test.add_row",
      [](std::span<const TensorType> types) -> Result<TensorType> { return types[0]; },
      [](std::span<const DLTensor> inputs, const DLTensor& to) -> Status {
        for (int64_t i = 0; i < to.shape[0]; ++i)
          for (int64_t j = 0; j < to.shape[1]; ++j)
            static_cast<float*>(to.data)[i * to.shape[1] + j] =
                static_cast<const float*>(inputs[0].data)[i * inputs[0].shape[1] + j] +
                static_cast<float>(i);
        return {};
      });
  const Expr y = var("y", {3, 11});
  check_function(function({y}, program_call({y}, R"(program {
    param A: float32[3, 11];
    result Y[i:3, j:11] = extern "test.add_row"(A): float32;
  })")));
}

TEST(CalledProgram, CallsFunctionsWithScalars) {
  tensor_program::register_external(
      "test.scale",
      [](std::span<const TensorType> types) -> Result<TensorType> { return types[1]; },
      [](std::span<const DLTensor> inputs, const DLTensor& to) -> Status {
        if (inputs[0].ndim != 0 || inputs[1].ndim != 1 || to.ndim != 1)
          return internal_error("arrays of other ranks");
        for (int64_t i = 0; i < to.shape[0]; ++i)
          static_cast<float*>(to.data)[i] = *static_cast<const float*>(inputs[0].data) *
                                            static_cast<const float*>(inputs[1].data)[i];
        return {};
      });
  tensor_program::register_external(
      "test.total",
      [](std::span<const TensorType> types) -> Result<TensorType> {
        return TensorType{{}, types[0].dtype};
      },
      [](std::span<const DLTensor> inputs, const DLTensor& to) -> Status {
        if (to.ndim != 0) return internal_error("an array of another rank");
        float& total = *static_cast<float*>(to.data) = 0;
        for (int64_t i = 0; i < inputs[0].shape[0]; ++i)
          total += static_cast<const float*>(inputs[0].data)[i];
        return {};
      });
  const Expr s = var("s", {}), x = var("x", {4});
  check_function(function({s, x}, program_call({s, x}, R"(program {
    param s: float32[];
    param A: float32[4];
    result C[i:4] = extern "test.scale"(s, A): float32;
  })")));
  check_function(function({x}, program_call({x}, R"(program {
    param A: float32[4];
    stage t[] = extern "test.total"(A): float32;
    result C[i:4] = extern "test.scale"(t, A): float32;
  })")));
}

TEST(CalledProgram, IsACandidateOfItsOwn) {
  const Expr x = var("x", {8});
  const Expr y = program_call({call("exp", {x})},
                              "program { param A: float32[8]; result C[i:8] = A[i] * 2.0f; }");
  const DataflowGraph graph(function({x}, call("tanh", {y})));
  const auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"native", make_native_rule(), Target{"native", {}, {}}});
  std::vector<std::string> with_program;
  for (const CandidatePartition& candidate : all_candidates(graph, spec))
    if (candidate.sub_graph.ops_label(graph).find("tensor_program") != std::string::npos)
      with_program.push_back(candidate.sub_graph.ops_label(graph));
  EXPECT_THAT(with_program, ::testing::Contains("tensor_program"));
}

}  // namespace
}  // namespace collage::native
