// Weights in files beside the model, and the ways such a reference is refused.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/mapped_file.h"
#include "frontend/onnx/model_builder.h"
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

TEST(ExternalData, LinksInsideTheFolder) {
  ExternalModel file;
  file.data();
  std::filesystem::create_symlink("w.bin", file.m.folder() / "link.bin");
  file.entry("location", "link.bin");
  expect_values(file.m.run({ramp({4})})[0], {4}, {0, 2, 4, 6});
  ExternalModel folder;
  folder.data("real/w.bin");
  std::filesystem::create_directory_symlink("real", folder.m.folder() / "link");
  folder.entry("location", "link/w.bin");
  expect_values(folder.m.run({ramp({4})})[0], {4}, {0, 2, 4, 6});
  ExternalModel hard;
  std::filesystem::create_hard_link(hard.data(), hard.m.folder() / "other.bin");
  hard.entry("location", "w.bin");
  expect_values(hard.m.run({ramp({4})})[0], {4}, {0, 2, 4, 6});
}

TEST(ExternalData, LinksThatLeaveTheFolder) {
  for (const char* target : {"/etc/passwd", "../elsewhere", "/dev/zero", "/proc/self/mem"}) {
    ExternalModel e;
    std::ofstream(e.m.folder().parent_path() / "elsewhere") << "0123456789abcdef";
    std::filesystem::create_symlink(target, e.m.folder() / "link.bin");
    e.entry("location", "link.bin").refused("outside the model's folder (--data-root DIR");
  }
  ExternalModel folder;
  std::filesystem::create_directory_symlink("/etc", folder.m.folder() / "link");
  folder.entry("location", "link/passwd").refused("is /etc/passwd, outside the model's folder");
  // One whose name begins like the folder's.
  ExternalModel beside;
  const std::filesystem::path other = beside.m.folder().string() + "2";
  std::filesystem::create_directory(other);
  std::ofstream(other / "w.bin") << "0123456789abcdef";
  std::filesystem::create_symlink(other / "w.bin", beside.m.folder() / "w.bin");
  beside.entry("location", "w.bin").refused("outside the model's folder");
  std::filesystem::remove_all(other);
  ExternalModel dangling;
  std::filesystem::create_symlink("nothing", dangling.m.folder() / "w.bin");
  dangling.entry("location", "w.bin").refused("No such file");
  ExternalModel loop;
  std::filesystem::create_symlink("w.bin", loop.m.folder() / "w.bin");
  loop.entry("location", "w.bin").refused("Too many levels of symbolic links");
}

// The cache of Hugging Face: blobs under their hashes, and links to them in a snapshot. Other
// programs (rsync, deduplication) give blobs further names.
TEST(ExternalData, CacheOfHuggingFace) {
  namespace fs = std::filesystem;
  const fs::path root = ModelBuilder().folder().string() + "-hub";
  const fs::path hub = root / "hub" / "models--org--name";
  const fs::path snapshot = hub / "snapshots" / "c0ffee" / "onnx";
  fs::create_directories(hub / "blobs");
  fs::create_directories(snapshot);
  ExternalModel e;
  fs::copy(e.data(), hub / "blobs" / "5eed");
  fs::create_hard_link(hub / "blobs" / "5eed", hub / "blobs" / "5eed2");
  e.entry("location", "model.onnx_data");
  fs::copy(e.m.write(), hub / "blobs" / "abcd");
  fs::create_symlink("../../../blobs/abcd", snapshot / "model.onnx");
  const auto import = [&](const fs::path& data, const ImportOptions& options = {}) {
    fs::remove(snapshot / "model.onnx_data");
    fs::create_symlink(data, snapshot / "model.onnx_data");
    return import_onnx(snapshot / "model.onnx", options).status().to_string();
  };
  EXPECT_EQ(import("../../../blobs/5eed"), "ok");
  EXPECT_EQ(import(hub / "blobs" / "5eed2"), "ok");
  // What belongs to other models, or is none of the cache's, stays out of reach.
  const fs::path other = root / "hub" / "models--org--other" / "blobs";
  fs::create_directories(other);
  fs::copy(hub / "blobs" / "5eed", other / "5eed");
  fs::copy(hub / "blobs" / "5eed", hub / "token");
  for (const fs::path& out : {other / "5eed", hub / "token"}) {
    EXPECT_NE(import(out).find("outside the model's folder"), std::string::npos) << import(out);
    ImportOptions allowed;
    allowed.data_roots = {"/usr/include", out.parent_path()};
    EXPECT_EQ(import(out, allowed), "ok");
  }
  ImportOptions missing;
  missing.data_roots = {"/no/such/folder"};
  EXPECT_NE(import("../../../blobs/5eed", missing).find("--data-root /no/such/folder: No such"),
            std::string::npos);
  fs::remove_all(root);
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
