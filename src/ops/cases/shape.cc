// Cases of the views and of the operators that move elements by position.
#include "ops/cases/cases_list.h"

namespace collage {

namespace {

void add_view_cases(Cases& cases) {
  auto reshape = [&](Shape from, Ints to) {
    cases.push_back({"reshape", {f32(std::move(from))}, {{"newshape", std::move(to)}}});
  };
  reshape({2, 3, 4}, {6, 4});
  reshape({1, 12, 5}, {1, 3, 4, 5});
  reshape({1}, {});
  cases.push_back({"squeeze", {f32({1, 3, 1, 5})}, {{"axis", Ints{0, -2}}}});
  cases.push_back({"squeeze", {f32({1, 3, 1})}});
  cases.push_back({"expand_dims", {f32({3, 5})}, {{"axis", int64_t{1}}}});
  cases.push_back(
      {"expand_dims", {f32({3})}, {{"axis", int64_t{-1}}, {"num_newaxis", int64_t{2}}}});
  cases.push_back({"nn.batch_flatten", {f32({2, 3, 4, 5})}});
  cases.push_back({"nn.batch_flatten", {f32({7})}});
}

void add_stride_cases(Cases& cases) {
  auto transpose = [&](Shape shape, AttrValue axes) {
    cases.push_back({"transpose", {f32(std::move(shape))}, {{"axes", std::move(axes)}}});
  };
  transpose({3, 5}, None{});
  transpose({2, 3, 4, 5}, Ints{0, 2, 1, 3});
  transpose({2, 3, 4, 5}, Ints{0, 3, 1, 2});
  transpose({1, 7, 6}, Ints{-1, 0, 1});
  auto slice = [&](Shape shape, Ints begin, Ints end, Ints strides, AttrValue axes) {
    cases.push_back({"strided_slice",
                     {f32(std::move(shape))},
                     {{"begin", std::move(begin)},
                      {"end", std::move(end)},
                      {"strides", std::move(strides)},
                      {"axes", std::move(axes)}}});
  };
  slice({4, 6, 5}, {1, 0, 2}, {3, 6, 5}, {1, 1, 1}, None{});
  slice({4, 9}, {-7}, {-1}, {2}, Ints{-1});
  slice({8, 3}, {6}, {0}, {-2}, Ints{0});
  slice({5}, {100}, {INT64_MIN}, {-1}, Ints{0});
  slice({2, 3, 10, 10}, {0, 0}, {5, 100}, {1, 3}, Ints{2, 3});
  cases.push_back({"reverse", {f32({3, 5, 2})}, {{"axis", Ints{1}}}});
  cases.push_back({"reverse", {f32({3, 5})}, {{"axis", Ints{0, -1}}}});
  cases.push_back({"tile", {f32({2, 3})}, {{"reps", Ints{2, 1}}}});
  cases.push_back({"tile", {f32({3})}, {{"reps", Ints{2, 2}}}});
  cases.push_back({"tile", {f32({2, 1, 3})}, {{"reps", Ints{3}}}});
  cases.push_back({"repeat", {f32({2, 3})}, {{"repeats", int64_t{3}}, {"axis", int64_t{1}}}});
  cases.push_back({"repeat", {f32({2, 3, 2})}, {{"repeats", int64_t{2}}, {"axis", int64_t{-3}}}});
  cases.push_back({"broadcast_to", {f32({3, 1})}, {{"shape", Ints{2, 3, 4}}}});
  cases.push_back({"broadcast_to", {f32({})}, {{"shape", Ints{5}}}});
  cases.push_back({"shape_of", {f32({3, 1, 0, 5})}, {}});
  cases.push_back({"shape_of", {f32({7})}, {}});
  cases.push_back({"full", {f32({})}, {{"shape", Ints{2, 5}}}});
  cases.push_back({"full", {f32({1})}, {{"shape", Ints{}}}});
  for (const char* mode : {"DCR", "CRD"})
    for (int64_t block : {2, 3})
      cases.push_back({"nn.depth_to_space",
                       {f32({2, 2 * block * block, 3, 5})},
                       {{"block_size", block}, {"mode", std::string(mode)}}});
  cases.push_back({"nn.space_to_depth", {f32({2, 3, 4, 6})}, {{"block_size", int64_t{2}}}});
  cases.push_back({"nn.space_to_depth", {f32({1, 1, 3, 9})}, {{"block_size", int64_t{3}}}});
}

void add_join_cases(Cases& cases) {
  auto tuple = [&](std::string op, std::vector<OpArg> fields, int64_t axis) {
    cases.push_back({std::move(op), std::move(fields), {{"axis", axis}}, true});
  };
  tuple("concatenate", {f32({1, 16, 5, 5}), f32({1, 8, 5, 5}), f32({1, 3, 5, 5})}, 1);
  tuple("concatenate", {f32({2, 3}), f32({2, 3})}, -1);
  tuple("concatenate", {f32({4, 2})}, 0);
  tuple("stack", {f32({3, 4}), f32({3, 4}), f32({3, 4})}, 0);
  tuple("stack", {f32({3, 4}), f32({3, 4})}, -1);
  auto split = [&](Shape shape, AttrValue how, int64_t axis) {
    cases.push_back({"split",
                     {f32(std::move(shape))},
                     {{"indices_or_sections", std::move(how)}, {"axis", axis}}});
  };
  split({2, 12, 3}, int64_t{3}, 1);
  split({5, 7}, Ints{2, 3}, -1);
  split({6}, Ints{6}, 0);
}

}  // namespace

void add_shape_cases(Cases& cases) {
  add_view_cases(cases);
  add_stride_cases(cases);
  add_join_cases(cases);
}

}  // namespace collage
