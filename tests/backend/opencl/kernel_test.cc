// The kernel object beside what it computes: twins, what is saved and loaded, memory of a device.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "check.h"
#include "measure/staged_kernel.h"
#include "runtime/device_memory.h"
#include "saved_layouts.h"

namespace collage::opencl {
namespace {

using testing::Graph;
using testing::SavedLayouts;

class OpenClKernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_DEVICE();
    Graph graph;
    Expr out = graph.call("nn.dense", {graph.input({5, 24}), graph.constant({16, 24})});
    out = graph.call("nn.softmax", {out}, {{"axis", int64_t{-1}}});
    use(graph.function(out), 0);
  }

  void use(const Function& function, size_t variant) {
    function_ = function;
    inputs_ = testing::random_inputs(function_);
    const auto variants = staged_backend().variants(function_, first_device(), options_);
    ASSERT_TRUE(variants.ok());
    variant_ = variants->at(variant);
    auto kernel = device_backend().compile(function_, variant_, first_device(), options_);
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    kernel_ = std::move(*kernel);
  }

  Tensor run(std::shared_ptr<Kernel> kernel) {
    const std::vector<TensorType> types = function_->result_type().leaves();
    auto staged =
        StagedKernel::around(std::move(kernel), variant_, {function_->params[0]->tensor_type()},
                             types, first_device().device);
    EXPECT_TRUE(staged.ok()) << staged.status().to_string();
    Tensor result = Tensor::empty(types[0].dtype, types[0].shape);
    void* in = const_cast<void*>(static_cast<const void*>(inputs_[0].raw()));
    void* out = result.raw();
    const Status status = (*staged)->run({&in, &out, nullptr});
    EXPECT_TRUE(status.ok()) << status.to_string();
    return result;
  }

  /// What is loaded of the saved kernel gives the same bits, and stays within its buffers.
  void check_saved() {
    const Tensor expected = run(kernel_);
    Result<SavedKernel> saved = kernel_->save();
    ASSERT_TRUE(saved.ok()) << saved.status().to_string();
    const KernelLoader* loader = find_kernel_loader(saved->loader);
    ASSERT_NE(loader, nullptr);
    SavedLayouts::all().expect_known_kernel(saved->loader, saved->description);
    saved->buffers = testing::buffers_of(function_, variant_);
    const auto loaded = loader->load(*saved, 2);
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    EXPECT_TRUE(same_bits(run(*loaded), expected));
    saved->buffers.outputs[0] /= 2;
    EXPECT_FALSE(loader->load(*saved, 2).ok()) << "it would leave its buffers";
  }

  static bool same_bits(const Tensor& a, const Tensor& b) {
    return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }

  const CompileOptions options_{2, ""};
  Function function_;
  std::vector<Tensor> inputs_;
  Variant variant_;
  std::shared_ptr<Kernel> kernel_;
};

TEST_F(OpenClKernelTest, TwinsGiveTheSameBitsAtOnce) {
  const Tensor expected = run(kernel_);
  auto twin = kernel_->twin();
  ASSERT_TRUE(twin.ok());
  Tensor others[2];
  std::thread first([&] { others[0] = run(kernel_); });
  std::thread second([&] { others[1] = run(*twin); });
  first.join();
  second.join();
  EXPECT_TRUE(same_bits(others[0], expected));
  EXPECT_TRUE(same_bits(others[1], expected));
}

TEST_F(OpenClKernelTest, SavedAndLoadedItGivesTheSameBits) { check_saved(); }

TEST_F(OpenClKernelTest, ProductsOfTheLibraryAreSavedAndLoaded) {
  REQUIRE_DEVICE();
  Graph graph;
  const Expr product = graph.call("nn.dense", {graph.input({5, 24}), graph.constant({16, 24})});
  const Function function = graph.function(product);
  const auto variants = staged_backend().variants(function, first_device(), options_);
  ASSERT_TRUE(variants.ok());
  for (const std::string name : {"clblast", "clblast repacked"}) {
    const auto listed = std::find_if(variants->begin(), variants->end(),
                                     [&](const Variant& one) { return one.name == name; });
    ASSERT_NE(listed, variants->end()) << name;
    use(function, static_cast<size_t>(listed - variants->begin()));
    SCOPED_TRACE(name);
    check_saved();
    const bool repacked = name == "clblast repacked";
    SavedLayouts::all().expect_known_packing(kernel_->save().value(),
                                             repacked ? "repacked" : "as_it_is");
  }
}

