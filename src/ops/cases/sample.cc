// Cases of the operators that read between pixels.
#include "ops/cases/cases_list.h"

namespace collage {

void add_sample_cases(Cases& cases) {
  auto sample = [&](Shape data, Shape grid, const char* method, const char* padding, bool corners) {
    cases.push_back({"image.grid_sample",
                     {f32(std::move(data)), f32(std::move(grid), {-1.3, 1.3})},
                     {{"method", std::string(method)},
                      {"padding_mode", std::string(padding)},
                      {"align_corners", corners}}});
  };
  for (const char* method : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const bool corners : {false, true})
        sample({2, 3, 5, 7}, {2, 4, 3, 2}, method, padding, corners);
  sample({1, 2, 1, 9}, {1, 33, 40, 2}, "linear", "zeros", false);
  sample({1, 2, 6}, {1, 5, 1}, "cubic", "border", false);
  sample({2, 1, 3, 4, 5}, {2, 2, 3, 4, 3}, "linear", "reflection", true);

  struct Deformed {
    Shape data, weight;
    Ints strides, padding, dilation;
    int64_t groups, offset_groups;
    Shape positions;
  };
  for (const Deformed& d : {
           Deformed{{1, 3, 6, 7}, {4, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 1, {6, 7}},
           {{2, 4, 6, 7}, {6, 2, 3, 2}, {2, 1}, {1, 0, 2, 1}, {1, 2}, 2, 2, {4, 6}},
           {{1, 2, 20, 18}, {3, 2, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, 1, {20, 18}},
           {{1, 2, 9}, {3, 2, 3}, {2}, {1, 1}, {1}, 1, 2, {5}},
       }) {
    const auto dims = static_cast<int64_t>(d.positions.size());
    const Shape kernel(d.weight.begin() + 2, d.weight.end());
    Shape offset = {d.data[0], d.offset_groups * num_elements(kernel) * dims};
    offset.insert(offset.end(), d.positions.begin(), d.positions.end());
    Shape mask = offset;
    mask[1] /= dims;
    const Attrs attrs = {{"strides", d.strides},
                         {"padding", d.padding},
                         {"dilation", d.dilation},
                         {"groups", d.groups},
                         {"offset_groups", d.offset_groups}};
    std::vector<OpArg> args = {f32(d.data), weight(d.weight), f32(offset, {-2, 2})};
    cases.push_back({"nn.deformable_conv", args, attrs});
    args.push_back(f32(mask, {0, 1}));
    cases.push_back({"nn.deformable_conv", std::move(args), attrs});
  }
}

}  // namespace collage
