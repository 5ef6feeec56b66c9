// Kernels that lie (measure/lies.h) are in no program, whether they do so where they are measured
// or only in the program itself.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compiler/compile.h"
#include "compiler/compile_fixture.h"
#include "measure/lies.h"
#include "ops/interpreter.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class LyingPrograms : public testing::CompileTest {
 protected:
  // Compiled with a backend whose only variant lies so; the target of the kernel chosen.
  std::string chosen(const Model& model, const std::string& lie) {
    ProgramOptions options = options_;
    options.targets = {"faulty -only=1 " + lie, "reference"};
    options.always_measure = true;
    options.effort = Effort::kFast;
    Result<Program> program = Program::compile(model, options);
    EXPECT_TRUE(program.ok()) << lie << ": " << program.status().to_string();
    if (!program) return "";
    const Function& main = model.impl().module.main();
    const std::vector<Tensor> inputs = synthetic_inputs(main, 5).value();
    const Difference difference = compare_tensors(
        program->run(inputs).value()[0], interpret(main, inputs).value()[0], model_tolerance());
    EXPECT_TRUE(difference.within) << lie << ": " << difference.reason;
    return program->impl().report.kernels.at(0).target;
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
      EXPECT_EQ(chosen(model("tanh"), lie), "reference") << lies[i].name << where;
    }
}

}  // namespace
}  // namespace collage
