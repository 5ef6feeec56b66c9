// Recurrent operators on values worked out by hand: states, the ends of sequences, directions. The
// cells themselves are compared with NumPy (independent).
#include "op_test.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

// h' = x + h in each direction.
std::vector<Tensor> running_sum(const Tensor& x, const std::vector<int64_t>& lengths,
                                const char* direction, const std::vector<float>& h0) {
  const auto directions = static_cast<int64_t>(h0.size() / lengths.size());
  const auto batch = static_cast<int64_t>(lengths.size());
  const auto ones = [&] {
    return floats({directions, 1, 1}, std::vector<float>(static_cast<size_t>(directions), 1));
  };
  return run_all("nn.rnn",
                 {x, ones(), ones(), Tensor::zeros(DType::kFloat32, {directions, 2}),
                  ints({batch}, lengths), floats({directions, batch, 1}, h0)},
                 {{"direction", std::string(direction)},
                  {"activations", std::string(directions == 1 ? "affine" : "affine affine")}});
}

TEST(RecurrentTest, SequencesEndWhereTheirLengthsSay) {
  const auto results = running_sum(floats({3, 3, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8}), {1, 3, 0},
                                   "forward", {100, 200, 300});
  EXPECT_THAT(floats_of(results[0]), ElementsAre(100, 201, 0, 0, 205, 0, 0, 212, 0));
  EXPECT_THAT(floats_of(results[1]), ElementsAre(100, 212, 300));
}

TEST(RecurrentTest, TheSecondDirectionStartsAtTheEnds) {
  const auto results =
      running_sum(floats({3, 2, 1}, {1, 10, 2, 20, 4, 40}), {2, 3}, "bidirectional", {0, 0, 0, 0});
  // For each step: both sequences forwards, both backwards.
  EXPECT_THAT(floats_of(results[0]), ElementsAre(1, 10, 3, 70, 3, 30, 2, 60, 0, 70, 0, 40));
  EXPECT_THAT(floats_of(results[1]), ElementsAre(3, 70, 3, 70));
}

// Products are made for a part of the steps at once: here for less than all.
TEST(RecurrentTest, ManySteps) {
  constexpr int64_t kSteps = 9000, kBatch = 128;
  const Tensor x = floats({kSteps, kBatch, 1}, std::vector<float>(kSteps * kBatch, 0.5F));
  for (const char* direction : {"forward", "reverse"}) {
    const auto results = running_sum(x, std::vector<int64_t>(kBatch, kSteps), direction,
                                     std::vector<float>(kBatch, 1));
    const bool forward = direction == std::string("forward");
    for (const int64_t step : {int64_t{0}, int64_t{8200}, kSteps - 1})
      EXPECT_EQ(at(results[0], {step, 0, kBatch - 1, 0}),
                1 + 0.5F * static_cast<float>(forward ? step + 1 : kSteps - step));
    EXPECT_EQ(floats_of(results[1])[0], 1 + 0.5F * kSteps);
  }
}

TEST(RecurrentTest, NoStepsLeaveTheState) {
  const auto results = running_sum(floats({0, 2, 1}, {}), {0, 0}, "forward", {3, 4});
  EXPECT_EQ(results[0].shape(), (Shape{0, 1, 2, 1}));
  EXPECT_THAT(floats_of(results[1]), ElementsAre(3, 4));
}

TEST(RecurrentTest, LengthsThatAreNone) {
  for (const int64_t length : {-1, 4}) {
    const auto result = try_run(
        "nn.rnn", {floats({3, 1, 1}, {1, 2, 3}), floats({1, 1, 1}, {1}), floats({1, 1, 1}, {1}),
                   floats({1, 2}, {0, 0}), ints({1}, {length}), floats({1, 1, 1}, {0})});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), ErrorCode::kBadModel);
  }
}

}  // namespace
}  // namespace collage
