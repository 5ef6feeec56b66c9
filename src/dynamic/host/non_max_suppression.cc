// Boxes by falling score, without those that overlap one chosen before by more than a threshold;
// for each batch and class. The arithmetic is float32 in the order of ONNX Runtime's, so that a box
// at the threshold falls to the same side. Boxes of equal score are taken in the order of their
// numbers. A NaN as score is the lowest of all; a box with a NaN overlaps none.
//
// Candidates come from a heap, which need not be emptied: few of thousands of boxes are chosen.
#include <algorithm>
#include <cmath>
#include <limits>

#include "dynamic/host/kernels.h"

namespace collage::dynamic {

namespace {

// A structure of arrays: the search compares one box with many.
struct Boxes {
  std::vector<float> x_min, y_min, x_max, y_max, area;

  size_t size() const { return area.size(); }
  void add(float x0, float y0, float x1, float y1) {
    x_min.push_back(x0);
    y_min.push_back(y0);
    x_max.push_back(x1);
    y_max.push_back(y1);
    area.push_back((x1 - x0) * (y1 - y0));
  }
  void add(const Boxes& from, size_t i) {
    add(from.x_min[i], from.y_min[i], from.x_max[i], from.y_max[i]);
  }
};

// `data` holds four floats a box.
Boxes read_boxes(const float* data, int64_t count, bool centers) {
  Boxes boxes;
  for (int64_t i = 0; i < count; ++i, data += 4) {
    if (centers) {
      const float x = data[0], y = data[1], half_width = data[2] / 2, half_height = data[3] / 2;
      boxes.add(x - half_width, y - half_height, x + half_width, y + half_height);
    } else {
      // Any two opposite corners. Not std::minmax: a NaN must stay.
      const bool x_turned = data[1] >= data[3], y_turned = data[0] >= data[2];
      boxes.add(data[x_turned ? 3 : 1], data[y_turned ? 2 : 0], data[x_turned ? 1 : 3],
                data[y_turned ? 0 : 2]);
    }
  }
  return boxes;
}

// Whether box `i` overlaps any of `chosen` by more than the threshold.
bool overlaps(const Boxes& boxes, size_t i, const Boxes& chosen, float threshold) {
  constexpr size_t kBlock = 64;  // looked at without a branch
  const float x_min = boxes.x_min[i], y_min = boxes.y_min[i], x_max = boxes.x_max[i],
              y_max = boxes.y_max[i], area = boxes.area[i];
  for (size_t begin = 0; begin < chosen.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, chosen.size());
    int found = 0;
#pragma omp simd reduction(| : found)
    for (size_t j = begin; j < end; ++j) {
      const float width = std::min(x_max, chosen.x_max[j]) - std::max(x_min, chosen.x_min[j]),
                  height = std::min(y_max, chosen.y_max[j]) - std::max(y_min, chosen.y_min[j]),
                  intersection = width * height, both = area + chosen.area[j] - intersection;
      found |= static_cast<int>(width > 0) & static_cast<int>(height > 0) &
               static_cast<int>(intersection > 0) & static_cast<int>(area > 0) &
               static_cast<int>(chosen.area[j] > 0) & static_cast<int>(both > 0) &
               static_cast<int>(intersection / both > threshold);
    }
    if (found != 0) return true;
  }
  return false;
}

struct Candidate {
  float score;
  int64_t box;
};

bool later(const Candidate& a, const Candidate& b) {
  return a.score < b.score || (a.score == b.score && a.box > b.box);
}

struct Limits {
  int64_t count;   // of the boxes of one class
  float overlap;   // beyond it a box is dropped
  bool has_score;  // only scores above it count
  float score;
};

// The boxes of one class, in the order in which they are chosen.
std::vector<int64_t> choose(const Boxes& boxes, const float* scores, const Limits& limits) {
  std::vector<Candidate> heap;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const float score = std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i];
    if (!limits.has_score || score > limits.score) heap.push_back({score, static_cast<int64_t>(i)});
  }
  std::make_heap(heap.begin(), heap.end(), later);
  std::vector<int64_t> result;
  Boxes chosen;
  while (!heap.empty() && static_cast<int64_t>(result.size()) < limits.count) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto box = static_cast<size_t>(heap.back().box);
    heap.pop_back();
    if (overlaps(boxes, box, chosen, limits.overlap)) continue;
    chosen.add(boxes, box);
    result.push_back(static_cast<int64_t>(box));
  }
  return result;
}

// The input as a single value; `fallback` where it is absent.
template <typename T>
Result<T> single_value(const Tensors& inputs, size_t i, const char* what, T fallback) {
  if (i >= inputs.size() || !inputs[i].defined()) return fallback;
  if (inputs[i].rank() > 1 || inputs[i].size() != 1)
    return bad_model("{} has shape {}, not one element", what, shape_to_string(inputs[i].shape()));
  return inputs[i].data<T>()[0];
}

Result<Limits> read_limits(const Tensors& inputs) {
  Limits limits;
  limits.count = TRY(single_value<int64_t>(inputs, 2, "max_output_boxes_per_class", 0));
  limits.overlap = TRY(single_value<float>(inputs, 3, "iou_threshold", 0));
  if (!(limits.overlap >= 0 && limits.overlap <= 1))
    return bad_model("iou_threshold is {}, not between 0 and 1", limits.overlap);
  limits.has_score = inputs.size() > 4 && inputs[4].defined();
  limits.score = TRY(single_value<float>(inputs, 4, "score_threshold", 0));
  return limits;
}

}  // namespace

Result<Tensors> run_non_max_suppression(const frontend::NodeAttributes& node,
                                        const Tensors& inputs) {
  const bool centers = TRY(node.flag("center_point_box", false));
  const Shape &boxes = inputs[0].shape(), &scores = inputs[1].shape();
  if (boxes.size() != 3 || boxes[2] != 4 || scores.size() != 3 || scores[0] != boxes[0] ||
      scores[2] != boxes[1])
    return bad_model("boxes of shape {} and scores of shape {}", shape_to_string(boxes),
                     shape_to_string(scores));
  const Limits limits = TRY(read_limits(inputs));
  const int64_t classes = scores[1], count = scores[2],
                lists = inputs[1].size() == 0 || limits.count <= 0 ? 0 : scores[0] * classes;
  std::vector<Boxes> batches;
  for (int64_t b = 0; b < (lists == 0 ? 0 : scores[0]); ++b)
    batches.push_back(read_boxes(inputs[0].data<float>() + b * count * 4, count, centers));
  std::vector<std::vector<int64_t>> chosen(static_cast<size_t>(lists));
#pragma omp parallel for schedule(dynamic) if (lists > 1 && lists * count > 8192)
  for (int64_t i = 0; i < lists; ++i)
    chosen[static_cast<size_t>(i)] = choose(batches[static_cast<size_t>(i / classes)],
                                            inputs[1].data<float>() + i * count, limits);
  int64_t rows = 0;
  for (const std::vector<int64_t>& list : chosen) rows += static_cast<int64_t>(list.size());
  Tensor result = TRY(Tensor::allocate(DType::kInt64, {rows, 3}));
  int64_t* to = result.data<int64_t>();
  for (int64_t i = 0; i < lists; ++i)
    for (const int64_t box : chosen[static_cast<size_t>(i)]) {
      *to++ = i / classes;
      *to++ = i % classes;
      *to++ = box;
    }
  return Tensors{std::move(result)};
}

}  // namespace collage::dynamic
