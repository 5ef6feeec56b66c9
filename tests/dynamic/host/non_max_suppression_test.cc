#include <algorithm>
#include <cmath>
#include <limits>

#include "dynamic/host/host_node.h"

namespace collage::dynamic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(NonMaxSuppression, CasesOfTheSuite) { EXPECT_EQ(check_suite("nonmaxsuppression"), 9); }

Tensor at_most(int64_t count) { return Tensor::from<int64_t>({1}, {count}); }
Tensor threshold(float value) { return Tensor::from<float>({1}, {value}); }

struct Box {
  double top, left, bottom, right;
};

double overlap(const Box& a, const Box& b) {
  const auto area = [](const Box& box) { return (box.bottom - box.top) * (box.right - box.left); };
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
               width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  return height * width / (area(a) + area(b) - height * width);
}

// In double precision: takes the best of those left again and again, and drops what overlaps it.
std::vector<int64_t> slow(const std::vector<Box>& boxes, const std::vector<float>& scores,
                          int64_t count, double most_overlap, double least_score) {
  std::vector<int64_t> left, result;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (scores[i] > least_score) left.push_back(static_cast<int64_t>(i));
  const auto box = [&](int64_t i) { return boxes[static_cast<size_t>(i)]; };
  while (!left.empty() && static_cast<int64_t>(result.size()) < count) {
    const int64_t best = *std::max_element(left.begin(), left.end(), [&](int64_t a, int64_t b) {
      return scores[static_cast<size_t>(a)] < scores[static_cast<size_t>(b)];
    });
    result.push_back(best);
    std::erase_if(
        left, [&](int64_t i) { return i == best || overlap(box(i), box(best)) > most_overlap; });
  }
  return result;
}

// Boxes with corners in quarters, which float32 holds: both formats give the same boxes, and no
// overlap is at the threshold. Scores repeat.
TEST(NonMaxSuppression, AgreesWithASlowOneInBothFormats) {
  std::mt19937 random(5);
  const auto pick = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t batches = pick(1, 3), classes = pick(1, 4), count = pick(1, 200);
    const float least_score = trial % 2 == 0 ? -kInfinity : 0.3f;
    const auto most_overlap = static_cast<float>(pick(0, 9)) / 10.0f + 0.0437f;
    const int64_t limit = trial % 3 == 0 ? 1000 : pick(1, 20);
    std::vector<std::vector<Box>> boxes(static_cast<size_t>(batches));
    Tensor corners = Tensor::empty(DType::kFloat32, {batches, count, 4}), centers = corners.clone(),
           scores = Tensor::empty(DType::kFloat32, {batches, classes, count});
    for (int64_t i = 0; i < batches * count; ++i) {
      const double top = pick(0, 40) / 4.0, left = pick(0, 40) / 4.0, height = pick(1, 20) / 2.0,
                   width = pick(1, 20) / 2.0;
      const Box box{top, left, top + height, left + width};
      boxes[static_cast<size_t>(i / count)].push_back(box);
      double values[] = {box.top, box.left, box.bottom, box.right};
      if (pick(0, 1) == 1) std::swap(values[0], values[2]);
      if (pick(0, 1) == 1) std::swap(values[1], values[3]);
      const double center[] = {left + width / 2, top + height / 2, width, height};
      for (int64_t k = 0; k < 4; ++k) {
        corners.data<float>()[4 * i + k] = static_cast<float>(values[k]);
        centers.data<float>()[4 * i + k] = static_cast<float>(center[k]);
      }
    }
    for (int64_t i = 0; i < scores.size(); ++i)
      scores.data<float>()[i] = static_cast<float>(pick(0, 50)) / 50.0f;
    std::vector<int64_t> expected;
    for (int64_t list = 0; list < batches * classes; ++list) {
      const float* own = scores.data<float>() + list * count;
      for (const int64_t box : slow(boxes[static_cast<size_t>(list / classes)], {own, own + count},
                                    limit, most_overlap, least_score))
        expected.insert(expected.end(), {list / classes, list % classes, box});
    }
    SCOPED_TRACE(trial);
    Tensors inputs = {corners, scores, at_most(limit), threshold(most_overlap)};
    if (trial % 2 == 1) inputs.push_back(threshold(least_score));
    EXPECT_EQ(integers(HostNode("NonMaxSuppression").run(inputs)[0]), expected);
    inputs[0] = centers;
    EXPECT_EQ(integers(HostNode("NonMaxSuppression").integer("center_point_box", 1).run(inputs)[0]),
              expected);
  }
}

