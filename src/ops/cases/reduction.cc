// Cases of the reductions and of the operators along one axis.
#include "ops/cases/cases_list.h"

namespace collage {

void add_reduction_cases(Cases& cases) {
  const std::vector<std::pair<Shape, AttrValue>> shapes = {
      {{2, 3, 5, 7}, Ints{-1}},
      {{1, 16, 7, 7}, Ints{2, 3}},
      {{4, 5}, Ints{0}},
      {{3, 4, 5}, Ints{0, 2}},
      {{6}, None{}},
      {{2, 1, 3}, Ints{1}},
  };
  for (const auto& [shape, axis] : shapes)
    for (bool keepdims : {false, true}) {
      const Attrs attrs = {{"axis", axis}, {"keepdims", keepdims}};
      for (const char* op : {"sum", "mean", "max", "min"})
        cases.push_back({op, {f32(shape)}, attrs});
      cases.push_back({"prod", {f32(shape, {0.5, 1.5})}, attrs});
      for (const char* op : {"all", "any"}) cases.push_back({op, {boolean(shape)}, attrs});
    }
  for (const char* op : {"sum", "mean", "max", "min", "prod"}) {
    cases.push_back({op, {arg(DType::kInt64, {3, 4}, {-5, 5})}, {{"axis", Ints{1}}}});
    cases.push_back({op, {f32({2, 3, 4}, {0.5, 1})}, {{"axis", Ints{1}}, {"exclude", true}}});
  }
  for (const char* op : {"argmax", "argmin"})
    for (bool last : {false, true}) {
      cases.push_back({op,
                       {f32({2, 5, 7})},
                       {{"axis", int64_t{1}}, {"keepdims", last}, {"select_last_index", last}}});
      cases.push_back({op,
                       {arg(DType::kInt32, {2, 6, 5, 30}, {0, 3})},
                       {{"axis", int64_t{1}}, {"select_last_index", last}}});
      cases.push_back({op,
                       {arg(DType::kInt32, {4, 9}, {0, 3})},
                       {{"axis", int64_t{-1}}, {"select_last_index", last}}});
      for (const DType dtype : {DType::kUInt8, DType::kInt32, DType::kInt64})
        cases.push_back({op,
                         {arg(dtype, {2, 21, 19}, {0, 3})},
                         {{"axis", int64_t{1}}, {"select_last_index", last}}});
      cases.push_back({op, {f32({37, 3})}, {{"axis", int64_t{0}}, {"select_last_index", last}}});
    }
  for (bool flag : {false, true}) {
    cases.push_back({"cumsum",
                     {f32({3, 5, 2})},
                     {{"axis", int64_t{1}}, {"exclusive", flag}, {"reverse", !flag}}});
    cases.push_back({"cumsum",
                     {arg(DType::kInt64, {7}, {-9, 9})},
                     {{"axis", int64_t{-1}}, {"exclusive", flag}, {"reverse", flag}}});
    cases.push_back(
        {"topk", {f32({3, 11})}, {{"k", int64_t{4}}, {"axis", int64_t{-1}}, {"largest", flag}}});
    cases.push_back(
        {"topk", {f32({2, 6, 3})}, {{"k", int64_t{6}}, {"axis", int64_t{1}}, {"largest", flag}}});
    cases.push_back({"trilu", {f32({2, 4, 5})}, {{"k", int64_t{1}}, {"upper", flag}}});
    cases.push_back({"trilu", {f32({5, 3})}, {{"k", int64_t{-1}}, {"upper", flag}}});
  }
  cases.push_back({"reverse_sequence",
                   {f32({3, 6, 2}), arg(DType::kInt64, {3}, {0, 6})},
                   {{"seq_axis", int64_t{1}}, {"batch_axis", int64_t{0}}}});
  cases.push_back({"reverse_sequence",
                   {f32({5, 4}), arg(DType::kInt64, {4}, {0, 5})},
                   {{"seq_axis", int64_t{0}}, {"batch_axis", int64_t{1}}}});
}

}  // namespace collage
