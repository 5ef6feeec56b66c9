// Cases of the operators that read or write by index.
#include "ops/cases/cases_list.h"

namespace collage {

void add_index_cases(Cases& cases) {
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
