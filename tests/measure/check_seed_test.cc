// The seed of checks: another in every process, one within a process, or the one that is asked for.
#include "verify/check_seed.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

namespace collage {
namespace {

constexpr char kDrew[] = "the seed of this process: ";

TEST(CheckSeed, IsOneWithinAProcess) {
  const uint32_t seed = check_seed();
  EXPECT_EQ(check_seed(), seed);
  std::cout << kDrew << seed << "\n";
}

// The seed that a process of this program prints, which is begun by the shell with `how`.
std::string seed_of_a_process(const std::string& how) {
  const std::string command = how + " '" +
                              std::filesystem::read_symlink("/proc/self/exe").string() +
                              "' --gtest_filter=CheckSeed.IsOneWithinAProcess";
  FILE* output = ::popen(command.c_str(), "r");
  std::string text;
  for (int letter = std::fgetc(output); letter != EOF; letter = std::fgetc(output))
    text += static_cast<char>(letter);
  EXPECT_EQ(::pclose(output), 0) << text;
  const size_t at = text.find(kDrew);
  if (at == std::string::npos) return "";
  const size_t begin = at + sizeof kDrew - 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(CheckSeed, IsAnotherInEveryProcess) {
  const std::string drawn = "env -u COLLAGE_CHECK_SEED";
  const std::string first = seed_of_a_process(drawn), second = seed_of_a_process(drawn);
  EXPECT_FALSE(first.empty());
  EXPECT_NE(first, second);
  EXPECT_EQ(seed_of_a_process("env COLLAGE_CHECK_SEED=20261129"), "20261129");
}

}  // namespace
}  // namespace collage
