// Dimensions padded to buckets, and states that grow from run to run.
#include <collage/dynamic.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "artifact/bucketing/padding.h"
#include "dynamic/running_mean.h"
#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::running_mean;

constexpr int32_t kFloatType = onnx::TensorProto::FLOAT;

TEST(Padding, SumsAreReadFromText) {
  ASSERT_TRUE(DimSum::parse("past + sequence"));
  EXPECT_EQ(DimSum::parse("past + sequence")->terms[1].name, "sequence");
  EXPECT_EQ(DimSum::parse("past+1")->terms[1].number, 1);
  EXPECT_EQ(DimSum::parse("7")->terms[0].number, 7);
  for (const char* text : {"", "?", "2*n", "n +", "floor(n/2)", "a - 1"})
    EXPECT_FALSE(DimSum::parse(text)) << text;
}

TEST(Padding, SizesComeFromShapes) {
  const std::vector<TensorInfo> declared = {
      open_tensor("mask", {"batch", "past + sequence"}, DType::kFloat32),
      open_tensor("tokens", {"batch", "sequence"}, DType::kFloat32)};
  Result<DimSizes> sizes = sizes_of(declared, {{2, 9}, {2, 4}});
  ASSERT_TRUE(sizes.ok()) << sizes.status().to_string();
  EXPECT_EQ(*sizes, (DimSizes{{"batch", 2}, {"past", 5}, {"sequence", 4}}));
  EXPECT_EQ(sizes_of(declared, {{2, 9}, {3, 4}}).status().message(),
            "input 'tokens' has shape (3, 4), where dimension 0 is not 'batch'");
  EXPECT_EQ(sizes_of(declared, {{9}, {3, 4}}).status().message(), "input 'mask' has rank 1, not 2");
}

TEST(Padding, PartsOfASumArePaddedEachAtItsEnd) {
  const TensorInfo info = open_tensor("x", {"2", "a + b"}, DType::kFloat32);
  const DimSizes sizes = {{"a", 2}, {"b", 1}}, padded = {{"a", 3}, {"b", 2}};
  const Tensor tensor = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const PaddedShape shape = PaddedShape::of(info, tensor.shape(), sizes, padded);
  Result<Tensor> large = pad_tensor(tensor, shape, 9);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->shape(), (Shape{2, 5}));
  EXPECT_THAT(values_of(*large), ElementsAre(1, 2, 9, 3, 9, 4, 5, 9, 6, 9));
  EXPECT_THAT(values_of(*cut_tensor(*large, shape)), ElementsAre(1, 2, 3, 4, 5, 6));
}

// Sums the rows of x that the mask keeps; without the mask all of them, plus 1 each.
ModelBuilder& masked_sum(ModelBuilder& m, bool masked) {
  m.input("x", {"rows", "2"}).input("mask", {"rows", "1"});
  m.constant("one", Tensor::scalar<float>(1)).constant("axes", Tensor::from<int64_t>({1}, {0}));
  m.node("Add", {"x", "one"}, {"more"});
  m.node("Mul", {"more", masked ? "mask" : "one"}, {"kept"});
  m.node("ReduceSum", {"kept", "axes"}, {"sum"}).integer("keepdims", 0);
  m.node("Mul", {"more", "mask"}, {"rows_out"});
  m.output("sum", kFloatType).output("rows_out", kFloatType);
  return m;
}

void declare_rows(ModelBuilder& m) {
  auto* shape = m.graph().mutable_output(1)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape->add_dim()->set_dim_param("rows");
  shape->add_dim()->set_dim_value(2);
}

