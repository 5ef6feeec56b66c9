// vision.non_max_suppression(boxes, scores, count, overlap, score): boxes that are chosen
// (data_dependent.h, ONNX NonMaxSuppression), rows (batch, class, box) padded by zeros, and how
// many there are. `count`, `overlap` and `score` are scalars; `by_score` false: all scores count.
// `most_boxes` is the most of a class that `count` may hold (-1: of all boxes).
//
// The arithmetic is float32 in the order of ONNX Runtime's, so that a box at the threshold falls to
// the same side. Boxes of equal score are taken in the order of their numbers. A NaN as score is
// the lowest of all; a box with a NaN overlaps none. Candidates come from a heap, which need not be
// emptied: few of thousands of boxes are chosen.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/counted/data_dependent.h"
#include "ops/families.h"

namespace collage {

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

// The boxes of one class, in the order in which they are chosen.
std::vector<int64_t> choose(const Boxes& boxes, const float* scores, const BoxLimits& limits) {
  std::vector<Candidate> heap;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const float score = std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i];
    if (!limits.by_score || score > limits.score) heap.push_back({score, static_cast<int64_t>(i)});
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

Result<Type> infer_suppression(Types args, const Attrs& attrs) {
  const TensorType boxes = TRY(tensor_arg(args, 0)), scores = TRY(tensor_arg(args, 1));
  TRY(require_rank(boxes, 3, "boxes"));
  TRY(require_rank(scores, 3, "scores"));
  for (size_t i = 0; i < args.size(); ++i) {
    const TensorType arg = TRY(tensor_arg(args, i));
    const DType wanted = i == 2 ? DType::kInt64 : DType::kFloat32;
    if (arg.dtype != wanted)
      return bad_model("argument {} is {}, not {}", i, dtype_name(arg.dtype), dtype_name(wanted));
    if (i >= 2 && num_elements(arg.shape) != 1)
      return bad_model("argument {} has shape {}, not one element", i, shape_to_string(arg.shape));
  }
  TRY(require_shape(boxes, {scores.shape[0], scores.shape[2], 4}, "boxes"));
  const int64_t most = attrs.integer("most_boxes");
  int64_t rows = most < 0 ? scores.shape[2] : std::min(most, scores.shape[2]);
  for (size_t i : {0, 1}) rows = TRY(checked_multiply(rows, scores.shape[i], "boxes"));
  const Type chosen = TRY(tensor_result({rows, 3}, DType::kInt64));
  return Type::tuple({chosen, Type(TensorType{{}, DType::kInt64})});
}

Status run_suppression(std::span<const Tensor> inputs, const Attrs& attrs,
                       std::span<Tensor> outputs) {
  BoxLimits limits;
  limits.count = inputs[2].data<int64_t>()[0];
  const int64_t most = attrs.integer("most_boxes");
  if (most >= 0 && limits.count > most)
    return bad_model("count is {}, most_boxes {}", limits.count, most);
  limits.overlap = inputs[3].data<float>()[0];
  limits.by_score = attrs.flag("by_score");
  limits.score = inputs[4].data<float>()[0];
  const auto chosen =
      TRY(choose_boxes(inputs[0], inputs[1], limits, attrs.flag("center_point_box")));
  int64_t* to = outputs[0].data<int64_t>();
  const int64_t classes = inputs[1].shape()[1];
  int64_t rows = 0;
  for (size_t i = 0; i < chosen.size(); ++i)
    for (const int64_t box : chosen[i]) {
      const auto list = static_cast<int64_t>(i);
      to[3 * rows] = list / classes;
      to[3 * rows + 1] = list % classes;
      to[3 * rows + 2] = box;
      ++rows;
    }
  std::fill(to + 3 * rows, to + outputs[0].size(), 0);
  outputs[1].data<int64_t>()[0] = rows;
  return {};
}

}  // namespace

Result<std::vector<std::vector<int64_t>>> choose_boxes(const Tensor& boxes, const Tensor& scores,
                                                       const BoxLimits& limits, bool centers) {
  if (!(limits.overlap >= 0 && limits.overlap <= 1))
    return bad_model("iou_threshold is {}, not between 0 and 1", limits.overlap);
  const int64_t classes = scores.shape()[1], count = scores.shape()[2];
  const int64_t batches = scores.size() == 0 || limits.count <= 0 ? 0 : scores.shape()[0];
  std::vector<Boxes> read;
  for (int64_t b = 0; b < batches; ++b)
    read.push_back(read_boxes(boxes.data<float>() + b * count * 4, count, centers));
  const int64_t lists = batches * classes;
  std::vector<std::vector<int64_t>> chosen(static_cast<size_t>(lists));
#pragma omp parallel for schedule(dynamic) if (lists > 1 && lists * count > 8192)
  for (int64_t i = 0; i < lists; ++i)
    chosen[static_cast<size_t>(i)] =
        choose(read[static_cast<size_t>(i / classes)], scores.data<float>() + i * count, limits);
  return chosen;
}

void register_non_max_suppression_ops() {
  register_op(
      make_op("vision.non_max_suppression", 5,
              {{"center_point_box", false}, {"by_score", true}, {"most_boxes", int64_t{-1}}},
              FusionKind::kOpaque, infer_suppression, run_suppression, no_work));
}

}  // namespace collage
