// Programs on cpu:0 and on a CPU device beside it, which is cores of this machine.
#include <collage/functions.h>
#include <gmock/gmock.h>
#include <sched.h>

#include <fstream>
#include <mutex>
#include <set>

#include "compiler/compile.h"
#include "compiler/compile_fixture.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::set<int> cores_of_thread() {
  cpu_set_t own;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  std::set<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &own)) cores.insert(core);
  return cores;
}

// Where threads called the functions of each label.
std::mutex mutex;
std::map<std::string, std::set<std::set<int>>> called;

void register_doubling(const std::string& label) {
  FunctionDefinition made;
  made.label = label;
  made.types = [](std::span<const ArrayType> inputs) -> Result<std::vector<ArrayType>> {
    return std::vector<ArrayType>{inputs[0]};
  };
  made.call = [label](std::span<const Tensor> inputs, std::span<Tensor> results) -> Status {
    const std::lock_guard lock(mutex);
    called[label].insert(cores_of_thread());
    for (int64_t i = 0; i < inputs[0].size(); ++i)
      results[0].data<float>()[i] = 2 * inputs[0].data<float>()[i];
    return {};
  };
  ASSERT_TRUE(register_function(std::move(made)).ok());
}

constexpr const char* kTwoDevices = R"(#[version = "0.0.5"]
program @here { param a: float32[5]; result b[i:5] = extern "cores.here"(a): float32; }
program @there { param a: float32[5]; result b[i:5] = extern "cores.there"(a): float32; }
def @main(%x: Tensor[(5), float32]) {
  %0 = on_device(@there(%x), device="little");
  %1 = on_device(@here(%x), device="cpu:0");
  %2 = on_device(exp(%1), device="little");
  (%0, %1, %2)
}
)";

class OnCores : public testing::CompileTest {
 protected:
  static void SetUpTestSuite() {
    register_doubling("cores.here");
    register_doubling("cores.there");
  }
  void SetUp() override {
    core_ = std::to_string(*cores_of_thread().rbegin());
    options_.targets = {"native", "native -device=little"};
    options_.devices = "cpu:0, little=cpu:1@" + core_;
    std::ofstream(folder_ / "two.relay") << kTwoDevices;
  }
  static std::vector<float> run(Program& program) {
    const std::vector<Tensor> inputs{Tensor::from<float>({5}, {0, 1, -1, 2, 0.5f})};
    called.clear();
    const Result<std::vector<Tensor>> outputs = program.run(inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
    if (!outputs) return {};
    std::vector<float> values;
    for (const Tensor& output : *outputs) values.push_back(output.data<float>()[1]);
    return values;
  }
  Result<Program> compile() {
    return Program::compile(TRY(Model::load(folder_ / "two.relay")), options_);
  }

  std::string core_;
};

TEST_F(OnCores, KernelsRunWhereTheTextPlacesThem) {
  Result<Program> program = compile();
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_THAT(run(*program), ElementsAre(2.f, 2.f, std::exp(2.f)));
  EXPECT_THAT(called["cores.there"], ElementsAre(std::set<int>{std::stoi(core_)}));
  EXPECT_THAT(called["cores.here"], ElementsAre(cores_of_thread()));
  std::vector<std::string> targets;
  for (const Step& step : program->impl().plan->steps) targets.push_back(step.target);
  const std::string little = "native -device=cpu:1 -cores=" + core_;
  EXPECT_EQ(targets.size(), 3u);  // and no copies
  EXPECT_EQ(std::count(targets.begin(), targets.end(), little), 2);
}

TEST_F(OnCores, ContextsRunAtOnce) {
  Result<Program> program = compile();
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_TRUE(program->make_context().ok());
}

}  // namespace
}  // namespace collage
