// Cases of pooling, padding, resizing and regions of images.
#include "ops/cases/cases_list.h"

namespace collage {

namespace {

void add_pool_cases(Cases& cases) {
  struct Pool {
    Shape data;
    Ints size, strides, dilation, padding;
    bool ceil = false;
  };
  const std::vector<Pool> pools = {
      {{1, 3, 11}, {3}, {2}, {1}, {1, 0}},
      {{2, 1, 8}, {2}, {2}, {1}, {0, 0}},
      {{1, 16, 14, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
      {{1, 16, 14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{2, 5, 13, 9}, {2, 3}, {2, 1}, {1, 1}, {0, 1, 1, 0}},
      {{1, 1, 7, 7}, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, true},
      {{1, 3, 10, 10}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, true},
      {{1, 4, 4, 6, 5}, {2, 2, 3}, {2, 1, 2}, {1, 1, 1}, {0, 1, 0, 0, 0, 1}},
      {{2, 3, 4, 4, 4}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}},
  };
  for (const Pool& p : pools) {
    const std::string suffix = "_pool" + std::to_string(p.size.size()) + "d";
    Attrs attrs = {{"pool_size", p.size},
                   {"strides", p.strides},
                   {"dilation", p.dilation},
                   {"padding", p.padding},
                   {"ceil_mode", p.ceil}};
    cases.push_back({"nn.max" + suffix, {f32(p.data)}, attrs});
    for (bool include : {false, true}) {
      attrs.set("count_include_pad", include);
      cases.push_back({"nn.avg" + suffix, {f32(p.data)}, attrs});
    }
  }
  cases.push_back({"nn.max_pool2d",
                   {f32({1, 2, 9, 9})},
                   {{"pool_size", Ints{3, 2}}, {"dilation", Ints{2, 3}}}});
  for (auto [spatial, shape] : std::vector<std::pair<int, Shape>>{{1, {2, 3, 7}},
                                                                  {1, {1, 1, 1}},
                                                                  {2, {1, 32, 7, 7}},
                                                                  {2, {3, 5, 4, 9}},
                                                                  {3, {1, 4, 2, 5, 3}},
                                                                  {3, {2, 1, 3, 3, 3}}})
    for (const char* kind : {"avg", "max"})
      cases.push_back({fmt::format("nn.global_{}_pool{}d", kind, spatial), {f32(shape)}});
}

void add_pad_cases(Cases& cases) {
  auto pad = [&](Shape shape, IntLists widths, std::string mode) {
    cases.push_back({"nn.pad",
                     {f32(std::move(shape)), weight({}, {0.5, 0.5})},
                     {{"pad_width", std::move(widths)}, {"pad_mode", std::move(mode)}}});
  };
  pad({1, 3, 5, 5}, {{0, 0}, {0, 0}, {1, 1}, {1, 1}}, "constant");
  pad({2, 1, 4, 7}, {{0, 0}, {2, 1}, {0, 3}, {1, 0}}, "constant");
  pad({1, 2, 6, 5}, {{0, 0}, {0, 0}, {-1, 2}, {1, -2}}, "constant");
  pad({1, 2, 4, 5}, {{0, 0}, {0, 0}, {2, 1}, {3, 2}}, "edge");
  pad({1, 2, 4, 5}, {{0, 0}, {0, 0}, {2, 3}, {4, 1}}, "reflect");
  pad({3, 4}, {{1, 5}, {2, 2}}, "wrap");
}

void add_resize_cases(Cases& cases) {
  auto resize = [&](Shape shape, Ints size, std::string method, std::string mode,
                    std::string rounding = "") {
    cases.push_back({"image.resize" + std::to_string(size.size()) + "d",
                     {f32(std::move(shape))},
                     {{"size", std::move(size)},
                      {"method", std::move(method)},
                      {"coordinate_transformation_mode", std::move(mode)},
                      {"rounding_method", std::move(rounding)}}});
  };
  resize({1, 2, 5}, {10}, "nearest_neighbor", "asymmetric", "floor");
  resize({2, 3, 8}, {5}, "linear", "half_pixel");
  resize({1, 16, 7, 7}, {14, 14}, "nearest_neighbor", "asymmetric", "floor");
  resize({2, 3, 5, 6}, {8, 9}, "nearest_neighbor", "half_pixel", "round_prefer_floor");
  resize({1, 3, 9, 7}, {4, 5}, "nearest_neighbor", "align_corners", "round_prefer_ceil");
  resize({1, 3, 6, 5}, {12, 10}, "linear", "half_pixel");
  resize({2, 1, 6, 5}, {9, 13}, "linear", "align_corners");
  resize({1, 2, 9, 8}, {4, 1}, "linear", "pytorch_half_pixel");
  resize({1, 2, 6, 5}, {11, 8}, "cubic", "half_pixel");
  resize({1, 2, 6, 5}, {3, 4}, "cubic", "asymmetric");
  resize({1, 2, 2, 3, 4}, {4, 6, 8}, "nearest_neighbor", "asymmetric", "floor");
  resize({1, 2, 2, 3, 4}, {3, 5, 7}, "linear", "half_pixel");
  // Filters of many taps: images that shrink without aliases; one dimension alone does.
  for (const auto& [shape, size, method] : {std::tuple(Shape{1, 2, 23, 35}, Ints{7, 9}, "linear"),
                                            std::tuple(Shape{2, 1, 19, 8}, Ints{5, 11}, "cubic"),
                                            std::tuple(Shape{1, 3, 40}, Ints{6}, "linear")}) {
    resize(shape, size, method, "half_pixel");
    cases.back().attrs.set("antialias", true);
  }
}

void add_roi_cases(Cases& cases) {
  auto align = [&](Shape data, int64_t regions, ValueRange corners, Ints size, int64_t ratio,
                   const char* mode, bool half_pixel, double scale) {
    const int64_t batch = data[0];
    cases.push_back({"vision.roi_align",
                     {f32(std::move(data)), f32({regions, 4}, corners), indices({regions}, batch)},
                     {{"pooled_size", std::move(size)},
                      {"spatial_scale", scale},
                      {"sample_ratio", ratio},
                      {"mode", std::string(mode)},
                      {"half_pixel", half_pixel}}});
  };
  for (const char* mode : {"avg", "max"})
    for (bool half_pixel : {false, true}) {
      align({2, 3, 9, 7}, 5, {-2, 11}, {3, 2}, 2, mode, half_pixel, 1);
      // Cells of their own count, unless a region is turned round: that is no region elsewhere.
      if (!half_pixel) align({1, 1, 12, 16}, 3, {0, 64}, {2, 3}, 0, mode, half_pixel, 0.25);
    }
  align({3, 2, 1, 5}, 2, {-1, 6}, {1, 1}, 3, "avg", false, 0.9);
  align({2, 5, 8, 8}, 0, {0, 8}, {2, 2}, 2, "avg", true, 1);
}

}  // namespace

void add_window_cases(Cases& cases) {
  add_pool_cases(cases);
  add_pad_cases(cases);
  add_resize_cases(cases);
  add_roi_cases(cases);
}

}  // namespace collage
