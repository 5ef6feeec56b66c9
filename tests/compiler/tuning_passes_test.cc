// Task extraction and apply-best-history: what is to be measured, and what a module becomes by it.
#include "compiler/tuning_passes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/given_model.h"
#include "ir/structural.h"
#include "ir/text_printer.h"

namespace collage {
namespace {

// Two equal layers: what both come down to is one task.
constexpr const char* kPassesModel = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(32, 64), float32]) {
  %0 = nn.softmax(%x, axis=-1);
  %1 = exp(%0);
  %2 = nn.softmax(%1, axis=-1);
  exp(%2)
}
)";

class TuningPasses : public testing::GivenModel {
 protected:
  TuningPasses() : GivenModel(kPassesModel) {}

  std::vector<TuningTask> tasks() {
    std::vector<TuningTask> found;
    Module module = given_;
    Result<bool> changed = task_extraction(options_, found).run(module);
    EXPECT_TRUE(changed.ok()) << changed.status().to_string();
    EXPECT_FALSE(*changed);
    EXPECT_TRUE(structural_equal(module, given_));
    return found;
  }
};

bool is_known(const TuningTask& task) { return task.unknown == 0; }

TEST_F(TuningPasses, EqualFunctionsAreOneTask) {
  std::vector<TuningTask> found = tasks();
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(std::none_of(found.begin(), found.end(), is_known));
  bool shared = false;
  for (const TuningTask& task : found) {
    ASSERT_EQ(task.targets.size(), task.candidates.size());
    for (const std::vector<size_t>& of_target : task.candidates) {
      EXPECT_FALSE(of_target.empty());
      const bool layer = task.text.find("nn.softmax") < task.text.find("exp") &&
                         task.text.find("nn.softmax") == task.text.rfind("nn.softmax") &&
                         task.text.find("exp") != std::string::npos;
      shared = shared || (layer && of_target.size() == 2);
    }
    for (const TuningTask& other : found) EXPECT_TRUE(&other == &task || other.text != task.text);
  }
  EXPECT_TRUE(shared) << "a softmax and what follows it, of either layer";
}

TEST_F(TuningPasses, OptionsThatAreWrongAreRefused) {
  options_.memory = {"x"};
  std::vector<TuningTask> found;
  for (const Pass& pass : {task_extraction(options_, found), apply_history_best(options_)}) {
    SCOPED_TRACE(pass.name);
    Module module = given_;
    const Result<bool> changed = pass.run(module);
    ASSERT_FALSE(changed.ok());
    EXPECT_EQ(changed.status().code(), ErrorCode::kUsage) << changed.status().to_string();
  }
  EXPECT_TRUE(found.empty());
}

TEST_F(TuningPasses, HistoryBecomesThePartition) {
  options_.targets = {"onednn"};  // whose kernels are all functions of their own
  Module module = given_;
  const Pass apply = apply_history_best(options_);
  Result<bool> too_early = apply.run(module);
  ASSERT_FALSE(too_early.ok());
  EXPECT_EQ(too_early.status().code(), ErrorCode::kFrozenCosts);
  EXPECT_TRUE(structural_equal(module, given_)) << "a pass that fails leaves the module alone";

  options_.always_measure = true;
  Result<Program> program = Program::compile(model_of(given_), options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  std::vector<TuningTask> found = tasks();
  // What could not be in a best cover was not measured, and is not missed below.
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), is_known));

  Result<bool> changed = apply.run(module);
  ASSERT_TRUE(changed.ok()) << changed.status().to_string();
  EXPECT_TRUE(*changed);
  EXPECT_TRUE(structural_equal(module, program->impl().report.partitioned))
      << to_text(module) << to_text(program->impl().report.partitioned);
  EXPECT_NE(to_text(module).find("Target=\"onednn\""), std::string::npos);
}

}  // namespace
}  // namespace collage
