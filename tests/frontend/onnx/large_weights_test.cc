// Large weights stay in the model's file until they are taken; that shows in nothing else.
#include "frontend/onnx/large_weights.h"

#include <fstream>
#include <random>

#include "frontend/onnx/model_builder.h"
#include "frontend/onnx/model_file.h"

namespace collage {
namespace {

constexpr int64_t kCount = 16384;  // 64 KiB of floats

struct LargeModel {
  ModelBuilder m;
  explicit LargeModel(const std::string& name = "w") {
    m.input("x", {std::to_string(kCount)}).constant(name, ramp({kCount}));
    m.constant("small", floats({1}, {2}));
    m.node("Add", {"x", name}, {"sum"});
    m.node("Mul", {"sum", "small"}, {"y"});
    m.output("y");
  }
  void write(const std::string& bytes) {
    std::ofstream(m.file(), std::ios::binary | std::ios::trunc) << bytes;
  }
};

TEST(LargeWeights, StayInTheFileUntilTheyAreTaken) {
  LargeModel large;
  const auto model = frontend::read_model_file(large.m.write());
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const onnx::TensorProto& w = (*model)->graph().initializer(0);
  EXPECT_EQ(w.raw_data().size(), 0);
  EXPECT_EQ(w.external_data(0).value(), frontend::kOwnFile);
  EXPECT_EQ((*model)->graph().initializer(1).raw_data().size(), 4);
  EXPECT_LT((*model)->ByteSizeLong(), 1000);
}

// At all offsets, also those at which floats could be read where they are.
TEST(LargeWeights, AreCopiedSoThatTheFileMayBeWrittenAnew) {
  for (const std::string name : {"w", "w1", "w12", "w123"}) {
    LargeModel large(name);
    Result<ImportedModel> model = large.m.import();
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    large.write("");
    const std::vector<Tensor> inputs = {ramp({kCount})};
    const Result<std::vector<Tensor>> y = interpret(model->module.main(), inputs);
    ASSERT_TRUE(y.ok()) << y.status().to_string();
    EXPECT_EQ(y->at(0).data<float>()[kCount - 1], 4 * (kCount - 1));
  }
}

TEST(LargeWeights, OfAnotherSizeThanTheShapeAreRefused) {
  LargeModel large;
  large.m.graph().mutable_initializer(0)->set_dims(0, kCount - 1);
  expect_error(large.m.import(), ErrorCode::kBadModel,
               "raw_data has 65536 bytes, shape (16383) of float32 needs 65532");
}

// What is wrong is told as of a message that is read whole.
TEST(LargeWeights, DamagedModelsAreReadOrRefusedAsTheirContentIs) {
  LargeModel large;
  const std::string whole = large.m.proto().SerializeAsString();
  const size_t weights = whole.find(large.m.graph().initializer(0).raw_data());
  std::mt19937 random(1);
  const auto position = [&]() -> size_t {
    const size_t at = random() % (whole.size() - kCount * sizeof(float));
    return at < weights ? at : at + kCount * sizeof(float);
  };
  for (int i = 0; i < 500; ++i) {
    std::string bytes = whole;
    if (i % 3 == 0) {
      bytes.resize(random() % whole.size());
    } else {
      bytes[position()] = static_cast<char>(random());
    }
    large.write(bytes);
    const auto file = frontend::read_model_file(large.m.file());
    const auto content = frontend::parse_model(bytes);
    ASSERT_EQ(file.ok(), content.ok()) << i;
    if (file.ok()) {
      ASSERT_EQ((*file)->graph().node_size(), (*content)->graph().node_size());
    } else {
      ASSERT_EQ(file.status().to_string(), content.status().to_string());
    }
  }
}

}  // namespace
}  // namespace collage
