// Plans over the memory of a device that does its work late: when somebody waits for it.
#include "runtime/device_memory.h"

#include <gmock/gmock.h>

#include "runtime/executor.h"
#include "simulated/memory.h"

namespace collage {
namespace {

using simulated::Memory;
using simulated::Queue;

const VirtualDevice kDevice{"late", 0, ""};
constexpr size_t kDeviceBytes = 32;
const TensorType kType{{8}, DType::kFloat32};

std::shared_ptr<Queue> queue() {
  static const auto instance = std::make_shared<Queue>();
  return instance;
}
std::shared_ptr<Memory> memory(size_t capacity = 1 << 20) {
  return std::make_shared<Memory>(kDevice, queue(), capacity, 0);
}

// Doubles; on the device, or from the host to it, or back.
class Doubling : public Kernel {
 public:
  Doubling(Memory& memory, bool works = true) : memory_(memory), works_(works) {}
  Status run(const KernelArgs& args) override {
    queue()->add([this, from = args.inputs[0], to = args.outputs[0]]() -> Status {
      if (!works_) return internal_error("the device is on fire");
      const auto* in = static_cast<const float*>(memory_.contents(from, kDeviceBytes));
      auto* out = static_cast<float*>(memory_.contents(to, kDeviceBytes));
      if (in == nullptr || out == nullptr) return internal_error("beside its memory");
      for (size_t i = 0; i < 8; ++i) out[i] = 2 * in[i];
      return {};
    });
    return {};
  }

 private:
  Memory& memory_;
  bool works_;
};

class Moving : public Kernel {
 public:
  Moving(Memory& memory, bool up) : memory_(memory), up_(up) {}
  Status run(const KernelArgs& args) override {
    return up_ ? memory_.write(args.outputs[0], args.inputs[0], kDeviceBytes)
               : memory_.read(args.outputs[0], args.inputs[0], kDeviceBytes);
  }

 private:
  Memory& memory_;
  bool up_;
};

// x -> device -> doubled twice there -> y
std::shared_ptr<Plan> round_trip(Memory& memory, bool works = true) {
  auto plan = std::make_shared<Plan>();
  plan->inputs = {{"x", kType}};
  plan->outputs = {{"y", kType}};
  const auto buffer = [&](Buffer::Place place, const VirtualDevice& device, size_t offset) {
    Buffer b;
    b.place = place;
    b.offset = offset;
    b.bytes = kDeviceBytes;
    b.type = kType;
    b.encoding.device = device;
    plan->buffers.push_back(b);
  };
  buffer(Buffer::Place::kInput, {}, 0);
  for (size_t i = 0; i < 3; ++i) buffer(Buffer::Place::kArena, kDevice, 512 * i);
  buffer(Buffer::Place::kOutput, {}, 0);
  plan->steps.push_back({"up", "", std::make_shared<Moving>(memory, true), {0}, {1}});
  plan->steps.push_back({"a", "late", std::make_shared<Doubling>(memory), {1}, {2}, 0, kDevice});
  plan->steps.push_back(
      {"b", "late", std::make_shared<Doubling>(memory, works), {2}, {3}, 0, kDevice});
  plan->steps.push_back({"down", "", std::make_shared<Moving>(memory, false), {3}, {4}});
  plan->device_arenas = {{kDevice, 1024 + kDeviceBytes}};
  return plan;
}

TEST(DeviceMemory, ProgramsRunOnIt) {
  const auto late = memory();
  register_device_memory(kDevice, late);
  Result<Executor> executor = Executor::create(round_trip(*late), 1);
  ASSERT_TRUE(executor.ok()) << executor.status().to_string();
  const Tensor x = Tensor::from<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<Tensor> outputs(1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(executor->run(std::span<const Tensor>(&x, 1), outputs).ok());
    for (size_t e = 0; e < 8; ++e) EXPECT_EQ(outputs[0].data<float>()[e], 4.f * float(e + 1));
  }
}

TEST(DeviceMemory, ErrorsOfADeviceAreTheRuns) {
  const auto late = memory();
  register_device_memory(kDevice, late);
  Result<Executor> executor = Executor::create(round_trip(*late, false), 1);
  ASSERT_TRUE(executor.ok()) << executor.status().to_string();
  const Tensor x = Tensor::from<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<Tensor> outputs(1);
  EXPECT_THAT(executor->run(std::span<const Tensor>(&x, 1), outputs).to_string(),
              ::testing::HasSubstr("the device is on fire"));
}

TEST(DeviceMemory, ThatIsTooSmallIsAnError) {
  const auto small = memory(100);
  register_device_memory(kDevice, small);
  const Result<Executor> executor = Executor::create(round_trip(*small), 1);
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.status().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(executor.status().message(),
              ::testing::HasSubstr("late:0: no room for 1056 bytes: 100 of 100 are left"));
}

TEST(DeviceMemory, OfAnUnknownDeviceIsAnError) {
  const Result<DeviceMemory*> absent = require_device_memory({"absent", 1, "shared"});
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.status().message(),
            "no backend offers memory of the device absent:1/shared here");
}

TEST(DeviceMemory, KillsAHostThatTouchesIt) {
  const auto late = memory();
  const std::shared_ptr<void> block = *late->allocate(64);
  EXPECT_DEATH(*static_cast<volatile char*>(block.get()) = 1, "");
  volatile char seen = 0;
  EXPECT_DEATH(seen = *static_cast<volatile char*>(block.get()), "");
  (void)seen;
}

}  // namespace
}  // namespace collage