// Detectors of 80 classes give the host this much, and more boxes than one block of the search.
TEST(NonMaxSuppression, ManyBoxesThatDoNotOverlap) {
  constexpr int64_t kBoxes = 10000, kClasses = 20;
  Tensor boxes = Tensor::empty(DType::kFloat32, {1, kBoxes, 4}),
         scores = Tensor::empty(DType::kFloat32, {1, kClasses, kBoxes});
  for (int64_t i = 0; i < kBoxes; ++i) {
    const auto x = static_cast<float>(i % 100), y = static_cast<float>(i / 100);
    const float corners[] = {y, x, y + 0.5f, x + 0.5f};
    std::copy_n(corners, 4, boxes.data<float>() + 4 * i);
  }
  for (int64_t i = 0; i < scores.size(); ++i)
    scores.data<float>()[i] = static_cast<float>(i % kBoxes) / kBoxes;
  const Tensor result =
      HostNode("NonMaxSuppression").run({boxes, scores, at_most(200), threshold(0.5f)})[0];
  ASSERT_EQ(result.shape(), (Shape{kClasses * 200, 3}));
  for (int64_t i = 0; i < result.shape()[0]; ++i) {
    const int64_t* row = result.data<int64_t>() + 3 * i;
    EXPECT_EQ(row[0], 0);
    EXPECT_EQ(row[1], i / 200);
    EXPECT_EQ(row[2], kBoxes - 1 - i % 200);
  }
}

Tensor two_boxes() { return Tensor::from<float>({1, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 0.5f}); }
Tensor two_scores() { return Tensor::from<float>({1, 1, 2}, {0.25f, 0.75f}); }

std::vector<int64_t> boxes_chosen(const Tensors& inputs) {
  std::vector<int64_t> result, all = integers(HostNode("NonMaxSuppression").run(inputs)[0]);
  for (size_t i = 2; i < all.size(); i += 3) result.push_back(all[i]);
  return result;
}

TEST(NonMaxSuppression, OptionalInputs) {
  const Tensor boxes = two_boxes(), scores = two_scores(), absent;
  // No limit given means none; nor do fewer than none.
  EXPECT_THAT(boxes_chosen({boxes, scores}), ElementsAre());
  EXPECT_THAT(boxes_chosen({boxes, scores, absent, threshold(1)}), ElementsAre());
  for (const int64_t count : {int64_t{0}, int64_t{-1}, INT64_MIN})
    EXPECT_THAT(boxes_chosen({boxes, scores, at_most(count), threshold(1)}), ElementsAre());
  EXPECT_EQ(HostNode("NonMaxSuppression").run({boxes, scores})[0].shape(), (Shape{0, 3}));
  // The overlap allowed is 0 by default; half of the union is not more than a half.
  EXPECT_THAT(boxes_chosen({boxes, scores, at_most(INT64_MAX)}), ElementsAre(1));
  EXPECT_THAT(boxes_chosen({boxes, scores, at_most(9), threshold(0.5f)}), ElementsAre(1, 0));
  EXPECT_THAT(boxes_chosen({boxes, scores, at_most(9), threshold(0.49f)}), ElementsAre(1));
  // Scores must be above the threshold; without one all are.
  EXPECT_THAT(boxes_chosen({boxes, scores, at_most(9), threshold(1), threshold(0.25f)}),
              ElementsAre(1));
  const Tensor negative = Tensor::from<float>({1, 1, 2}, {-1, -2});
  EXPECT_THAT(boxes_chosen({boxes, negative, at_most(9), threshold(1)}), ElementsAre(0, 1));
  EXPECT_THAT(boxes_chosen({boxes, negative, at_most(9), threshold(1), threshold(0)}),
              ElementsAre());
  EXPECT_THAT(boxes_chosen({boxes, scores, Tensor::scalar<int64_t>(1), Tensor::scalar<float>(1)}),
              ElementsAre(1));
}

