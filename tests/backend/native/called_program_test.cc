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

using testing::HasSubstr;

class CalledProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (find_op(tensor_program::kCallOp) == nullptr) tensor_program::register_call_op();
  }
};

Expr program_call(std::vector<Expr> args, const std::string& text) {
  return call(tensor_program::kCallOp, std::move(args), {{"program", text}});
}

TEST_F(CalledProgram, WithTheScheduleItBrings) {
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

TEST_F(CalledProgram, WithoutAScheduleGetsOne) {
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

TEST_F(CalledProgram, CallsFunctionsOfLibraries) {
  tensor_program::register_external(
      {"test.negate",
       [](std::span<const TensorType> types) -> Result<TensorType> { return types[0]; },
       [](std::span<const DLTensor> inputs, const DLTensor& to) -> Status {
         for (int64_t i = 0; i < to.shape[0]; ++i)
           static_cast<float*>(to.data)[i] = -static_cast<const float*>(inputs[0].data)[i];
         return {};
       }});
  const Expr x = var("x", {33});
  check_function(function({x}, program_call({x}, R"(program {
    param A: float32[33];
    stage T[i:33] = A[i] + 1.0f;
    stage N[i:33] = extern "test.negate"(T): float32;
    result Y[i:33] = N[i] * N[i];
  })")));
}

TEST_F(CalledProgram, IsACandidateOfItsOwn) {
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
  EXPECT_THAT(with_program, testing::ElementsAre("tensor_program"));
}

}  // namespace
}  // namespace collage::native