TEST(Buckets, OneSpecialisationServesAllSizesUpToItsBucket) {
  ModelBuilder m(17);
  masked_sum(m, true);
  declare_rows(m);
  DynamicOptions options;
  options.buckets["rows"] = {8, 4};
  Result<Program> program = Program::compile(m.write(), options);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  for (int64_t rows = 1; rows <= 6; ++rows) {
    const std::vector<float> values(static_cast<size_t>(2 * rows), 1),
        ones(static_cast<size_t>(rows), 1);
    Result<std::vector<Tensor>> outputs =
        program->run({floats({rows, 2}, values), floats({rows, 1}, ones)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
    EXPECT_THAT(values_of((*outputs)[0]), ElementsAre(2 * rows, 2 * rows));
    EXPECT_EQ((*outputs)[1].shape(), (Shape{rows, 2}));
  }
  EXPECT_EQ(program->specialisations().size(), 2u);
  const std::vector<float> many(18, 1), ones(9, 1);
  EXPECT_EQ(program->run({floats({9, 2}, many), floats({9, 1}, ones)}).status().message(),
            "dimension 'rows' is 9, larger than every bucket");
}

TEST(Buckets, AModelThatSeesThePaddingIsRefused) {
  ModelBuilder m(17);
  masked_sum(m, false);
  declare_rows(m);
  DynamicOptions options;
  options.buckets["rows"] = {4};
  const Status status = Program::compile(m.write(), options).status();
  EXPECT_EQ(status.code(), ErrorCode::kVerification);
  EXPECT_THAT(status.to_string(), HasSubstr("output 'sum' depends on what inputs are padded with"));
}

TEST(Buckets, AnOutputThatDoesNotSayWhatIsPaddingIsRefused) {
  ModelBuilder m(17);
  masked_sum(m, true);
  DynamicOptions options;
  options.buckets["rows"] = {4};
  const Status status = Program::compile(m.write(), options).status();
  EXPECT_EQ(status.code(), ErrorCode::kVerification);
  EXPECT_THAT(status.to_string(), HasSubstr("its dimensions do not say which part"));
}

TEST(States, AreKeptFromRunToRun) {
  ModelBuilder m(17);
  DynamicOptions options;
  options.buckets["old"] = {4, 16};
  options.states["past"] = "present";
  Result<Program> program = Program::compile(running_mean(m).write(), options);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  ASSERT_EQ(program->inputs().size(), 2u);
  ASSERT_EQ(program->outputs().size(), 1u);
  const auto mean = [&](int64_t rows, int64_t kept, float value) -> double {
    Result<std::vector<Tensor>> outputs = program->run(
        {floats({rows, 2}, std::vector<float>(static_cast<size_t>(2 * rows), value)),
         floats({kept + rows, 1}, std::vector<float>(static_cast<size_t>(kept + rows), 1))});
    EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
    return outputs.ok() ? (*outputs)[0].element_as_double(1) : -1;
  };
  EXPECT_EQ(mean(3, 0, 2), 2);
  EXPECT_EQ(mean(1, 3, 6), 3);  // 2 2 2 6
  EXPECT_EQ(mean(1, 4, 8), 4);  // beyond the first bucket
  EXPECT_EQ(mean(5, 5, 4), 4);
  for (int64_t kept = 10; kept < 14; ++kept) EXPECT_EQ(mean(1, kept, 4), 4);
  EXPECT_EQ(program->specialisations().size(), 4u);
  program->reset();
  EXPECT_EQ(mean(1, 0, 7), 7);
}

TEST(States, OptionsThatDoNotFitAreRefused) {
  ModelBuilder m(17);
  running_mean(m).write();
  DynamicOptions options;
  options.states["past"] = "present";
  EXPECT_EQ(Program::compile(m.file(), options).status().message(),
            "state 'past' has no dimension with buckets");
  options.buckets["old"] = {4};
  options.states["past"] = "mean";
  EXPECT_EQ(Program::compile(m.file(), options).status().message(),
            "dimension 0 of output 'mean' is not 'old + …'");
  options.states = {{"nobody", "present"}};
  EXPECT_EQ(Program::compile(m.file(), options).status().message(), "state 'nobody' is no input");
}

}  // namespace
}  // namespace collage
