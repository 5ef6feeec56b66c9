// Cases of the operators that read or write by index.
#include "ops/cases/cases_list.h"

namespace collage {

namespace {

void add_counted_cases(Cases& cases) {
  const auto few = [](Shape shape) { return arg(DType::kInt64, std::move(shape), {-1, 1}); };
  const auto of = [](DType dtype, double value) { return arg(dtype, {}, {value, value}); };
  for (const Shape& shape : {Shape{}, {7}, {3, 0}, {2, 3, 5}})
    cases.push_back({"nonzero", {few(shape)}, {}});
  for (const bool sorted : {true, false}) {
    cases.push_back({"unique", {few({9})}, {{"sorted", sorted}}});
    cases.push_back({"unique", {few({2, 11, 2})}, {{"axis", int64_t{-2}}, {"sorted", sorted}}});
  }
  const auto match = [&](Shape shape, DType dtype, int64_t size, int64_t axis) {
    cases.push_back({"match_size",
                     {f32(std::move(shape)), of(dtype, static_cast<double>(size))},
                     {{"size", size}, {"axis", axis}, {"symbol", std::string("k")}}});
  };
  match({5, 3}, DType::kInt64, 2, 0);
  match({2, 3, 4}, DType::kInt32, 3, -1);
  match({2, 4}, DType::kInt64, 0, 1);
  for (const bool centers : {false, true})
    for (const int64_t most : {-1, 4})
      cases.push_back(
          {"vision.non_max_suppression",
           {arg(DType::kFloat32, {2, 20, 4}, {0, 1}), f32({2, 3, 20}), of(DType::kInt64, 4),
            of(DType::kFloat32, 0.25), of(DType::kFloat32, -0.5)},
           {{"center_point_box", centers}, {"by_score", most == 4}, {"most_boxes", most}}});
}

}  // namespace

void add_index_cases(Cases& cases) {
  add_counted_cases(cases);
  cases.push_back({"take", {weight({50, 8}), indices({2, 7}, 50)}, {{"axis", int64_t{0}}}});
  cases.push_back(
      {"take", {f32({3, 5, 4}), indices({6}, 5, DType::kInt32)}, {{"axis", int64_t{1}}}});
  cases.push_back({"take", {f32({3, 5}), indices({}, 5)}, {{"axis", int64_t{-1}}}});
  cases.push_back({"gather", {f32({4, 6}), indices({3, 6}, 4)}, {{"axis", int64_t{0}}}});
  cases.push_back({"gather", {f32({2, 3, 5}), indices({2, 3, 8}, 5)}, {{"axis", int64_t{-1}}}});
  cases.push_back({"gather_nd", {f32({3, 4, 5}), indices({6, 2}, 3)}});
  cases.push_back({"gather_nd", {f32({3, 4, 5}), indices({2, 2, 3}, 3)}});
  cases.push_back(
      {"gather_nd", {f32({2, 4, 3}), indices({2, 5, 1}, 4)}, {{"batch_dims", int64_t{1}}}});
  cases.push_back({"one_hot",
                   {indices({5}, 6), weight({}, {1, 1}), weight({}, {0, 0})},
                   {{"depth", int64_t{6}}, {"axis", int64_t{-1}}}});
  cases.push_back({"one_hot",
                   {indices({2, 3}, 4), weight({}, {2, 2}), weight({}, {-1, -1})},
                   {{"depth", int64_t{4}}, {"axis", int64_t{1}}}});
  for (const char* reduction : {"add", "mul", "min", "max"}) {
    cases.push_back({"scatter_elements",
                     {f32({4, 6}), indices({3, 6}, 4), f32({3, 6})},
                     {{"axis", int64_t{0}}, {"reduction", std::string(reduction)}}});
    cases.push_back({"scatter_nd",
                     {f32({4, 3, 2}), indices({5, 1}, 4), f32({5, 3, 2})},
                     {{"mode", std::string(reduction)}}});
  }
  // Plain writes only where no index repeats, so that any order gives the same result.
  cases.push_back(
      {"scatter_elements", {f32({3, 5}), indices({3, 1}, 5), f32({3, 1})}, {{"axis", int64_t{1}}}});
  cases.push_back({"scatter_nd", {f32({4, 3}), indices({1, 2}, 3), f32({1})}});
}

}  // namespace collage
