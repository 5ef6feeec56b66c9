// Programs whose inputs and outputs are in the memory of the simulated accelerator.
#include <collage/collage.h>
#include <collage/device.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "collage/module.h"
#include "runtime/device_memory.h"
#include "simulated/memory.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DeviceTensors : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_device_tensors_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Program compiled(const std::string& body, std::vector<std::string> targets) const {
    ProgramOptions options;
    options.targets = std::move(targets);
    options.threads = 1;
    options.effort = Effort::kFast;
    options.database = folder_ / "costs.db";
    options.worker = fs::read_symlink("/proc/self/exe");
    const Result<Model> model = parse_model("def @main(%x: Tensor[(5), float32]) {\n" + body + "}");
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    Result<Program> program = Program::compile(*model, options);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    return *std::move(program);
  }
  static size_t copies() {
    size_t count = 0;
    for (const int id : {0, 1})
      count += static_cast<simulated::Memory*>(find_device_memory({"simulated", id, ""}))->copies();
    return count;
  }
  static Tensor on(const std::string& device, std::vector<float> values = {0, 1, -1, 2, 0.5F}) {
    return copy_to(device, Tensor::from<float>({5}, values)).value();
  }
  static std::vector<float> values_of(const Tensor& tensor) {
    const Tensor host = copy_to("cpu", tensor).value();
    return {host.values<float>().begin(), host.values<float>().end()};
  }
  // Runs it; the copies that it made.
  static size_t run(Program& program, const Tensor& input, std::vector<Tensor>& outputs) {
    const size_t before = copies();
    const Status status = program.run({input}, outputs);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return copies() - before;
  }
  static ::testing::Matcher<std::vector<float>> are(float (*function)(float)) {
    std::vector<::testing::Matcher<float>> each;
    for (const float x : {0.F, 1.F, -1.F, 2.F, 0.5F})
      each.push_back(::testing::FloatNear(function(x), 1e-5F));
    return ::testing::ElementsAreArray(each);
  }

  fs::path folder_;
};

float tanh_of_exp(float x) { return std::tanh(std::exp(x)); }
float exp_of(float x) { return std::exp(x); }
float same(float x) { return x; }

TEST_F(DeviceTensors, AreUsedInPlace) {
  Program program = compiled("  tanh(exp(%x))\n", {"simulated"});
  for (int round = 0; round < 2; ++round) {  // one after the other in one program
    std::vector<Tensor> outputs;
    EXPECT_EQ(run(program, on("cpu"), outputs), 2U);
    EXPECT_THAT(values_of(outputs[0]), are(tanh_of_exp));
    const Tensor x = on("simulated:0");
    outputs = {on("simulated:0")};
    EXPECT_EQ(run(program, x, outputs), 0U);
    EXPECT_THAT(values_of(outputs[0]), are(tanh_of_exp));
    EXPECT_THAT(values_of(x), are(same));
    outputs.clear();
    EXPECT_EQ(run(program, x, outputs), 1U);  // given on the host
    EXPECT_EQ(device_of(outputs[0]), "cpu");
    EXPECT_THAT(values_of(outputs[0]), are(tanh_of_exp));
  }
}

TEST_F(DeviceTensors, FeedTheNextProgram) {
  Program first = compiled("  exp(%x)\n", {"simulated"}),
          next = compiled("  tanh(%x)\n", {"simulated"});
  const Tensor x = on("simulated:0");
  std::vector<Tensor> between = {on("simulated:0")}, outputs = {on("simulated:0")};
  EXPECT_EQ(run(first, x, between) + run(next, between[0], outputs), 0U);
  EXPECT_THAT(values_of(between[0]), are(exp_of));
  EXPECT_THAT(values_of(outputs[0]), are(tanh_of_exp));
}

TEST_F(DeviceTensors, AreCopiedWhereTheyAreUsedElsewhere) {
  Program host = compiled("  tanh(exp(%x))\n", {"reference"});
  Program both = compiled(
      "  (on_device(exp(%x), device=\"simulated:0\"), %x,\n"
      "   tanh(on_device(exp(%x), device=\"cpu\")))\n",
      {"simulated -device=simulated:0", "native"});
  for (const std::string from : {"simulated:0", "simulated:1", "simulated:0/scratch", "cpu"})
    for (const std::string to : {"simulated:0", "simulated:1", "cpu"}) {
      SCOPED_TRACE(from + " " + to);
      std::vector<Tensor> outputs = {on(to)};
      run(host, on(from), outputs);
      EXPECT_EQ(device_of(outputs[0]), to);
      EXPECT_THAT(values_of(outputs[0]), are(tanh_of_exp));
      outputs = {on(to), on(to), on(to)};
      run(both, on(from), outputs);
      EXPECT_THAT(values_of(outputs[0]), are(exp_of));
      EXPECT_THAT(values_of(outputs[1]), are(same));
      EXPECT_THAT(values_of(outputs[2]), are(tanh_of_exp));
    }
}

TEST_F(DeviceTensors, ErrorsAreOneLine) {
  const auto why = [](const std::string& device) {
    return allocate_on(device, DType::kFloat32, {5}).status().to_string();
  };
  EXPECT_EQ(why("simulated:x"), "'simulated:x' is no device, such as gpu:0");
  EXPECT_EQ(why(""), "'' is no device, such as gpu:0");
  EXPECT_THAT(why("simulated:7"), HasSubstr("no backend offers memory of the device simulated:7"));
  Program program = compiled("  exp(%x)\n", {"simulated"});
  std::vector<Tensor> outputs;
  const Tensor wrong = allocate_on("simulated:0", DType::kFloat32, {6}).value();
  EXPECT_THAT(program.run({wrong}, outputs).to_string(),
              HasSubstr("input 'x': expected float32 (5), got float32 (6)"));
  const Tensor x = on("simulated:0");
  outputs = {x};
  EXPECT_THAT(program.run({x}, outputs).to_string(),
              HasSubstr("its memory overlaps that of input 'x'"));
}

}  // namespace
}  // namespace collage
