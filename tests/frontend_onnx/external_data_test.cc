// Weights in files beside the model, and the ways such a reference is refused.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/mapped_file.h"
#include "frontend_onnx/model_builder.h"
#include "ir/visitor.h"

namespace collage {
namespace {

using onnx::TensorProto;

// y = x + w with w's four floats in a file.
struct ExternalModel {
  ModelBuilder m;
  ExternalModel() {
    m.input("x", {"4"}).constant("w", ramp({4}));
    m.node("Add", {"x", "w"}, {"y"});
    m.output("y");
    TensorProto* w = m.graph().mutable_initializer(0);
    w->clear_raw_data();
    w->set_data_location(TensorProto::EXTERNAL);
  }
  ExternalModel& entry(const std::string& key, const std::string& value) {
    auto* entry = m.graph().mutable_initializer(0)->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
    return *this;
  }
  // A file of 32 bytes: floats 0 to 7.
  std::filesystem::path data(const std::string& name = "w.bin", int64_t count = 8) {
    const std::filesystem::path file = m.folder() / name;
    std::filesystem::create_directories(file.parent_path());
    Tensor values = ramp({count});
    std::ofstream(file, std::ios::binary)
        .write(static_cast<const char*>(values.raw()),
               static_cast<std::streamsize>(values.bytes()));
    return file;
  }
  void refused(const std::string& part) {
    expect_error(m.import(), ErrorCode::kBadModel, "initializer 'w': external data");
    expect_error(m.import(), ErrorCode::kBadModel, part);
  }
};

TEST(ExternalData, IsReadAtItsOffset) {
  ExternalModel e;
  e.data();
  e.entry("location", "w.bin").entry("offset", "16").entry("length", "16");
  expect_values(e.m.run({ramp({4})})[0], {4}, {4, 6, 8, 10});
}

// y = x + w with w's 64 KiB of floats, behind that many bytes in a file.
struct LargeExternalModel : ExternalModel {
  static constexpr int64_t kCount = 16384;
  explicit LargeExternalModel(size_t offset) {
    TensorProto* w = m.graph().mutable_initializer(0);
    w->set_dims(0, kCount);
    m.graph()
        .mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(kCount);
    std::ofstream out(m.folder() / "w.bin", std::ios::binary);
    out << std::string(offset, 'x');
    const Tensor values = ramp({kCount});
    out.write(static_cast<const char*>(values.raw()), static_cast<std::streamsize>(values.bytes()));
    entry("location", "w.bin").entry("offset", std::to_string(offset));
  }
  // The initializer as it was imported.
  Tensor weight() {
    Result<ImportedModel> model = m.import();
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    for (const Expr& expr : post_order(model->module.main()->body))
      if (const auto* constant = as<ConstantNode>(expr)) return constant->value;
    return {};
  }
};

TEST(ExternalData, IsMappedWhereItIsLarge) {
  LargeExternalModel e(4);
  const Tensor first = e.weight(), second = e.weight();
  EXPECT_TRUE(lies_in_mapped_file(first.raw()));
  EXPECT_EQ(first.raw(), second.raw());
  EXPECT_EQ(first.data<float>()[LargeExternalModel::kCount - 1], LargeExternalModel::kCount - 1);
}

// Elements have to lie on multiples of their sizes. A copy is shared all the same.
TEST(ExternalData, IsCopiedFromOddOffsets) {
  LargeExternalModel e(5);
  const Tensor first = e.weight(), second = e.weight();
  EXPECT_FALSE(lies_in_mapped_file(first.raw()));
  EXPECT_EQ(first.raw(), second.raw());
  EXPECT_EQ(first.data<float>()[LargeExternalModel::kCount - 1], LargeExternalModel::kCount - 1);
}

TEST(ExternalData, MayStandInAFolderBelow) {
  ExternalModel e;
  e.data("weights/deep/w.bin");
  e.entry("location", "./weights//deep/w.bin");
  expect_values(e.m.run({ramp({4})})[0], {4}, {0, 2, 4, 6});
}

TEST(ExternalData, WithoutLocation) { ExternalModel().refused("without a location"); }

TEST(ExternalData, AbsolutePath) {
  ExternalModel e;
  e.entry("location", e.data().string()).refused("an absolute path is refused");
}

TEST(ExternalData, PathThatLeavesTheFolder) {
  for (const char* location : {"../w.bin", "a/../../w.bin", "a/..", ".."}) {
    ExternalModel e;
    e.entry("location", location).refused("leaves the model's folder");
  }
}

TEST(ExternalData, SymbolicLinks) {
  ExternalModel file;
  file.data();
  std::filesystem::create_symlink("w.bin", file.m.folder() / "link.bin");
  file.entry("location", "link.bin").refused("a symbolic link or a file as folder is refused");
  ExternalModel folder;
  folder.data("real/w.bin");
  std::filesystem::create_directory_symlink("real", folder.m.folder() / "link");
  folder.entry("location", "link/w.bin").refused("a symbolic link or a file as folder is refused");
}

TEST(ExternalData, HardLink) {
  ExternalModel e;
  std::filesystem::create_hard_link(e.data(), e.m.folder() / "other.bin");
  e.entry("location", "w.bin").refused("a file with 2 hard links is refused");
}

TEST(ExternalData, FifoFolderAndDevice) {
  ExternalModel fifo;
  ASSERT_EQ(::mkfifo((fifo.m.folder() / "pipe").c_str(), 0600), 0);
  fifo.entry("location", "pipe").refused("is not a regular file");
  ExternalModel folder;
  std::filesystem::create_directory(folder.m.folder() / "sub");
  folder.entry("location", "sub").refused("is not a regular file");
}

TEST(ExternalData, MissingFile) {
  ExternalModel e;
  e.entry("location", "nothing.bin").refused("No such file");
}

TEST(ExternalData, OffsetsAndLengthsThatDoNotFit) {
  for (const char* offset : {"20", "18446744073709551615", "18446744073709551600"}) {
    ExternalModel e;
    e.data();
    e.entry("location", "w.bin").entry("offset", offset).refused("do not fit in its 32 bytes");
  }
  ExternalModel length;
  length.data();
  length.entry("location", "w.bin").entry("length", "12").refused("shape (4) of float32 needs 16");
}

TEST(ExternalData, NumbersThatAreNone) {
  for (const char* offset : {"-1", "0x10", "ten", "", "99999999999999999999999"}) {
    ExternalModel e;
    e.data();
    e.entry("location", "w.bin").entry("offset", offset).refused("is not a number of bytes");
  }
}

TEST(ExternalData, ZeroByteInTheName) {
  ExternalModel e;
  e.data();
  e.entry("location", std::string("w.bin\0x", 7)).refused("holds a zero byte");
}

TEST(ExternalData, HugeShapeIsRefusedBeforeAnythingIsAllocated) {
  ExternalModel e;
  e.data();
  TensorProto* w = e.m.graph().mutable_initializer(0);
  w->clear_dims();
  w->add_dims(int64_t{1} << 38);
  e.entry("location", "w.bin").refused("do not fit in its 32 bytes");
}

}  // namespace
}  // namespace collage