TEST(NonMaxSuppression, ScoresAndBoxesThatAreNoNumbers) {
  const Tensor boxes = Tensor::from<float>(
      {1, 4, 4}, {0, 0, 1, 1, 0, 0, 1, 1, kNan, 0, 1, 1, 0, -kInfinity, 1, kInfinity});
  const auto scores = [](float a, float b, float c, float d) {
    return Tensor::from<float>({1, 1, 4}, {a, b, c, d});
  };
  EXPECT_THAT(boxes_chosen({boxes, scores(kNan, 0.5f, 1, kInfinity), at_most(9)}),
              ElementsAre(3, 2, 1));
  EXPECT_THAT(boxes_chosen({boxes, scores(kNan, -kInfinity, kNan, kNan), at_most(9), threshold(1)}),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(
      boxes_chosen({boxes, scores(kNan, 1, kNan, kNan), at_most(9), threshold(1), threshold(0)}),
      ElementsAre(1));
}

TEST(NonMaxSuppression, OfNothing) {
  const auto shape = [](Shape boxes, Shape scores) {
    return HostNode("NonMaxSuppression")
        .run({Tensor::empty(DType::kFloat32, boxes), Tensor::empty(DType::kFloat32, scores),
              at_most(5)})[0]
        .shape();
  };
  EXPECT_EQ(shape({1, 0, 4}, {1, 2, 0}), (Shape{0, 3}));
  EXPECT_EQ(shape({0, 3, 4}, {0, 2, 3}), (Shape{0, 3}));
  EXPECT_EQ(shape({1, 3, 4}, {1, 0, 3}), (Shape{0, 3}));
  EXPECT_EQ(shape({int64_t{1} << 40, 0, 4}, {int64_t{1} << 40, 1 << 19, 0}), (Shape{0, 3}));
}

TEST(NonMaxSuppression, RefusesOtherNodes) {
  const HostNode node("NonMaxSuppression");
  const auto zeros = [](Shape shape) { return Tensor::zeros(DType::kFloat32, shape); };
  for (const auto& [boxes, scores] : std::vector<std::pair<Shape, Shape>>{{{1, 2, 4}, {1, 1, 3}},
                                                                          {{2, 2, 4}, {1, 1, 2}},
                                                                          {{1, 2, 5}, {1, 1, 2}},
                                                                          {{2, 4}, {1, 1, 2}},
                                                                          {{1, 2, 4}, {1, 2}}})
    EXPECT_THAT(node.error({zeros(boxes), zeros(scores)}), HasSubstr("and scores of shape"));
  const Tensor boxes = two_boxes(), scores = two_scores();
  EXPECT_THAT(node.error({boxes, scores, threshold(1)}), HasSubstr("float32, not int64"));
  EXPECT_THAT(node.error({boxes, scores, Tensor::from<int64_t>({2}, {1, 1})}),
              HasSubstr("max_output_boxes_per_class has shape (2)"));
  for (const float value : {-0.1f, 1.1f, kNan})
    EXPECT_THAT(node.error({boxes, scores, at_most(1), threshold(value)}),
                HasSubstr("not between 0 and 1"));
  EXPECT_THAT(node.error({boxes}), HasSubstr("1 inputs"));
  EXPECT_THAT(node.error({boxes, Tensor()}), HasSubstr("input 1 is missing"));
  EXPECT_THAT(HostNode("NonMaxSuppression").integer("center_point_box", 2).error({boxes, scores}),
              HasSubstr("not 0 or 1"));
  EXPECT_THAT(node.error({boxes, scores}, 9), HasSubstr("new in version 10"));
}

}  // namespace
}  // namespace collage::dynamic
