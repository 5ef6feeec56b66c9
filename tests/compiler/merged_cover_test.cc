// Merging after the search, by measured costs: the merged cover is timed beside the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "backend/targets/backends.h"
#include "compiler/compile.h"
#include "ops/interpreter.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

// Two products in a row, each a kernel of its own by the configuration's rule.
constexpr const char* kMergedModel = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(64, 64), float32], %a: Tensor[(64, 64), float32]) {
  %0 = nn.matmul(%x, %a);
  nn.matmul(%0, %a)
}
)";

TEST(MergedCover, IsTimedBesideTheOthers) {
  register_all();
  if (find_backend("openvino") == nullptr || !find_backend("openvino")->available().ok())
    GTEST_SKIP() << "openvino is not here";
  fs::path folder = fs::temp_directory_path() / ("collage_merged_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "model.relay") << kMergedModel;
  Model model = Model::load(folder / "model.relay").value();
  const Function& main = model.impl().module.main();
  std::vector<Tensor> inputs = synthetic_inputs(main, 5).value();
  std::vector<Tensor> expected = interpret(main, inputs).value();
  ProgramOptions options;
  options.threads = 1;
  options.worker = fs::read_symlink("/proc/self/exe");
  options.database = folder / "costs.db";
  options.effort = Effort::kFast;
  options.always_measure = true;
  for (bool merge : {true, false}) {
    options.config = folder / "config.json";
    std::ofstream(options.config) << fmt::format(
        R"json({{"targets": [{{"name": "openvino", "merge": {}, "rule": "is_op('nn.matmul')"}}]}})json",
        merge);
    Result<Program> program = Program::compile(model, options);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    const std::vector<ReportedPlan>& covers = program->impl().report.covers;
    auto merged = std::find_if(covers.begin(), covers.end(),
                               [](const ReportedPlan& c) { return c.name.ends_with(" merged"); });
    ASSERT_EQ(merged != covers.end(), merge);
    if (!merge) continue;
    EXPECT_GT(merged->predicted_seconds, 0);
    EXPECT_TRUE(merged->measured.has_value()) << merged->failure;
    EXPECT_EQ(merged->chosen, program->impl().report.kernels.size() == 1);
    std::vector<Tensor> outputs = program->run(inputs).value();
    Difference difference = compare_tensors(outputs[0], expected[0], model_tolerance());
    EXPECT_TRUE(difference.within) << difference.reason;
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace collage
