// Folders of temporary files, and what becomes of those whose process was killed.
#include "base/scratch_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace collage {
namespace {

namespace fs = std::filesystem;

class ScratchFolderTest : public ::testing::Test {
 protected:
  // A child that makes a folder and says its name, then waits to be killed.
  pid_t child(fs::path* made) {
    int said[2];
    EXPECT_EQ(::pipe(said), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const Result<ScratchFolder> folder = ScratchFolder::create(parent_.path(), "kind-");
      std::ofstream(folder->path() / "kernel.o") << "object";
      const std::string name = folder->path().string() + "\n";
      if (::write(said[1], name.data(), name.size()) < 0) ::_exit(1);
      for (;;) ::pause();
    }
    std::string name;
    for (char c = 0; ::read(said[0], &c, 1) == 1 && c != '\n';) name += c;
    ::close(said[0]);
    ::close(said[1]);
    *made = name;
    return pid;
  }
  void kill_child(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  const ScratchFolder parent_ =
      ScratchFolder::create(fs::temp_directory_path(), "collage-scratch-test-").value();
};

TEST_F(ScratchFolderTest, GoesWithTheObject) {
  fs::path path;
  {
    ScratchFolder made = ScratchFolder::create(parent_.path(), "kind-").value();
    const ScratchFolder moved = std::move(made);
    path = moved.path();
    std::ofstream(path / "file") << "text";
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ScratchFolderTest, WhatTheKilledLeaveGoesAndWhatTheLivingHoldStays) {
  fs::path left, held;
  const pid_t first = child(&left);
  kill_child(first);
  EXPECT_TRUE(fs::exists(left / "kernel.o"));
  const pid_t second = child(&held);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(held));
  // Others' files, and those of another kind or with longer names.
  const fs::path other = parent_.path() / "sort-ABCDEF", longer = parent_.path() / "kind-ABCDEFG";
  fs::create_directory(other);
  fs::create_directory(longer);
  std::ofstream(parent_.path() / "kind-ABCDEF") << "a file";
  fs::create_directory_symlink(other, parent_.path() / "kind-FEDCBA");
  const ScratchFolder own = ScratchFolder::create(parent_.path(), "kind-").value();
  for (const fs::path& path : {held / "kernel.o", other, longer, parent_.path() / "kind-ABCDEF",
                               parent_.path() / "kind-FEDCBA"})
    EXPECT_TRUE(fs::exists(path)) << path;
  kill_child(second);
}

}  // namespace
}  // namespace collage
