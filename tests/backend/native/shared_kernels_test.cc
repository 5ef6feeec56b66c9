// A folder of compiled kernels that machines share: what one built another loads, which compiles
// nothing; what its owner did not seal is no code.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "backend/native/codegen/code_cache.h"
#include "backend/native/native_backend.h"
#include "base/files.h"
#include "base/scratch_folder.h"
#include "check.h"

namespace collage::native {
namespace {

namespace fs = std::filesystem;

class SharedKernels : public ::testing::Test {
 protected:
  void SetUp() override { shared_ = folder("shared"); }
  void TearDown() override {
    ::unsetenv("COLLAGE_CACHE");
    ::setenv("PATH", path_.c_str(), 1);
  }
  std::string folder(const std::string& name) const {
    const std::string path = scratch_->path() / name;
    ::mkdir(path.c_str(), 0700);
    return path;
  }
  // From now on this process is that machine, of that owner; where it keeps kernels.
  std::string machine(const std::string& name, char owner, bool compiles) const {
    const std::string cache = folder(name);
    EXPECT_TRUE(write_file_atomically(cache + "/seal.key", std::string(32, owner)).ok());
    ::setenv("COLLAGE_CACHE", cache.c_str(), 1);
    ::setenv("PATH", compiles ? path_.c_str() : cache.c_str(), 1);
    std::string kernels = folder(name + "/kernels");
    (void)::symlink(shared_.c_str(), (kernels + "/shared").c_str());
    return kernels;
  }
  // Its result on ones, or why there is no kernel. Nothing of it stays in the process.
  static std::string run(const std::string& kernels, float added = 2.5F) {
    const Expr x = var("x", {40}, DType::kFloat32);
    const Function sum = function({x}, call("add", {x, make_scalar(added)}));
    const CompileOptions options{1, kernels};
    const std::unique_ptr<Backend> native = make_native_backend();
    const Target target{"native", {}, {}};
    EXPECT_TRUE(native->available().ok());
    const auto variants = native->variants(sum, target, options);
    const auto kernel = native->compile(sum, variants.value()[0], target, options);
    if (!kernel) return kernel.status().to_string();
    Tensor in = Tensor::from<float>({40}, std::vector<float>(40, 1));
    Tensor out = Tensor::empty(DType::kFloat32, {40});
    void* inputs[] = {in.data<float>()};
    void* outputs[] = {out.data<float>()};
    EXPECT_TRUE((*kernel)->run({inputs, outputs, nullptr}).ok());
    return std::to_string(out.data<float>()[39]);
  }
  static std::vector<fs::path> files_in(const std::string& path) {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      files.push_back(entry.path());
    return files;
  }

  const Result<ScratchFolder> scratch_ =
      ScratchFolder::create(fs::temp_directory_path(), "shared-kernels-");
  const std::string path_ = std::getenv("PATH");
  std::string shared_;
};

TEST_F(SharedKernels, OneBuildsAndAnotherCompilesNothing) {
  const std::string runner = machine("runner", 'a', false);
  EXPECT_NE(run(runner).find("nobody built"), std::string::npos);
  const int64_t before = compiled_kernels();
  run(machine("builder", 'a', true));
  EXPECT_EQ(compiled_kernels(), before + 1);
  ASSERT_EQ(files_in(shared_).size(), 1U);
  machine("runner", 'a', false);
  EXPECT_EQ(run(runner), "3.500000");
  EXPECT_EQ(compiled_kernels(), before + 1);
  // It keeps them: the folder may be gone.
  fs::remove_all(shared_);
  EXPECT_EQ(run(runner), "3.500000");
  EXPECT_EQ(compiled_kernels(), before + 1);
}

TEST_F(SharedKernels, WhatWasCompiledBeforeIsSharedLater) {
  const std::string builder = machine("builder", 'a', true);
  fs::remove(builder + "/shared");
  run(builder);
  EXPECT_EQ(files_in(shared_).size(), 0U);
  machine("builder", 'a', true);
  const int64_t before = compiled_kernels();
  run(builder);
  EXPECT_EQ(compiled_kernels(), before);
  EXPECT_EQ(files_in(shared_).size(), 1U);
}

TEST_F(SharedKernels, WhatItsOwnerDidNotSealIsNotLoaded) {
  const std::string builder = machine("builder", 'a', true);
  run(builder);
  const fs::path file = files_in(shared_).at(0);
  const std::string content = read_file(file).value();
  const auto is_refused = [&](const std::string& name, char owner) {
    return run(machine(name, owner, false)).find("nobody built") != std::string::npos;
  };
  EXPECT_TRUE(is_refused("stranger", 'b'));
  std::string changed = content;
  changed[changed.size() / 2] ^= 1;
  ASSERT_TRUE(write_file_atomically(file, changed).ok());
  EXPECT_TRUE(is_refused("runner", 'a'));
  // Another kernel of the owner's under its name.
  fs::remove(file);
  machine("builder", 'a', true);
  EXPECT_EQ(run(builder, 4.5F), "5.500000");
  fs::rename(files_in(shared_).at(0), file);
  EXPECT_TRUE(is_refused("runner", 'a'));
  // Who compiles replaces it.
  const std::string second = machine("second", 'a', true);
  EXPECT_EQ(run(second), "3.500000");
  EXPECT_EQ(run(machine("runner", 'a', false)), "3.500000");
}

}  // namespace
}  // namespace collage::native
