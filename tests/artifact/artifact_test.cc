// Artifacts of kernels that need no library: what is written loads as the same program, from a file
// and from memory; what is damaged, or made for somebody else, is refused in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "artifact/artifact_file.h"
#include "artifact/damage.h"
#include "artifact/file_layouts.h"
#include "artifact/load_artifact.h"
#include "artifact/saved_plan.h"
#include "artifact/tiny_plan.h"
#include "artifact/write_artifact.h"
#include "base/files.h"
#include "collage/program.h"
#include "collage/version.h"
#include "runtime/executor.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::run_plan;
using testing::tiny_input;
using testing::tiny_plan;

SharedBytes text_bytes(const std::string& text) {
  auto holder = std::make_shared<const std::string>(text);
  return {{holder, holder->data()}, holder->size()};
}

class ArtifactTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_artifact_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const Plan& plan) {
    const fs::path path = folder_ / "tiny.collage";
    const Status status =
        write_artifact(path, plan, {1, "tiny.onnx"}, {{"module.json", text_bytes("the model")}});
    EXPECT_TRUE(status.ok()) << status.to_string();
    return path.string();
  }
  // A file with a manifest of the test's choice.
  Status load_with(const std::function<void(Manifest&)>& change) {
    SavedPlans saved = testing::saved_tiny_plan();
    Manifest manifest;
    manifest.version = COLLAGE_VERSION;
    manifest.model = "tiny.onnx";
    manifest.loaders = saved.loaders;
    change(manifest);
    const fs::path path = folder_ / "changed.collage";
    const Status written = write_zip(path, saved.entries, manifest);
    return written.ok() ? Program::load(path).status() : written;
  }

  fs::path folder_;
};

TEST_F(ArtifactTest, RunsAsThePlanDid) {
  const auto plan = tiny_plan();
  const std::string path = write(*plan);
  const std::string file = read_file(path).value();
  Result<Program> mapped = Program::load(path), copied = Program::load(file.data(), file.size());
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  ASSERT_TRUE(copied.ok()) << copied.status().to_string();
  EXPECT_EQ(mapped->inputs()[0].name, "x");
  EXPECT_EQ(mapped->outputs()[1].name, "copy of x");
  testing::expect_known_layouts(*ArtifactFile::open(path).value());
  for (const Program& artifact : {*mapped, *copied}) {
    Result<Context> context = artifact.make_context();
    ASSERT_TRUE(context.ok()) << context.status().to_string();
    for (int seed = 0; seed < 3; ++seed) {
      Result<std::vector<Tensor>> outputs = context->run({tiny_input(seed)});
      ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
      EXPECT_EQ(bytes_of(*outputs), bytes_of(run_plan(plan, tiny_input(seed))));
    }
  }
}

TEST_F(ArtifactTest, EntriesBeginOnPagesAndEqualFilesComeOfEqualPlans) {
  const std::string first = read_file(write(*tiny_plan())).value();
  EXPECT_EQ(first, read_file(write(*tiny_plan())).value());
  // Whatever the day: entries are of the first one that there is.
  EXPECT_EQ(first.substr(10, 4), std::string("\0\0\x21\0", 4));
  const Manifest manifest = read_zip(first).value();
  EXPECT_GE(manifest.entries.size(), 3u);
  for (const ManifestEntry& entry : manifest.entries) EXPECT_EQ(entry.offset % kPageBytes, 0u);
}

