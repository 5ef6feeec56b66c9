// Which tensors share bytes, and what the executor says of them.
#include "runtime/memory_overlap.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

#include "runtime/executor.h"

namespace collage {
namespace {

using Ints = std::vector<int64_t>;

// The addresses of its bytes, one by one.
std::multiset<const char*> bytes_of(const char* begin, size_t item, const Ints& shape,
                                    const Ints& strides) {
  std::multiset<const char*> bytes;
  Ints index(shape.size(), 0);
  for (;;) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) offset += index[d] * strides[d];
    for (size_t b = 0; b < item; ++b)
      bytes.insert(begin + offset * static_cast<int64_t>(item) + static_cast<int64_t>(b));
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return bytes;
  }
}

TEST(Overlap, IsThatOfTheElements) {
  std::mt19937 random(7);
  const auto between = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  const std::vector<char> memory(4096);
  int apart = 0, together = 0;
  for (int round = 0; round < 3000; ++round) {
    struct One {
      const char* begin;
      size_t item;
      Ints shape, strides;
      TensorMemory place() const { return {begin, item, shape, strides}; }
      std::multiset<const char*> bytes() const { return bytes_of(begin, item, shape, strides); }
    };
    const auto any = [&] {
      One one{memory.data() + 2048 + between(-40, 40), size_t{1} << between(0, 3), {}, {}};
      for (int64_t d = between(0, 3); d > 0; --d) {
        one.shape.push_back(between(1, 3));
        one.strides.push_back(between(-5, 5));
      }
      return one;
    };
    const One a = any(), b = any();
    bool share = false;
    const std::multiset<const char*> theirs = b.bytes();
    for (const char* byte : a.bytes()) share = share || theirs.count(byte) > 0;
    // Without dimensions there are no strides, which makes it dense.
    EXPECT_EQ(overlap(a.place(), b.place()), share) << round;
    ++(share ? together : apart);
  }
  EXPECT_GT(apart, 300);
  EXPECT_GT(together, 300);
}

TEST(Overlap, OfDenseTensors) {
  Tensor whole = Tensor::zeros(DType::kFloat32, {10});
  const auto part = [&](int64_t first, int64_t count) {
    return Tensor::borrow(DType::kFloat32, {count}, whole.data<float>() + first);
  };
  EXPECT_FALSE(overlap(memory_of(part(0, 5)), memory_of(part(5, 5))));
  EXPECT_TRUE(overlap(memory_of(part(0, 5)), memory_of(part(4, 5))));
  EXPECT_TRUE(overlap(memory_of(part(0, 10)), memory_of(part(3, 1))));
  EXPECT_FALSE(overlap(memory_of(part(0, 10)), memory_of(part(3, 0))));
  EXPECT_FALSE(overlap(memory_of(Tensor()), memory_of(part(3, 1))));
}

// y = x, z = x.
class Copies : public Kernel {
 public:
  Status run(const KernelArgs& args) override {
    for (int output = 0; output < 2; ++output)
      std::copy_n(static_cast<const float*>(args.inputs[0]), 4,
                  static_cast<float*>(args.outputs[output]));
    return {};
  }
};

TEST(Executor, RefusesOutputsThatOverlap) {
  const TensorType type{{4}, DType::kFloat32};
  auto plan = std::make_shared<Plan>();
  plan->inputs = {{"x", type}};
  plan->outputs = {{"y", type}, {"z", type}};
  for (const auto& [place, index] : {std::pair(Buffer::Place::kInput, 0),
                                     {Buffer::Place::kOutput, 0},
                                     {Buffer::Place::kOutput, 1}}) {
    Buffer& buffer = plan->buffers.emplace_back();
    buffer.place = place;
    buffer.index = static_cast<size_t>(index);
    buffer.bytes = type.bytes();
    buffer.type = type;
  }
  plan->steps.push_back({"copies", "a", std::make_shared<Copies>(), {0}, {1, 2}, 0});
  Executor executor = Executor::create(plan, 1).value();
  Tensor memory = Tensor::from<float>({12}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto part = [&](int64_t first) {
    return Tensor::borrow(DType::kFloat32, {4}, memory.data<float>() + first);
  };
  const auto run = [&](const Tensor& x, const Tensor& y, const Tensor& z) {
    std::vector<Tensor> outputs = {y, z};
    return executor.run(std::span<const Tensor>(&x, 1), outputs);
  };
  EXPECT_EQ(run(part(0), part(3), {}).to_string(),
            "output 'y': its memory overlaps that of input 'x'");
  EXPECT_EQ(run(part(0), {}, part(0)).to_string(),
            "output 'z': its memory overlaps that of input 'x'");
  EXPECT_EQ(run(part(0), part(4), part(7)).to_string(),
            "output 'z': its memory overlaps that of output 'y'");
  EXPECT_EQ(memory.data<float>()[4], 4);
  EXPECT_EQ(run(part(0), part(4), part(8)).to_string(), "ok");
  EXPECT_EQ(memory.data<float>()[11], 3);
}

}  // namespace
}  // namespace collage
