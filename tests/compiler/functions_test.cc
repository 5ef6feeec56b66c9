// Functions that the application registers, which no other process has: models that call them are
// compiled by what this process knows, and nothing of them is kept for others.
#include <collage/functions.h>
#include <collage/operators.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "compiler/compile.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::atomic<int> calls{0};
std::atomic<bool> throws{false};

// A vector, times three and negated.
Status triple(std::span<const Tensor> inputs, std::span<Tensor> results) {
  ++calls;
  if (throws) throw std::runtime_error("not today");
  const auto* x = inputs[0].data<float>();
  for (int64_t i = 0; i < inputs[0].size(); ++i)
    for (size_t r = 0; r < results.size(); ++r)
      results[r].data<float>()[i] = (r == 0 ? 3 : -1) * x[i];
  return {};
}

FunctionDefinition definition(const std::string& label, size_t results) {
  FunctionDefinition made;
  made.label = label;
  made.types = [results](std::span<const ArrayType> inputs) -> Result<std::vector<ArrayType>> {
    if (inputs.size() != 1 || inputs[0].shape.size() != 1)
      return Status(ErrorCode::kBadModel, "takes a vector");
    return std::vector<ArrayType>(results, inputs[0]);
  };
  made.call = triple;
  return made;
}

class Functions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(register_function(definition("local.one", 1)).ok());
    ASSERT_TRUE(register_function(definition("local.two", 2)).ok());
  }
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_functions_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    throws = false;
    fs::remove_all(folder_);
  }

  Result<Model> load(const std::string& label, const std::string& result) {
    std::ofstream(folder_ / "model.relay")
        << "#[version = \"0.0.5\"]\nextern @f(Tensor[(5), float32]) = \"" << label
        << "\";\ndef @main(%x: Tensor[(5), float32]) {\n  %0 = @f(exp(%x));\n  " << result
        << "\n}\n";
    return Model::load(folder_ / "model.relay");
  }
  ProgramOptions on(const std::string& target, Effort effort = Effort::kFast) {
    ProgramOptions options;
    options.targets = {target};
    options.effort = effort;
    options.always_measure = true;
    options.database = folder_ / "costs.db";
    options.worker = fs::read_symlink("/proc/self/exe");
    return options;
  }

  fs::path folder_;
};

const std::vector<Tensor>& inputs() {
  static const std::vector<Tensor> x{Tensor::from<float>({5}, {0, 0, 0, 0, 0})};
  return x;
}

TEST_F(Functions, AreCalledByCompiledPrograms) {
  for (const std::string target : {"native", "reference"}) {
    SCOPED_TRACE(target);
    const Result<Model> one = load("local.one", "tanh(%0)");
    ASSERT_TRUE(one.ok()) << one.status().to_string();
    for (const Effort effort : {Effort::kFast, Effort::kMax}) {
      Result<Program> program = Program::compile(*one, on(target, effort));
      ASSERT_TRUE(program.ok()) << program.status().to_string();
      calls = 0;
      const Result<std::vector<Tensor>> results = program->run(inputs());
      ASSERT_TRUE(results.ok()) << results.status().to_string();
      EXPECT_NEAR(results->at(0).data<float>()[4], std::tanh(3.0f), 1e-5);
      EXPECT_EQ(calls, 1);
    }
    const Result<Model> two = load("local.two", "(%0.1, tanh(%0.0))");
    ASSERT_TRUE(two.ok()) << two.status().to_string();
    Result<Program> program = Program::compile(*two, on(target));
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    const Result<std::vector<Tensor>> results = program->run(inputs());
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    EXPECT_THAT(results->at(0).values<float>(), ElementsAre(-1, -1, -1, -1, -1));
  }
  // Another process may know another function by the label.
  std::ifstream database(folder_ / "costs.db", std::ios::binary);
  std::stringstream kept;
  kept << database.rdbuf();
  EXPECT_THAT(kept.str(), HasSubstr("tanh"));
  EXPECT_THAT(kept.str(), Not(HasSubstr("local.")));
}

