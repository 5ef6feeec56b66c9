// Kernels that lie (measure/lies.h) are in no program, whether they do so where they are measured
// or only in the program itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "compiler/compile.h"
#include "compiler/compile_fixture.h"
#include "measure/lies.h"
#include "ops/cases.h"
#include "ops/interpreter.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class LyingPrograms : public testing::CompileTest {
 protected:
  // Compiled with a backend whose only variant lies so; whether it is in the program.
  bool is_chosen(const Model& model, const std::string& lie) {
    ProgramOptions options = options_;
    options.targets = {"faulty -only=1 " + lie, "reference"};
    options.always_measure = true;
    options.effort = Effort::kFast;
    Result<Program> program = Program::compile(model, options);
    EXPECT_TRUE(program.ok()) << lie << ": " << program.status().to_string();
    if (!program) return true;
    const Function& main = model.impl().module.main();
    const std::vector<Tensor> inputs = synthetic_inputs(main, 5).value();
    const Difference difference = compare_tensors(
        program->run(inputs).value()[0], interpret(main, inputs).value()[0], model_tolerance());
    EXPECT_TRUE(difference.within) << lie << ": " << difference.reason;
    const auto& kernels = program->impl().report.kernels;
    return std::any_of(kernels.begin(), kernels.end(),
                       [](const auto& kernel) { return kernel.target != "reference"; });
  }

  Model model(const std::string& op) {
    std::ofstream(folder_ / "model.relay")
        << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(8, 33), float32]) {\n  " << op
        << "(%x)\n}\n";
    return Model::load(folder_ / "model.relay").value();
  }
};

TEST_F(LyingPrograms, AreNotChosen) {
  const std::vector<testing::Lie> lies = testing::all_lies();
  for (size_t i = 0; i < lies.size(); ++i)
    for (const char* where : {"", " -at=run_in_the_program"}) {
      if (lies[i].of_memory && *where != '\0') continue;  // it is seen on guarded memory alone
      const std::string lie = "-fault=lie" + std::to_string(i) + where;
      EXPECT_FALSE(is_chosen(model("tanh"), lie)) << lies[i].name << where;
    }
}

// The operator's smallest case whose first result is float32.
Function smallest_case(const std::string& op) {
  Function smallest;
  int64_t least = 0;
  for (const OpCase& op_case : op_cases(op)) {
    const Function function = build_case(op_case, 3).value().function;
    const TensorType result = function->result_type().leaves()[0];
    const int64_t size = num_elements(result.shape);
    if (result.dtype != DType::kFloat32 || size < 16 || (smallest && size >= least)) continue;
    smallest = function;
    least = size;
  }
  return smallest;
}

// Of other families, in the program itself: where it is measured each is right.
TEST_F(LyingPrograms, OfEachFamilyAreNotChosen) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nn.dense", "shifted by a hundredth"},
      {"nn.conv2d", "one row is reversed"},
      {"nn.batch_matmul", "transposed"},
      {"nn.max_pool2d", "the tail is lost"},
      {"nn.softmax", "rounded to bfloat16"},
      {"nn.layer_norm", "small ones are lost"},
      {"sum", "wrong in every other run"},
      {"cumsum", "transposed"},
      {"image.resize2d", "a constant beside outliers"},
      {"add", "one row is reversed"},
      {"nn.lstm", "shifted by a hundredth"},
  };
  const std::vector<testing::Lie> lies = testing::all_lies();
  for (const auto& [op, name] : cases) {
    SCOPED_TRACE(op + ": " + name);
    const auto lie = std::find_if(lies.begin(), lies.end(),
                                  [&name = name](const auto& l) { return l.name == name; });
    ASSERT_NE(lie, lies.end());
    const Function function = smallest_case(op);
    ASSERT_TRUE(function);
    const int before = testing::lies_told();
    EXPECT_FALSE(is_chosen(
        model_of(Module(function)),
        "-op=" + op + " -at=run_in_the_program -fault=lie" + std::to_string(lie - lies.begin())));
    EXPECT_GT(testing::lies_told(), before) << "nobody asked it";
  }
}

}  // namespace
}  // namespace collage
