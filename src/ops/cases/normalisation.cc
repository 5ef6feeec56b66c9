// Cases of softmax and the normalisations.
#include "ops/cases/cases_list.h"

namespace collage {

void add_normalisation_cases(Cases& cases) {
  for (const char* op : {"nn.softmax", "nn.log_softmax"})
    for (auto [shape, axis] : std::vector<std::pair<Shape, int64_t>>{
             {{1, 1000}, -1}, {{2, 3, 17, 17}, -1}, {{3, 5, 7}, 1}, {{4}, 0}, {{2, 1}, -1}})
      cases.push_back({op, {f32(shape, {-5, 5})}, {{"axis", axis}}});

  for (auto [shape, axis] : std::vector<std::pair<Shape, int64_t>>{
           {{2, 17, 64}, -1}, {{5, 33}, 1}, {{3, 4, 5}, 1}, {{1, 1, 768}, -1}}) {
    Shape tail(shape.begin() + (axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis),
               shape.end());
    const Attrs attrs = {{"axis", axis}, {"epsilon", 1e-5}};
    cases.push_back({"nn.layer_norm", {f32(shape), weight(tail, {0.5, 1.5}), weight(tail)}, attrs});
    cases.push_back({"nn.rms_norm", {f32(shape), weight(tail, {0.5, 1.5})}, attrs});
  }

  for (Shape shape : {Shape{1, 16, 7, 7}, Shape{2, 6, 9}, Shape{3, 4}, Shape{1, 2, 3, 4, 5}}) {
    const Shape channels = {shape[1]};
    const OpArg gamma = weight(channels, {0.5, 1.5}), beta = weight(channels);
    cases.push_back(
        {"nn.batch_norm", {f32(shape), gamma, beta, weight(channels), weight(channels, {0.5, 2})}});
    cases.push_back({"nn.lrn", {f32(shape)}, {{"size", int64_t{3}}, {"alpha", 0.1}}});
    cases.push_back({"nn.lrn", {f32(shape)}, {{"size", int64_t{4}}, {"bias", 1.0}}});
    cases.push_back({"nn.l2_normalize", {f32(shape)}, {{"eps", 1e-12}, {"axis", Ints{1}}}});
    if (shape.size() < 3) continue;
    cases.push_back({"nn.instance_norm", {f32(shape), gamma, beta}});
    cases.push_back({"nn.group_norm", {f32(shape), gamma, beta}, {{"num_groups", int64_t{2}}}});
  }
  cases.push_back({"nn.batch_norm",
                   {f32({2, 3, 5}), weight({5}), weight({5}), weight({5}), weight({5}, {0.5, 2})},
                   {{"axis", int64_t{-1}}, {"epsilon", 1e-3}}});
  cases.push_back({"nn.l2_normalize", {f32({2, 3, 4, 5})}, {{"eps", 1e-6}, {"axis", Ints{-1, 1}}}});
}

}  // namespace collage
