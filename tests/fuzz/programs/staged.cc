// Files of models that run in stages, and of programs of several shapes, as Program::compile and
// Program::load take them. What the file does not hold is not compiled.
#include <collage/dynamic.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "artifact/artifact_file.h"
#include "artifact/damage.h"
#include "base/files.h"
#include "frontend/onnx/model_builder.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_artifact.h"

namespace collage::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRows = 32, kColumns = 64;
constexpr int64_t kMostStagedElements = 1 << 20;
constexpr int32_t kFloat = onnx::TensorProto::FLOAT;

Tensor weights() {
  std::vector<float> values(kColumns * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 11) + 1;
  return Tensor::from<float>({kColumns, kColumns}, values);
}

// Where products are not 0, times weights: two stages, both enough work to be compiled.
ModelBuilder& staged_model(ModelBuilder& m) {
  m.input("x", {"n", std::to_string(kColumns)});
  m.constant("w", weights());
  m.constant("target", Tensor::from<int64_t>({2}, {-1, kColumns}));
  m.node("MatMul", {"x", "w"}, {"product"});
  m.node("NonZero", {"product"}, {"where"});
  m.node("Cast", {"where"}, {"real"}).integer("to", kFloat);
  m.node("Reshape", {"real", "target"}, {"rows"});
  m.node("MatMul", {"rows", "w"}, {"y"});
  m.output("y", kFloat);
  return m;
}

// A product, a result that is an input, and one that is the same in every run.
ModelBuilder& model_of_several_shapes(ModelBuilder& m) {
  m.input("x", {"n", std::to_string(kColumns)});
  m.constant("w", weights());
  m.constant("c", Tensor::from<float>({2}, {3, 4}));
  m.node("MatMul", {"x", "w"}, {"product"});
  m.node("Relu", {"product"}, {"y"});
  m.node("Identity", {"x"}, {"same"});
  m.node("Identity", {"c"}, {"constant"});
  m.output("y", kFloat).output("same", kFloat).output("constant", kFloat);
  return m;
}

DynamicOptions options() {
  DynamicOptions options;
  options.program.threads = 1;
  options.program.worker = fs::read_symlink("/proc/self/exe");
  options.program.database = fs::path(scratch_folder()) / "costs.db";
  options.program.targets = {"native"};
  return options;
}

// Ones, of the shape that the dimensions' names leave open.
std::vector<Tensor> inputs_of(const std::vector<TensorInfo>& infos) {
  std::vector<Tensor> inputs;
  for (const TensorInfo& info : infos) {
    Shape shape;
    for (const std::string& dim : info.dims) {
      int64_t size = kRows;
      const auto read = std::from_chars(dim.data(), dim.data() + dim.size(), size);
      shape.push_back(read.ec == std::errc() && size >= 0 ? size : kRows);
      if (num_elements(shape) > kMostStagedElements) shape.back() = 1;
    }
    Tensor input = Tensor::zeros(info.dtype, shape);
    if (info.dtype == DType::kFloat32)
      std::fill_n(input.data<float>(), static_cast<size_t>(input.size()), 1.0F);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::string saved(ModelBuilder& model, const std::vector<int64_t>& rows) {
  Result<Program> program = Program::compile(model.write(), options());
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  for (const int64_t count : rows) {
    Tensor input = Tensor::zeros(DType::kFloat32, {count, kColumns});
    std::fill_n(input.data<float>(), static_cast<size_t>(input.size()), 1.0F);
    const Status status = program->run({input}).status();
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  const fs::path file = fs::path(scratch_folder()) / "saved.collage";
  const Status status = program->save(file);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return read_file(file).value();
}

Outcome outcome_of(const Status& status) {
  EXPECT_TRUE(status.ok() || !status.message().empty());
  return status.ok() ? Outcome::kAccepted : Outcome::kRefused;
}

Outcome run_specialisations(const std::string& input) {
  const Result<Program> artifact = Program::load(input.data(), input.size());
  if (!artifact.ok()) return outcome_of(artifact.status());
  Result<Context> context = artifact->make_context();
  if (!context.ok()) return outcome_of(context.status());
  const std::vector<Tensor> inputs = inputs_of(artifact->inputs());
  const Status first = context->run(inputs).status();
  return first.ok() ? outcome_of(context->run(inputs).status()) : outcome_of(first);
}

Outcome run_stages(const std::string& input) {
  static const fs::path file = fs::path(scratch_folder()) / "staged.collage";
  std::ofstream(file, std::ios::binary) << input;
  DynamicOptions loading = options();
  loading.compile_on_demand = false;
  Result<Program> program = Program::compile(file, loading);
  if (!program.ok()) return outcome_of(program.status());
  return outcome_of(program->run(inputs_of(program->inputs())).status());
}

Outcome run_file(const std::string& input) {
  const Result<std::shared_ptr<ArtifactFile>> file =
      ArtifactFile::from_memory(input.data(), input.size(), nullptr);
  if (!file.ok()) {
    EXPECT_FALSE(file.status().message().empty());
    return Outcome::kNoSyntax;
  }
  const std::vector<ManifestEntry>& entries = (*file)->manifest().entries;
  const bool in_stages = std::any_of(entries.begin(), entries.end(), [](const ManifestEntry& one) {
    return one.name == kStagesEntry;
  });
  return in_stages ? run_stages(input) : run_specialisations(input);
}

}  // namespace

FuzzTarget staged_artifacts() {
  use_scratch_cache();
  ModelBuilder staged(17), of_several_shapes(17);
  const std::vector<std::string> files = {
      saved(staged_model(staged), {kRows}),
      saved(model_of_several_shapes(of_several_shapes), {kRows, 2 * kRows})};
  std::vector<ArtifactParts> parts;
  for (const std::string& file : files) parts.push_back(parts_of(file));
  return {"staged_artifacts", files,
          [files, parts](Random& random) {
            const size_t chosen = random.below(files.size());
            if (!random.one_in(8)) return rewritten(parts[chosen], random);
            const auto number = static_cast<uint32_t>(random.below(1u << 30));
            return testing::damaged(files[chosen], parts[chosen].manifest, number);
          },
          run_file};
}

}  // namespace collage::fuzz
