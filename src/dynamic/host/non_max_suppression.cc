#include "dynamic/host/kernels.h"
#include "ops/counted/data_dependent.h"

namespace collage::dynamic {

namespace {

// The input as a single value; `fallback` where it is absent.
template <typename T>
Result<T> single_value(const Tensors& inputs, size_t i, const char* what, T fallback) {
  if (i >= inputs.size() || !inputs[i].defined()) return fallback;
  if (inputs[i].rank() > 1 || inputs[i].size() != 1)
    return bad_model("{} has shape {}, not one element", what, shape_to_string(inputs[i].shape()));
  return inputs[i].data<T>()[0];
}

Result<BoxLimits> read_limits(const Tensors& inputs) {
  BoxLimits limits;
  limits.count = TRY(single_value<int64_t>(inputs, 2, "max_output_boxes_per_class", 0));
  limits.overlap = TRY(single_value<float>(inputs, 3, "iou_threshold", 0));
  limits.by_score = inputs.size() > 4 && inputs[4].defined();
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
  const auto chosen = TRY(choose_boxes(inputs[0], inputs[1], TRY(read_limits(inputs)), centers));
  std::vector<int64_t> rows;
  for (size_t i = 0; i < chosen.size(); ++i)
    for (const int64_t box : chosen[i]) {
      const auto list = static_cast<int64_t>(i);
      rows.insert(rows.end(), {list / scores[1], list % scores[1], box});
    }
  return Tensors{Tensor::from<int64_t>({static_cast<int64_t>(rows.size()) / 3, 3}, rows)};
}

}  // namespace collage::dynamic
