#include "fuzz/fuzz.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace collage::fuzz {
namespace {

constexpr unsigned kMostSeconds = 60;   // for one input, on a machine that has other work as well
constexpr long kMostMemory = 4L << 20;  // in KB, of the process

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// For files of this process: in memory, where there is such a file system. Every input is written
// to files, which a disk takes longer for than whoever reads them.
std::filesystem::path file_for(const std::string& what) {
  std::error_code ec;
  const bool shared = std::filesystem::is_directory("/dev/shm", ec);
  return (shared ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
         ("collage-fuzz-" + what + "-" + std::to_string(getpid()));
}

char on_hang[512];
void hangs(int) {
  [[maybe_unused]] const ssize_t n = write(2, on_hang, strnlen(on_hang, sizeof on_hang));
  std::abort();
}

// Without AddressSanitizer, which takes address space of its own, a request for more fails.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__)
  const rlimit most{size_t{16} << 30, size_t{16} << 30};
  setrlimit(RLIMIT_AS, &most);
#endif
}

}  // namespace

const std::string& scratch_folder() {
  static const struct Folder {
    Folder() {
      path = file_for("files");
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  } folder;
  return folder.path;
}

void use_scratch_cache() {
  ::setenv("COLLAGE_CACHE", (scratch_folder() + "/cache").c_str(), 1);
  ::setenv("COLLAGE_MEASURE_TIMEOUT", "10", 1);
  ::setenv("COLLAGE_MEASURE_MEMORY", "1000", 1);
}

void run(const FuzzTarget& target, int inputs) {
  ASSERT_FALSE(target.seeds.empty()) << target.name;
  if (const char* file = std::getenv("COLLAGE_FUZZ_FILE")) {
    target.run(*read_file(file));
    return;
  }
  limit_memory();
  for (const std::string& seed : target.seeds)
    EXPECT_EQ(target.run(seed), Outcome::kAccepted) << target.name << ": a seed\n" << seed;
  const int first = from_environment("COLLAGE_FUZZ_FIRST", 0);
  inputs = from_environment("COLLAGE_FUZZ_INPUTS", inputs);
  const std::filesystem::path trace = file_for(target.name);  // for who looks into a failure
  int read = 0, accepted = 0;
  double longest = 0;
  signal(SIGALRM, hangs);
  for (int i = 0; i < inputs && !::testing::Test::HasFailure(); ++i) {
    Random random(static_cast<uint64_t>(first + i) + 1);
    const std::string input = target.make(random);
    ASSERT_TRUE(write_file_atomically(trace, input).ok());
    std::snprintf(on_hang, sizeof on_hang, "%s: input %d hangs; it is in %s\n", target.name.c_str(),
                  first + i, trace.c_str());
    alarm(kMostSeconds);
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = target.run(input);
    alarm(0);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    longest = std::max(longest, seconds.count());
    read += outcome != Outcome::kNoSyntax;
    accepted += outcome == Outcome::kAccepted;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    EXPECT_LT(usage.ru_maxrss, kMostMemory);
    EXPECT_FALSE(::testing::Test::HasFailure())
        << target.name << ": input " << first + i << ", in " << trace;
  }
  if (::testing::Test::HasFailure()) return;
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0) << target.name;
#endif
  std::filesystem::remove(trace);
  EXPECT_GE(2 * read, inputs) << target.name;
  std::printf("%s: %d inputs, %d past the first parse, %d accepted, at most %.2f s\n",
              target.name.c_str(), inputs, read, accepted, longest);
}

}  // namespace collage::fuzz
