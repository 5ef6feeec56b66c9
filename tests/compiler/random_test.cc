// Random numbers of programs: others in every run, the same sequence of them from every program,
// context and artifact, and where programs are checked always those of the first run.
#include <collage/program.h>

#include "compiler/given_model.h"
#include "report/report.h"
#include "report/save_program.h"

namespace collage {
namespace {

using Values = std::vector<float>;

Values values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

class RandomNumbers : public testing::GivenModel {
 protected:
  RandomNumbers()
      : GivenModel(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(64), float32]) {
  add(%x, random.normal(5i64, random.run(), shape=[64]))
}
)") {}
  void SetUp() override {
    GivenModel::SetUp();
    options_.targets = {"reference", "native"};
  }

  template <typename Runnable>
  static Values drawn(Runnable& program) {
    Result<std::vector<Tensor>> outputs = program.run({Tensor::zeros(DType::kFloat32, {64})});
    EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
    return outputs.ok() ? values_of((*outputs)[0]) : Values();
  }
};

TEST_F(RandomNumbers, AreOthersInEveryRunAndTheSameSequenceAlways) {
  const Model model = model_of(given_);
  Result<Program> program = compile_model(model, options_), again = compile_model(model, options_);
  ASSERT_TRUE(program.ok() && again.ok()) << program.status().to_string();
  const Values first = drawn(*program), second = drawn(*program);
  EXPECT_NE(first, second);
  EXPECT_EQ(drawn(*again), first);
  EXPECT_EQ(drawn(*again), second);
  Result<Context> context = program->make_context();
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(drawn(*context), first);
  EXPECT_EQ(drawn(*context), second);

  const std::filesystem::path file = folder_ / "random.collage";
  const nlohmann::json report = report_json(model, program->impl().report, RunFacts{});
  const Status saved = save_program(*program, model, report, file);
  ASSERT_TRUE(saved.ok()) << saved.to_string();
  Result<Program> artifact = Program::load(file);
  ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
  Result<Context> loaded = artifact->make_context();
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(drawn(*loaded), first);
  EXPECT_EQ(drawn(*loaded), second);
}

// As whoever compares with the interpreter relies on.
TEST_F(RandomNumbers, AreThoseOfTheFirstRunWhereNobodyCounts) {
  Result<Program> program = compile_model(model_of(given_), options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const Values first = drawn(*program);
  drawn(*program);
  const std::vector<Tensor> inputs = {Tensor::zeros(DType::kFloat32, {64})};
  std::vector<Tensor> outputs(1);
  ASSERT_TRUE(program->impl().executor->run(inputs, outputs).ok());
  EXPECT_EQ(values_of(outputs[0]), first);
}

}  // namespace
}  // namespace collage
