#include "base/memory_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/tools.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

TEST(MemoryFile, HoldsWhatIsWrittenToItsPath) {
  const MemoryFile file = MemoryFile::create("test", 1 << 20).value();
  EXPECT_EQ(file.content().value(), "");
  const std::string content(100'000, 'x');
  FILE* out = std::fopen(file.path().c_str(), "w");
  ASSERT_NE(out, nullptr);
  std::fwrite(content.data(), 1, content.size(), out);
  std::fclose(out);
  EXPECT_EQ(file.content().value(), content);
}

TEST(MemoryFile, IsATools) {
  const MemoryFile from = MemoryFile::of("from", "a text").value(),
                   to = MemoryFile::create("to", 1 << 20).value();
  const Status copied = run_tool({"cp", from.path(), to.path()}, {&from, &to});
  EXPECT_TRUE(copied.ok()) << copied.to_string();
  EXPECT_EQ(to.content().value(), "a text");
  const Status closed = run_tool({"cp", from.path(), to.path()}, {&to});
  EXPECT_EQ(closed.code(), ErrorCode::kInternal) << "what is not handed over is not open";
}

// Nothing is written to a disk, so none can be full.
TEST(MemoryFile, ToolsNeedNoFolderOfTemporaryFiles) {
  ::setenv("TMPDIR", "/nonexistent", 1);
  EXPECT_THAT(run_tool({"cat", "/nonexistent/file"}).to_string(), HasSubstr("No such file"));
  ::unsetenv("TMPDIR");
}

TEST(MemoryFile, WhatMayNotBeWrittenIsUnavailable) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const Result<MemoryFile> large = MemoryFile::create("test", 4097),
                           small = MemoryFile::create("test", 4096),
                           content = MemoryFile::of("test", std::string(5000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(large.status().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(large.status().message(), HasSubstr("ulimit -f"));
  EXPECT_EQ(content.status().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(small.ok()) << small.status().to_string();
}

TEST(RunTool, SaysWhatCannotBeStarted) {
  const Status status = run_tool({"no-such-tool"});
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << "it may be installed";
  EXPECT_THAT(status.message(), HasSubstr("cannot start `no-such-tool`"));
  EXPECT_EQ(run_tool({"sh", "-c", "kill -9 $$"}).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(run_tool({"sh", "-c", "kill -11 $$"}).code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace collage