TEST_F(OpenClKernelTest, AnAddressOfTheHostIsAnError) {
  std::vector<char> host(4096);
  void *in = host.data(), *out = host.data() + 2048;
  const Status status = kernel_->run({&in, &out, nullptr});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), ::testing::HasSubstr("not the device's"));
  // It runs again with the right ones.
  run(kernel_);
}

TEST_F(OpenClKernelTest, MemoryKeepsWhatIsWrittenAtAnOffset) {
  const auto memory = require_device_memory(first_device().device);
  ASSERT_TRUE(memory.ok());
  const auto block = (*memory)->allocate(1000);
  ASSERT_TRUE(block.ok());
  char* begin = static_cast<char*>(block->get());
  const std::string text = "from 512 on";
  std::string all(1000, '.');
  ASSERT_TRUE((*memory)->write(begin, all.data(), all.size()).ok());
  ASSERT_TRUE((*memory)->write(begin + 512, text.data(), text.size()).ok());
  std::string back(text.size(), ' ');
  ASSERT_TRUE((*memory)->read(back.data(), begin + 512, back.size()).ok());
  EXPECT_EQ(back, text);
  back.resize(all.size());
  ASSERT_TRUE((*memory)->read(back.data(), begin, back.size()).ok());
  EXPECT_EQ(back, all.replace(512, text.size(), text));
  back.resize(text.size());
  EXPECT_FALSE((*memory)->read(back.data(), begin + 995, back.size()).ok());
  EXPECT_TRUE((*memory)->synchronise().ok());
}

TEST_F(OpenClKernelTest, WhatIsWrittenWhileItIsBusyMayChangeAtOnce) {
  const auto memory = require_device_memory(first_device().device);
  ASSERT_TRUE(memory.ok());
  constexpr size_t kBytes = 1 << 20, kBegin = 4096;  // of a block
  const size_t in_bytes = inputs_[0].bytes(), out_bytes = size_t{5} * 16 * sizeof(float);
  const auto in = (*memory)->allocate(in_bytes), out = (*memory)->allocate(out_bytes);
  ASSERT_TRUE(in.ok() && out.ok());
  ASSERT_TRUE((*memory)->write(in->get(), inputs_[0].raw(), in_bytes).ok());
  std::vector<std::shared_ptr<void>> blocks;
  std::vector<char> host(kBytes);
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(*(*memory)->allocate(kBegin + kBytes));
    void *from = in->get(), *to = out->get();
    ASSERT_TRUE(kernel_->run({&from, &to, nullptr}).ok());
    std::fill(host.begin(), host.end(), static_cast<char>('a' + i));
    char* at = static_cast<char*>(blocks.back().get()) + kBegin;
    ASSERT_TRUE((*memory)->write(at, host.data(), kBytes).ok());
  }
  ASSERT_TRUE(kernel_->finish().ok());
  for (int i = 0; i < 8; ++i) {
    const char* at = static_cast<char*>(blocks[static_cast<size_t>(i)].get()) + kBegin;
    ASSERT_TRUE((*memory)->read(host.data(), at, kBytes).ok());
    EXPECT_EQ(std::count(host.begin(), host.end(), 'a' + i), static_cast<std::ptrdiff_t>(kBytes));
  }
}

TEST_F(OpenClKernelTest, DevicesThatAreNotThereAreErrors) {
  const auto memory = require_device_memory({"opencl", 15, ""});
  ASSERT_TRUE(memory.ok());
  const auto block = (*memory)->allocate(8);
  ASSERT_FALSE(block.ok());
  EXPECT_EQ(block.status().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(block.status().message(), ::testing::HasSubstr("no device 15"));
}

}  // namespace
}  // namespace collage::opencl
