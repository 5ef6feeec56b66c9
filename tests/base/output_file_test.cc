// Where a file that somebody named ends up, whatever stands at its place.
#include "base/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>
#include <set>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/scratch_folder.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutputFileTest : public ::testing::Test {
 protected:
  const fs::path& folder() const { return folder_.path(); }
  size_t entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder()), fs::directory_iterator()));
  }
  const ScratchFolder folder_ =
      ScratchFolder::create(fs::temp_directory_path(), "collage-output-test-").value();
};

TEST_F(OutputFileTest, IsThereOnceItIsPublished) {
  const fs::path path = folder() / "x.txt";
  {
    Result<OutputFile> file = OutputFile::create(path);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    EXPECT_TRUE(write_all(file->descriptor(), "new", 3));
    EXPECT_FALSE(fs::exists(path));
    EXPECT_TRUE(file->publish().ok());
  }
  EXPECT_EQ(*read_file(path), "new");
  EXPECT_EQ(entries(), 1u);
  { ASSERT_TRUE(OutputFile::create(path).ok()); }
  EXPECT_EQ(*read_file(path), "new");
  EXPECT_EQ(entries(), 1u);
}

// Somebody who may write to the folder cannot put a link where the temporary file will be.
TEST_F(OutputFileTest, TemporaryNamesAreNotForeseen) {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) {
    Result<OutputFile> file = OutputFile::create(folder() / "x.txt");
    ASSERT_TRUE(file.ok());
    const std::string name = file->temporary().filename().string();
    EXPECT_EQ(name.find(std::to_string(::getpid())), std::string::npos) << name;
    names.insert(name);
    struct stat info {};
    EXPECT_EQ(::lstat(file->temporary().c_str(), &info), 0);
    EXPECT_TRUE(S_ISREG(info.st_mode));
  }
  EXPECT_EQ(names.size(), 100u);
}

TEST_F(OutputFileTest, DevicesStayWhatTheyAre) {
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat("/dev/null", &before), 0);
  EXPECT_TRUE(write_file_atomically("/dev/null", "nothing").ok());
  const fs::path link = folder() / "null";
  fs::create_symlink("/dev/null", link);
  EXPECT_TRUE(write_file_atomically(link, "nothing").ok());
  ASSERT_EQ(::stat("/dev/null", &after), 0);
  EXPECT_TRUE(S_ISCHR(after.st_mode));
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST_F(OutputFileTest, PipesAreWrittenInto) {
  const fs::path pipe = folder() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] {
    const int fd = ::open(pipe.c_str(), O_RDONLY);
    char text[64];
    for (ssize_t n; (n = ::read(fd, text, sizeof text)) > 0;)
      read.append(text, static_cast<size_t>(n));
    ::close(fd);
  });
  EXPECT_TRUE(write_file_atomically(pipe, "through the pipe").ok());
  reader.join();
  EXPECT_EQ(read, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(fs::symlink_status(pipe)));
}

// As /dev/stdout is, whatever it leads to.
TEST_F(OutputFileTest, OpenFilesAreWrittenAtTheirEnd) {
  const fs::path log = folder() / "log";
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(write_all(fd, "before\n", 7));
  const fs::path named = "/proc/self/fd/" + std::to_string(fd);
  EXPECT_TRUE(write_file_atomically(named, "report\n").ok());
  fs::create_symlink("/dev/fd/" + std::to_string(fd), folder() / "out");
  EXPECT_TRUE(write_file_atomically(folder() / "out", "again\n").ok());
  EXPECT_TRUE(write_all(fd, "after\n", 6));
  ::close(fd);
  EXPECT_EQ(*read_file(log), "before\nreport\nagain\nafter\n");
  EXPECT_FALSE(write_file_atomically(named, "closed").ok());
}

TEST_F(OutputFileTest, LinksAreFollowed) {
  fs::create_directory(folder() / "far");
  const fs::path target = folder() / "far" / "target.txt";
  fs::create_symlink("far/target.txt", folder() / "link");
  fs::create_symlink(folder() / "link", folder() / "second");
  // A target that is not there yet is made.
  EXPECT_TRUE(write_file_atomically(folder() / "second", "one").ok());
  EXPECT_EQ(*read_file(target), "one");
  EXPECT_TRUE(write_file_atomically(folder() / "link", "two").ok());
  EXPECT_EQ(*read_file(target), "two");
  EXPECT_TRUE(fs::is_symlink(folder() / "link"));
  EXPECT_TRUE(fs::is_symlink(folder() / "second"));
  fs::create_symlink("loop", folder() / "loop");
  EXPECT_THAT(write_file_atomically(folder() / "loop", "x").to_string(), HasSubstr("loop"));
}

TEST_F(OutputFileTest, SaysWhatCannotBe) {
  for (const auto& write : {+[](const fs::path& path) { return write_file_atomically(path, "x"); },
                            +[](const fs::path& path) { return OutputFile::check(path); }}) {
    EXPECT_THAT(write(folder() / "missing" / "x").to_string(), HasSubstr("No such file"));
    EXPECT_THAT(write(folder()).to_string(), HasSubstr("Is a directory"));
    EXPECT_THAT(write("/proc/self/fd/987").to_string(), HasSubstr("Bad file descriptor"));
  }
  EXPECT_TRUE(OutputFile::check(folder() / "x").ok());
  EXPECT_TRUE(OutputFile::check("/dev/null").ok());
  EXPECT_EQ(entries(), 0u);
}

}  // namespace
}  // namespace collage