TEST_F(Functions, EndARunByAnException) {
  for (const std::string target : {"native", "reference"}) {
    SCOPED_TRACE(target);
    Result<Program> program = Program::compile(load("local.one", "%0").value(), on(target));
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    throws = true;
    const Result<std::vector<Tensor>> results = program->run(inputs());
    EXPECT_THAT(results.status().to_string(),
                HasSubstr("local.one: threw an exception: not today"));
    throws = false;
    EXPECT_TRUE(program->run(inputs()).ok());
  }
}

// Neither an operator nor a function has to be a node of ONNX.
TEST_F(Functions, AreRegisteredBesideOperators) {
  const Status defined =
      define_operator({.name = "local.copy",
                       .program = "program (n) { param X: float32[n]; result Y[i:n] = X[i]; }"});
  ASSERT_TRUE(defined.ok()) << defined.to_string();
  const Status registered = register_function(definition("local.after", 1));
  EXPECT_TRUE(registered.ok()) << registered.to_string();
  // Those of one node exclude each other.
  ASSERT_TRUE(define_operator({.name = "local.node",
                               .onnx = "local::Node",
                               .program = "program (n) { param X: float32[n]; result Y[i:n] = "
                                          "X[i]; }"})
                  .ok());
  FunctionDefinition same = definition("local.same", 1);
  same.onnx = "local::Node";
  EXPECT_THAT(register_function(same).to_string(), HasSubstr("its ONNX node is taken"));
}

TEST_F(Functions, OfAFamilyAreMadeWhenTheyAreFirstNamed) {
  static std::vector<std::string> asked;  // as long as the family
  const auto make = [](const std::string& label) -> Result<FunctionDefinition> {
    asked.push_back(label);
    if (label != "family.known") return Status(ErrorCode::kUnsupported, "not in the family");
    FunctionDefinition made = definition("", 1);
    made.open_attributes = true;
    return made;
  };
  ASSERT_TRUE(register_functions("family.", make).ok());
  EXPECT_THAT(register_functions("family.", make).to_string(), HasSubstr("taken"));
  ASSERT_TRUE(register_function(definition("family.own", 1)).ok());
  EXPECT_THAT(asked, ElementsAre());
  EXPECT_TRUE(load("family.own", "%0").ok());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(load("family.known", "%0").ok());
  EXPECT_THAT(asked, ElementsAre("family.known"));
  EXPECT_THAT(load("family.other", "%0").status().to_string(),
              HasSubstr("family.other: not in the family"));
  EXPECT_THAT(load("families.other", "%0").status().to_string(), HasSubstr("there is no external"));
  EXPECT_THAT(asked, Each(StartsWith("family.")));
}

TEST_F(Functions, AreWhatFurtherNodesMean) {
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(register_node("local::Further", "local.one").to_string(), Status().to_string());
  EXPECT_THAT(register_node("local::Further", "local.two").to_string(),
              HasSubstr("nodes local::Further have a meaning already"));
  EXPECT_THAT(register_node("Further", "local.one").to_string(), HasSubstr("no node's name"));
  EXPECT_THAT(register_node("local::None", "local.none").to_string(),
              HasSubstr("there is no external function 'local.none'"));
}

TEST_F(Functions, AreRefused) {
  const auto why = [](FunctionDefinition wrong) {
    const Status status = register_function(std::move(wrong));
    EXPECT_EQ(status.code(), ErrorCode::kUsage);
    return status.to_string();
  };
  EXPECT_THAT(why(definition("local.one", 1)), HasSubstr("is taken"));
  EXPECT_THAT(why(definition("cblas sgemm", 1)), HasSubstr("no function's label"));
  FunctionDefinition none;
  none.label = "local.none";
  EXPECT_THAT(why(none), HasSubstr("nothing to call"));
  FunctionDefinition node = definition("local.node", 1);
  node.onnx = "Node";
  EXPECT_THAT(why(node), HasSubstr("domain::Operator"));
  EXPECT_THAT(load("local.absent", "%0").status().to_string(),
              HasSubstr("there is no external function 'local.absent'"));
}

}  // namespace
}  // namespace collage
