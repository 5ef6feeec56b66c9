// Files that are read where they are mapped.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/resident_memory.h"
#include "base/scratch_folder.h"

namespace collage {
namespace {

class MappedFiles : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    auto file = MappedFile::open(fd);
    ::close(fd);
    return file;
  }
  const ScratchFolder folder_ =
      ScratchFolder::create(std::filesystem::temp_directory_path(), "collage_mapped_file").value();
};

TEST_F(MappedFiles, AreMappedOnce) {
  const auto path = write("a", "some weights");
  const auto first = open(path).value(), second = open(path).value();
  EXPECT_EQ(first->data(), second->data());
  EXPECT_EQ(std::string(first->data(), first->bytes()), "some weights");
  EXPECT_NE(open(write("b", "some weights")).value()->data(), first->data());
}

TEST_F(MappedFiles, AChangedFileIsAnother) {
  const auto path = write("a", "old");
  const auto first = open(path).value();
  std::filesystem::rename(write("new", "new"), path);
  const auto second = open(path).value();
  EXPECT_EQ(std::string(first->data(), 3), "old");
  EXPECT_EQ(std::string(second->data(), 3), "new");
  // The same file, longer.
  std::ofstream(path, std::ios::binary | std::ios::app) << "er";
  EXPECT_EQ(open(path).value()->bytes(), 5U);
}

TEST_F(MappedFiles, KnowTheirAddresses) {
  const std::string other(8, 'x');
  const char* data = nullptr;
  {
    const auto file = open(write("a", other)).value();
    data = file->data();
    EXPECT_TRUE(lies_in_mapped_file(data));
    EXPECT_TRUE(lies_in_mapped_file(data + 7));
    EXPECT_FALSE(lies_in_mapped_file(data + 8));
    EXPECT_FALSE(lies_in_mapped_file(data - 1));
    EXPECT_FALSE(lies_in_mapped_file(other.data()));
  }
  EXPECT_FALSE(lies_in_mapped_file(data));
}

TEST_F(MappedFiles, GiveTheirPagesBack) {
  constexpr size_t kBytes = size_t{4} << 20;
  const auto file = open(write("a", std::string(kBytes, 'x'))).value();
  size_t count = 0;
  for (size_t i = 0; i < kBytes; i += 4096) count += file->data()[i] == 'x';
  EXPECT_EQ(count, kBytes / 4096);
  EXPECT_GE(resident_bytes_of(file->data(), kBytes), kBytes / 2);
  forget_mapped_pages();
  EXPECT_EQ(resident_bytes_of(file->data(), kBytes), 0U);
  EXPECT_EQ(file->data()[kBytes - 1], 'x');
}

TEST_F(MappedFiles, RefuseWhatIsNoFile) {
  EXPECT_FALSE(open(folder_.path()).ok());
  EXPECT_FALSE(open(write("empty", "")).ok());
  EXPECT_FALSE(MappedFile::open(-1).ok());
}

}  // namespace
}  // namespace collage
