// Models so deep that they carry roundings further than any tolerance: what their own reference
// moves when numbers change in their last places is allowed, the most accurate cover is taken, and
// the user is told. What is wrong by more is refused all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "backend/targets/backends.h"
#include "base/log.h"
#include "compiler/compile.h"
#include "ir/op.h"
#include "ops/interpreter.h"
#include "verify/reference_check.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

Expr call(const char* op, std::vector<Expr> args) { return make_call(op, std::move(args)).value(); }

// Layers x = tanh(gain W x): each multiplies small differences by about the gain.
Function network(int layers, float gain) {
  register_all();
  constexpr int64_t kWidth = 48;
  Expr x = make_var("x", TensorType{{2, kWidth}, DType::kFloat32});
  const Expr input = x;
  for (int layer = 0; layer < layers; ++layer) {
    Tensor weights =
        synthetic_constant({{kWidth, kWidth}, DType::kFloat32}, static_cast<uint64_t>(layer) + 1)
            .value();
    const float size = gain / std::sqrt(2.0f);  // rows have a norm of the root of 2
    for (int64_t i = 0; i < weights.size(); ++i) weights.data<float>()[i] *= size;
    x = call("tanh", {call("nn.dense", {x, make_constant(weights)})});
  }
  return make_function({input}, x);
}

// The same numbers as a kernel that adds up in another order would give.
std::vector<Tensor> in_other_order(const Function& function, const std::vector<Tensor>& inputs) {
  return interpret(function, inputs,
                   [](const CallNode& call,
                      std::span<const Tensor> given) -> Result<std::vector<Tensor>> {
                     if (call.op->name != "nn.dense") return evaluate_call(call, given);
                     Tensor result = Tensor::empty(DType::kFloat32, call.tensor_type().shape);
                     const int64_t units = given[1].shape()[0], terms = given[1].shape()[1];
                     for (int64_t i = 0; i < result.size(); ++i) {
                       float sum = 0;
                       for (int64_t k = terms; k-- > 0;)
                         sum += given[0].data<float>()[i / units * terms + k] *
                                given[1].data<float>()[i % units * terms + k];
                       result.data<float>()[i] = sum;
                     }
                     return std::vector<Tensor>{result};
                   })
      .value();
}

TEST(DeepModels, MayErrByWhatTheirReferenceMoves) {
  const Function deep = network(34, 3);
  ReferenceCheck reference(deep);
  const ReferenceInputs& asked = reference.seeded().value()[0];
  const Tensor honest = in_other_order(deep, asked.inputs)[0];
  ASSERT_FALSE(compare_tensors(honest, asked.expected[0], model_tolerance()).within)
      << "it is deep enough";
  const Difference difference = reference.compare(asked, 0, honest, model_tolerance()).value();
  EXPECT_TRUE(difference.within) << difference.reason;
  EXPECT_TRUE(difference.excused);
  Tensor wrong = asked.expected[0].clone();
  for (int64_t i = 0; i < wrong.size(); ++i) wrong.data<float>()[i] *= 0.5f;
  EXPECT_FALSE(reference.compare(asked, 0, wrong, model_tolerance()).value().within);
}

TEST(DeepModels, ThatCarryLittleMayErrByNoMoreThanOthers) {
  const Function shallow = network(3, 1);
  ReferenceCheck reference(shallow);
  const ReferenceInputs& asked = reference.seeded().value()[0];
  Tensor wrong = asked.expected[0].clone();
  for (int64_t i = 0; i < wrong.size(); ++i) wrong.data<float>()[i] *= 1.01f;
  EXPECT_FALSE(reference.compare(asked, 0, wrong, model_tolerance()).value().within);
  const Tensor honest = in_other_order(shallow, asked.inputs)[0];
  EXPECT_FALSE(reference.compare(asked, 0, honest, model_tolerance()).value().excused);
}

TEST(DeepModels, CompileByTheMostAccurateCoverWithAWarning) {
  const Module deep(network(40, 3));
  if (find_backend("native") == nullptr) GTEST_SKIP() << "native is not built";
  const fs::path folder =
      fs::temp_directory_path() / ("collage_deep_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  ::setenv("COLLAGE_CACHE", folder.c_str(), 1);
  ProgramOptions options;
  options.targets = {"native"};
  options.threads = 1;
  options.effort = Effort::kFast;
  options.always_measure = true;
  options.worker = fs::read_symlink("/proc/self/exe");
  std::ostringstream text;
  const spdlog::sink_ptr sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text);
  log::logger().sinks().push_back(sink);
  const Result<Program> program = Program::compile(model_of(deep), options);
  std::erase(log::logger().sinks(), sink);
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_THAT(text.str(), ::testing::HasSubstr("makes much of the last digits"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace collage