TEST_F(ArtifactTest, ContextsRunAtOnce) {
  const auto plan = tiny_plan();
  Result<Program> artifact = Program::load(write(*plan));
  ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
  ContextPool pool(*artifact, 2);
  std::vector<std::string> failures(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < failures.size(); ++t)
    threads.emplace_back([&, t] {
      const Tensor input = tiny_input(static_cast<int>(t));
      const std::string expected = bytes_of(run_plan(plan, input));
      Context own = artifact->make_context().value();
      for (int run = 0; run < 50; ++run) {
        const Result<std::vector<Tensor>> outputs =
            run % 2 == 0 ? own.run({input}) : pool.run({input});
        if (!outputs.ok())
          failures[t] = outputs.status().to_string();
        else if (bytes_of(*outputs) != expected)
          failures[t] = "other bits";
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST_F(ArtifactTest, RefusesWhatIsDamaged) {
  const std::string file = read_file(write(*tiny_plan())).value();
  const Manifest manifest = read_zip(file).value();
  int refused = 0;
  for (uint32_t number = 0; number < 1000; ++number) {
    const std::string bad = testing::damaged(file, manifest, number);
    if (bad == file) continue;  // an entry swapped with itself
    SCOPED_TRACE(number);
    Status status = Program::load(bad.data(), bad.size()).status();
    // What running does not read is refused when it is asked for, a wrong SHA-256 by `verify`.
    if (status.ok()) {
      const auto opened = ArtifactFile::from_memory(bad.data(), bad.size(), nullptr).value();
      status = opened->entry("module.json").status();
      if (status.ok()) status = opened->check_hashes();
    }
    EXPECT_TRUE(status.code() == ErrorCode::kBadModel || status.code() == ErrorCode::kUnavailable)
        << status.to_string();
    EXPECT_NE(status.message(), "");
    ++refused;
  }
  EXPECT_GE(refused, 900);
}

// A manifest whose seal is right is believed in nothing that the file itself says.
TEST_F(ArtifactTest, RefusesManifestsThatLie) {
  const std::string file = read_file(write(*tiny_plan())).value();
  const Manifest manifest = read_zip(file).value();
  const std::string text = manifest_text(manifest);
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    const std::string bad = testing::with_manifest(file, manifest, changed);
    return Program::load(bad.data(), bad.size()).status().to_string();
  };
  EXPECT_EQ(refusal("plan.json", "plan.json"), "ok");
  EXPECT_THAT(refusal("plan.json", "plan.jsom"), HasSubstr("'plan.jsom' is not as the manifest"));
  EXPECT_THAT(refusal("\"bytes\": 768", "\"bytes\": 767"), HasSubstr("not as the manifest says"));
  EXPECT_THAT(refusal("\"offset\": 4096", "\"offset\": 4097"), HasSubstr("lies outside the file"));
  const std::string& checksum = manifest.find(kWeightsEntry)->checksum;
  EXPECT_THAT(refusal(checksum, std::string(checksum.size(), '0')),
              HasSubstr("entry 'weights' is damaged: it does not fit its checksum"));
}

// What the checksums do not find, and what nobody asked for yet.
TEST_F(ArtifactTest, ComparesEveryEntryWithItsHash) {
  std::string file = read_file(write(*tiny_plan())).value();
  const auto hashes = [&] {
    return ArtifactFile::from_memory(file.data(), file.size(), nullptr).value()->check_hashes();
  };
  EXPECT_TRUE(hashes().ok());
  const ManifestEntry unread = *read_zip(file).value().find("module.json");
  file[unread.offset] ^= 1;
  EXPECT_TRUE(Program::load(file.data(), file.size()).ok());
  EXPECT_THAT(hashes().to_string(), HasSubstr("module.json"));
}

TEST_F(ArtifactTest, TakesNoMemoryForWhatIsNotRead) {
  constexpr size_t kBytes = size_t{8} << 20;
  const fs::path path = folder_ / "large.collage";
  ASSERT_TRUE(write_artifact(path, *tiny_plan(), {1, "m"},
                             {{"module.weights", text_bytes(std::string(kBytes, 'w'))}})
                  .ok());
  const auto file = ArtifactFile::open(path).value();
  const LoadedArtifact loaded = load_artifact(file).value();
  EXPECT_EQ(loaded.packed_bytes, file->manifest().find(kWeightsEntry)->bytes);
  EXPECT_EQ(file->unread_entry("module.weights").value().bytes, kBytes);
  if (file->resident_bytes() == 0) GTEST_SKIP() << "/proc says nothing of mappings";
  EXPECT_LT(file->resident_bytes(), kBytes / 4);
  EXPECT_TRUE(file->entry("module.weights").ok());
  EXPECT_GE(file->resident_bytes(), kBytes);
  file->forget("module.weights");
  EXPECT_LT(file->resident_bytes(), kBytes / 4);
  EXPECT_EQ(file->entry("module.weights").value().text()[kBytes - 1], 'w');
}

TEST_F(ArtifactTest, RefusesWhatIsNone) {
  EXPECT_THAT(Program::load(folder_ / "missing.collage").status().to_string(),
              HasSubstr("No such file"));
  EXPECT_THAT(Program::load(folder_).status().to_string(), HasSubstr("no file"));
  EXPECT_EQ(Program::load("", size_t{0}).status().code(), ErrorCode::kBadModel);
  const std::string text(1000, 'x');
  EXPECT_THAT(Program::load(text.data(), text.size()).status().to_string(),
              HasSubstr("no artifact"));
}

TEST_F(ArtifactTest, RefusesWhatWasMadeForAnother) {
  EXPECT_TRUE(load_with([](Manifest&) {}).ok());
  const Status version = load_with([](Manifest& m) { m.version = "0.0.9"; });
  EXPECT_EQ(version.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(version.to_string(), HasSubstr("it was made by Collage 0.0.9; this is"));
  const Status processor = load_with([](Manifest& m) { m.features = {"avx1024"}; });
  EXPECT_EQ(processor.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(processor.to_string(), HasSubstr("a processor with avx1024"));
  const Status library = load_with([](Manifest& m) { m.loaders["memory.copy"] = "7"; });
  EXPECT_EQ(library.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(library.to_string(), HasSubstr("kernels of memory.copy are of version 7; here is 1"));
  const Status loader = load_with([](Manifest& m) { m.loaders["nobody"] = "1"; });
  EXPECT_EQ(loader.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(loader.to_string(), HasSubstr("kernels of nobody"));
}

TEST_F(ArtifactTest, SaysWhoseKernelsCannotBeSaved) {
  struct Unsaved : Kernel {
    Status run(const KernelArgs&) override { return {}; }
  };
  auto plan = tiny_plan();
  plan->steps.push_back({"odd_relu", "odd", std::make_shared<Unsaved>(), {}, {}});
  const Status status = write_artifact(folder_ / "odd.collage", *plan, {1, "m"}, {});
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(status.to_string(), HasSubstr("odd_relu (odd): its kernels cannot be saved"));
  EXPECT_TRUE(fs::is_empty(folder_));
  // Nor can it be run twice at once.
  EXPECT_THAT(Executor::create_beside(plan, 1).status().to_string(),
              HasSubstr("odd_relu (odd): its kernels run once at a time"));
}

}  // namespace
}  // namespace collage
