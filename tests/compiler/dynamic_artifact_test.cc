// Dynamic programs as files: what was compiled runs from the file, with the same bits, and nothing
// else does.
#include <collage/dynamic.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "artifact/file_layouts.h"
#include "artifact/zip.h"
#include "dynamic/running_mean.h"
#include "dynamic/saved_stages.h"
#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::running_mean;

constexpr int32_t kFloat = onnx::TensorProto::FLOAT;

class Saved : public ::testing::Test {
 protected:
  ~Saved() override { std::filesystem::remove(path_); }

  Program saved(const Program& program) {
    const Status status = program.save(path_);
    EXPECT_TRUE(status.ok()) << status.to_string();
    Result<Program> artifact = Program::load(path_);
    EXPECT_TRUE(artifact.ok()) << artifact.status().to_string();
    return std::move(artifact).value();
  }

  const std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                      ("collage_saved_" + std::to_string(::getpid()) + ".collage");
};

// A product with weights: enough work to be compiled. The second output is the input, the third is
// the same in every run.
ModelBuilder& product(ModelBuilder& m) {
  std::vector<float> weights(256 * 256);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 13) - 6;
  m.input("x", {"rows", "256"});
  m.constant("w", Tensor::from<float>({256, 256}, weights));
  m.constant("c", Tensor::from<float>({2}, {3, 4}));
  m.node("MatMul", {"x", "w"}, {"product"});
  m.node("Relu", {"product"}, {"y"});
  m.node("Identity", {"x"}, {"same"});
  m.node("Identity", {"c"}, {"constant"});
  m.output("y", kFloat).output("same", kFloat).output("constant", kFloat);
  return m;
}

Tensor ramp(int64_t rows) {
  std::vector<float> values(static_cast<size_t>(rows * 256));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  return Tensor::from<float>({rows, 256}, values);
}

// Nothing is measured; this program (main.cc) tries kernels.
DynamicOptions quick() {
  DynamicOptions options;
  options.program.worker = std::filesystem::read_symlink("/proc/self/exe");
  options.program.targets = {"native"};
  return options;
}

