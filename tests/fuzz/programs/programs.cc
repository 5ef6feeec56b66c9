// Small networks with fields of their messages changed. What can be imported and is small is
// simplified and run by the interpreter, as it was imported and as it is simplified, and compiled
// without measuring, for one toolchain. All results agree, or an error says why there are none.
#include <gtest/gtest.h>
#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "compiler/compile.h"
#include "frontend/onnx/importer.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_model.h"
#include "fuzz/programs/seeds.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "ops/registry.h"

namespace collage::fuzz {
namespace {

constexpr double kMostElements = 10'000;

const std::filesystem::path& model_file() {
  static const std::filesystem::path file = std::filesystem::path(scratch_folder()) / "model.onnx";
  return file;
}

// Rounding is magnified by what a changed model computes: these are tolerances that no right
// result misses and few wrong ones meet.
bool agree(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  if (got.size() != expected.size()) return false;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].dtype() != expected[i].dtype() || got[i].shape() != expected[i].shape())
      return false;
    double largest = 1e-3;
    for (int64_t k = 0; k < got[i].size(); ++k)
      if (const double value = expected[i].element_as_double(k); std::isfinite(value))
        largest = std::max(largest, std::abs(value));
    for (int64_t k = 0; k < got[i].size(); ++k) {
      const double a = got[i].element_as_double(k), b = expected[i].element_as_double(k);
      if (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) > 0.01 * largest) return false;
    }
  }
  return true;
}

// Of the outcome of a run of the module. A run may refuse values (an index out of range).
void expect_clear(const Status& status) {
  EXPECT_FALSE(status.message().empty());
  EXPECT_NE(status.code(), ErrorCode::kInternal) << status.to_string();
}

ProgramOptions options_for(const std::string& input) {
  ProgramOptions options;
  options.threads = 1;
  options.worker = std::filesystem::read_symlink("/proc/self/exe");
  options.database = std::filesystem::path(scratch_folder()) / "costs.db";
  options.targets = {input.size() % 4 == 0 ? "native" : "onednn"};
  return options;
}

Outcome run_program(const std::string& input) {
  {
    onnx::ModelProto model;
    if (!model.ParseFromString(input)) return Outcome::kNoSyntax;
  }
  std::ofstream(model_file(), std::ios::binary) << input;
  ImportOptions import;
  import.max_bytes = size_t{256} << 20;
  const Result<ImportedModel> read = import_onnx(model_file(), import);
  if (!read) {
    expect_clear(read.status());
    return Outcome::kRefused;
  }
  if (elements_of(read->module) > kMostElements) return Outcome::kAccepted;
  const Result<Model> model = Model::load(model_file());
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  if (!model) return Outcome::kAccepted;
  const std::vector<Tensor> inputs = random_inputs(read->module.main(), 1);
  const Result<std::vector<Tensor>> expected = interpret(read->module.main(), inputs);
  if (!expected) {
    expect_clear(expected.status());
    return Outcome::kRefused;
  }
  const Result<std::vector<Tensor>> simplified = interpret(model->impl().module.main(), inputs);
  EXPECT_TRUE(simplified.ok()) << simplified.status().to_string();
  if (simplified.ok()) {
    EXPECT_TRUE(agree(*simplified, *expected)) << "simplified";
  }
  Result<Program> program = Program::compile(*model, options_for(input));
  if (!program) {
    expect_clear(program.status());
    return Outcome::kRefused;
  }
  const Result<std::vector<Tensor>> results = program->run(inputs);
  EXPECT_TRUE(results.ok()) << results.status().to_string();
  if (results.ok()) {
    EXPECT_TRUE(agree(*results, *expected)) << "compiled";
  }
  return Outcome::kAccepted;
}

}  // namespace

FuzzTarget programs() {
  register_all_ops();
  use_scratch_cache();
  std::vector<std::string> seeds;
  for (const std::string& network : small_networks())
    if (run_program(network) == Outcome::kAccepted) seeds.push_back(network);
  EXPECT_GE(seeds.size(), 7u);
  return {"programs", seeds,
          [seeds](Random& random) { return with_other_fields(random.pick(seeds), random); },
          run_program};
}

}  // namespace collage::fuzz