TEST_F(Saved, RunsWithTheSameBits) {
  ModelBuilder m(17);
  Result<Program> program = Program::compile(product(m).write(), quick());
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  std::vector<std::vector<Tensor>> expected;
  for (const int64_t rows : {4, 9}) {
    Result<std::vector<Tensor>> outputs = program->run({ramp(rows)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
    expected.push_back(std::move(outputs).value());
  }
  EXPECT_EQ(program->specialisations()[0].kernels, 1u);
  const Program artifact = saved(*program);
  std::vector<std::string> shapes;
  for (const SpecialisationInfo& one : artifact.specialisations()) shapes.push_back(one.shapes);
  EXPECT_THAT(shapes, ElementsAre("x (4, 256)", "x (9, 256)"));
  EXPECT_EQ(artifact.inputs()[0].shape, (Shape{-1, 256}));
  EXPECT_EQ(artifact.inputs()[0].dims, (std::vector<std::string>{"rows", "256"}));
  // Each weight once, whatever specialisations read it.
  EXPECT_LT(std::filesystem::file_size(path_), 256 * 256 * sizeof(float) * 3 / 2);
  Result<Context> context = artifact.make_context();
  ASSERT_TRUE(context.ok());
  for (size_t i = 0; i < expected.size(); ++i) {
    Result<std::vector<Tensor>> outputs = context->run({ramp(i == 0 ? 4 : 9)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
    ASSERT_EQ(outputs->size(), 3u);
    for (size_t k = 0; k < 3; ++k) {
      ASSERT_EQ((*outputs)[k].shape(), expected[i][k].shape());
      EXPECT_EQ(std::memcmp((*outputs)[k].raw(), expected[i][k].raw(), expected[i][k].bytes()), 0);
    }
  }
  const Status other = context->run({ramp(5)}).status();
  EXPECT_EQ(other.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(other.message(), "it was not compiled for x (5, 256)");
  EXPECT_EQ(context->run({Tensor::zeros(DType::kFloat32, {4, 255})}).status().message(),
            "input 'x' has shape (4, 255), where dimension 1 is not '256'");
}

TEST_F(Saved, ContextsHaveStatesOfTheirOwn) {
  ModelBuilder m(17);
  DynamicOptions options = quick();
  options.buckets = {{"old", {4, 16}}, {"new", {1, 4}}};
  options.states["past"] = "present";
  Result<Program> program = Program::compile(running_mean(m).write(), options);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const Status prepared = program->prepare_buckets();
  ASSERT_TRUE(prepared.ok()) << prepared.to_string();
  EXPECT_EQ(program->specialisations().size(), 4u);
  const Program artifact = saved(*program);
  ASSERT_EQ(artifact.inputs().size(), 2u);
  ASSERT_EQ(artifact.outputs().size(), 1u);
  Context first = artifact.make_context().value(), other = artifact.make_context().value();
  const auto mean = [](Context& context, int64_t rows, int64_t kept, float value) -> double {
    Result<std::vector<Tensor>> outputs = context.run(
        {floats({rows, 2}, std::vector<float>(static_cast<size_t>(2 * rows), value)),
         floats({kept + rows, 1}, std::vector<float>(static_cast<size_t>(kept + rows), 1))});
    EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
    return outputs.ok() ? (*outputs)[0].element_as_double(1) : -1;
  };
  EXPECT_EQ(mean(first, 3, 0, 2), 2);
  EXPECT_EQ(mean(other, 1, 0, 5), 5);
  EXPECT_EQ(mean(first, 1, 3, 6), 3);
  EXPECT_EQ(mean(first, 1, 4, 8), 4);  // beyond the first bucket
  EXPECT_EQ(mean(other, 1, 1, 7), 6);
  first.reset();
  EXPECT_EQ(mean(first, 2, 0, 9), 9);
}

TEST_F(Saved, BucketsAreNeededToPrepareThemAll) {
  ModelBuilder m(17);
  Result<Program> program = Program::compile(product(m).write(), quick());
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->prepare_buckets().message(), "dimension 'rows' has no buckets");
  EXPECT_EQ(program->save(path_).message(), "nothing was compiled: prepare shapes first");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// Where the products of weights are not 0, which is everywhere, times weights: both stages are
// enough work to be compiled.
ModelBuilder& rows_of_nonzeros(ModelBuilder& m) {
  std::vector<float> weights(256 * 256);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 11) + 1;
  m.input("x", {"n", "256"});
  m.constant("w", Tensor::from<float>({256, 256}, weights));
  m.constant("target", Tensor::from<int64_t>({2}, {-1, 256}));
  m.node("MatMul", {"x", "w"}, {"product"});
  m.node("NonZero", {"product"}, {"where"});
  m.node("Cast", {"where"}, {"real"}).integer("to", kFloat);
  m.node("Reshape", {"real", "target"}, {"rows"});
  m.node("MatMul", {"rows", "w"}, {"y"});
  m.output("y", kFloat);
  return m;
}

// All of whose products are alike, so that the number of those that are not 0 is known.
Tensor ones(int64_t rows) {
  return Tensor::from<float>({rows, 256}, std::vector<float>(static_cast<size_t>(rows * 256), 1));
}

TEST_F(Saved, ModelsOfSeveralStagesRunAsBefore) {
  ModelBuilder m(17);
  const std::filesystem::path model = rows_of_nonzeros(m).write();
  Result<Program> program = Program::compile(model, quick());
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const std::vector<Tensor> expected = program->run({ones(4)}).value();
  const Status status = program->save(path_);
  ASSERT_TRUE(status.ok()) << status.to_string();
  testing::expect_known_layouts(*ArtifactFile::open(path_).value());
  const std::vector<Tensor> of_others = program->run({ones(6)}).value();
  std::filesystem::remove(model);

  DynamicOptions options = quick();
  options.program.targets = {"reference"};  // the file's stand
  options.compile_on_demand = false;
  Result<Program> loaded = Program::compile(path_, options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  const Result<std::vector<Tensor>> outputs = loaded->run({ones(4)});
  ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
  ASSERT_EQ((*outputs)[0].shape(), expected[0].shape());
  EXPECT_EQ(std::memcmp((*outputs)[0].raw(), expected[0].raw(), expected[0].bytes()), 0);
  const std::vector<SpecialisationInfo> stages = loaded->specialisations();
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[1].part, "main/1");
  EXPECT_GT(stages[1].kernels, 0u);
  EXPECT_EQ(loaded->run({ones(6)}).status().code(), ErrorCode::kUnavailable);

  // What it does not hold is compiled, and what was loaded can be saved again.
  options.compile_on_demand = true;
  Result<Program> compiling = Program::compile(path_, options);
  ASSERT_TRUE(compiling.ok());
  ASSERT_TRUE(compiling->run({ones(4)}).ok());
  const Result<std::vector<Tensor>> others = compiling->run({ones(6)});
  ASSERT_TRUE(others.ok()) << others.status().to_string();
  EXPECT_EQ(std::memcmp((*others)[0].raw(), of_others[0].raw(), of_others[0].bytes()), 0);
  const Status again = compiling->save(path_);
  ASSERT_TRUE(again.ok()) << again.to_string();
  options.compile_on_demand = false;
  EXPECT_TRUE(Program::compile(path_, options)->run({ones(6)}).ok());
}

TEST_F(Saved, StagesAreCompiledAsTheFileSays) {
  ModelBuilder m(17);
  DynamicOptions options = quick();
  options.program.devices = "cpu:0";
  options.program.exclude = {"onednn"};
  options.program.pin = {"NonZero=native"};
  options.program.memory = {"cpu:0=1G"};
  Result<Program> program = Program::compile(rows_of_nonzeros(m).write(), options);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  ASSERT_TRUE(program->run({ones(4)}).ok());
  ASSERT_TRUE(program->save(path_).ok());
  DynamicOptions loaded = quick();
  ASSERT_TRUE(SavedStages::load(ArtifactFile::open(path_).value(), loaded).ok());
  EXPECT_EQ(loaded.program.targets, options.program.targets);
  EXPECT_EQ(loaded.program.devices, options.program.devices);
  EXPECT_EQ(loaded.program.exclude, options.program.exclude);
  EXPECT_EQ(loaded.program.pin, options.program.pin);
  EXPECT_EQ(loaded.program.memory, options.program.memory);
}

TEST_F(Saved, StagesOfAnotherModelAreNotTaken) {
  ModelBuilder m(17);
  Result<Program> program = Program::compile(rows_of_nonzeros(m).write(), quick());
  ASSERT_TRUE(program.ok());
  ASSERT_TRUE(program->run({ones(4)}).ok());
  ASSERT_TRUE(program->save(path_).ok());
  // Two plans change places.
  const std::shared_ptr<ArtifactFile> file = ArtifactFile::open(path_).value();
  std::vector<ZipEntry> entries;
  for (const ManifestEntry& entry : file->manifest().entries)
    entries.push_back({entry.name, file->entry(entry.name).value()});
  for (ZipEntry& entry : entries)
    if (entry.name.starts_with("plans/"))
      entry.name = entry.name == "plans/00000" ? "plans/00001" : "plans/00000";
  ASSERT_TRUE(write_zip(path_, entries, file->manifest()).ok());
  Result<Program> loaded = Program::compile(path_, quick());
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(loaded->run({ones(4)}).status().to_string(), "main: its plan is another stage's");
}

// Stages whose shapes come in the middle of a run are compiled by a target that is in use.
TEST_F(Saved, LaterStagesKeepToTheTargets) {
  ModelBuilder m(17);
  std::vector<float> weights(256 * 256, 0.5F);
  m.input("x", {"n"});
  m.constant("w", Tensor::from<float>({256, 256}, weights));
  m.constant("target", Tensor::from<int64_t>({2}, {-1, 256}));
  m.node("NonZero", {"x"}, {"where"});
  m.node("Cast", {"where"}, {"real"}).integer("to", kFloat);
  m.node("Reshape", {"real", "target"}, {"rows"});
  m.node("MatMul", {"rows", "w"}, {"y"});
  m.output("y", kFloat);
  DynamicOptions options = quick();
  options.program.exclude = {"onednn"};
  Result<Program> program = Program::compile(m.write(), options);
  ASSERT_TRUE(program.ok());
  for (const int64_t n : {512, 1024}) {
    Result<std::vector<Tensor>> outputs =
        program->run({floats({n}, std::vector<float>(static_cast<size_t>(n), 1))});
    ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
    EXPECT_EQ((*outputs)[0].shape(), (Shape{n / 256, 256}));
  }
  const std::vector<SpecialisationInfo> made = program->specialisations();
  EXPECT_EQ(std::count_if(made.begin(), made.end(), [](const auto& one) { return one.quick; }), 1);
}

TEST_F(Saved, FilesOfEachKindNameWhatTakesThem) {
  ModelBuilder m(17);
  Result<Program> program = Program::compile(product(m).write(), quick());
  ASSERT_TRUE(program.ok());
  ASSERT_TRUE(program->run({ramp(4)}).ok());
  EXPECT_EQ(program->make_context().status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(saved(*program).prepare({ramp(5)}).message(),
            "the program is compiled already, for all the shapes that it takes");
  EXPECT_THAT(Program::compile(path_, quick()).status().message(),
              HasSubstr("it holds a program of several shapes, which Program::load takes"));
  ModelBuilder several(17);
  Result<Program> staged = Program::compile(rows_of_nonzeros(several).write(), quick());
  ASSERT_TRUE(staged.ok());
  ASSERT_TRUE(staged->run({ones(4)}).ok());
  ASSERT_TRUE(staged->save(path_).ok());
  EXPECT_THAT(Program::load(path_).status().message(),
              HasSubstr("it holds a model that runs in stages, which Program::compile takes"));
}

// The caller's tensors are written, and one of another shape is refused.
TEST_F(Saved, WritesWhereTheCallerWants) {
  ModelBuilder m(17);
  Result<Program> program = Program::compile(product(m).write(), quick());
  ASSERT_TRUE(program.ok());
  const std::vector<Tensor> expected = program->run({ramp(4)}).value();
  Context context = saved(*program).make_context().value();
  const Tensor y = Tensor::zeros(DType::kFloat32, {4, 256});
  std::vector<Tensor> outputs = {y, Tensor(), Tensor()};
  const Status status = context.run({ramp(4)}, outputs);
  ASSERT_TRUE(status.ok()) << status.to_string();
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(std::memcmp(outputs[i].raw(), expected[i].raw(), expected[i].bytes()), 0);
  EXPECT_EQ(outputs[0].raw(), y.raw());
  outputs = {Tensor::zeros(DType::kFloat32, {5, 256}), Tensor(), Tensor()};
  EXPECT_THAT(context.run({ramp(4)}, outputs).message(), HasSubstr("output 'y': expected"));
  outputs = {y, y, Tensor()};
  EXPECT_EQ(context.run({ramp(4)}, outputs).message(),
            "output 'same': its memory overlaps that of output 'y'");
}

}  // namespace
}  // namespace collage
