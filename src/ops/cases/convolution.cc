// Cases of nn.conv…d and nn.conv…d_transpose: data, then weights as a constant.
#include "ops/cases/cases_list.h"

namespace collage {

namespace {

Attrs conv(Ints strides, Ints padding, Ints dilation, int64_t groups) {
  return {{"strides", std::move(strides)},
          {"padding", std::move(padding)},
          {"dilation", std::move(dilation)},
          {"groups", groups}};
}

Attrs transposed(Ints strides, Ints padding, Ints dilation, int64_t groups, Ints extra) {
  Attrs attrs = conv(std::move(strides), std::move(padding), std::move(dilation), groups);
  attrs.set("output_padding", std::move(extra));
  return attrs;
}

}  // namespace

void add_convolution_cases(Cases& cases) {
  auto add = [&](std::string op, Shape data, Shape weights, Attrs attrs) {
    cases.push_back(
        {std::move(op), {f32(std::move(data)), weight(std::move(weights))}, std::move(attrs)});
  };
  add("nn.conv1d", {1, 4, 9}, {6, 4, 3}, conv({1}, {1, 1}, {1}, 1));
  add("nn.conv1d", {2, 6, 17}, {4, 3, 4}, conv({2}, {0, 3}, {2}, 2));

  add("nn.conv2d", {1, 16, 14, 14}, {32, 16, 3, 3}, conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 1));
  add("nn.conv2d", {1, 64, 28, 28}, {64, 64, 3, 3}, conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 1));
  add("nn.conv2d", {1, 64, 14, 14}, {128, 64, 1, 1}, conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 1));
  add("nn.conv2d", {1, 32, 15, 15}, {48, 32, 1, 1}, conv({2, 2}, {0, 0, 0, 0}, {1, 1}, 1));
  add("nn.conv2d", {2, 3, 33, 31}, {8, 3, 7, 7}, conv({2, 2}, {3, 3, 3, 3}, {1, 1}, 1));
  add("nn.conv2d", {1, 1, 5, 7}, {1, 1, 3, 2}, conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 1));
  add("nn.conv2d", {3, 5, 11, 13}, {7, 5, 3, 5}, conv({2, 1}, {0, 2, 1, 3}, {1, 1}, 1));
  add("nn.conv2d", {1, 6, 19, 17}, {9, 6, 3, 3}, conv({1, 1}, {2, 2, 2, 2}, {2, 2}, 1));
  add("nn.conv2d", {1, 32, 14, 14}, {32, 4, 3, 3}, conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 8));
  add("nn.conv2d", {1, 12, 9, 9}, {18, 4, 3, 3}, conv({2, 2}, {1, 1, 1, 1}, {1, 1}, 3));
  add("nn.conv2d", {1, 24, 14, 14}, {24, 1, 3, 3}, conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 24));
  add("nn.conv2d", {2, 17, 13, 13}, {17, 1, 5, 5}, conv({2, 2}, {2, 2, 2, 2}, {1, 1}, 17));
  add("nn.conv2d", {1, 5, 8, 8}, {10, 1, 3, 3}, conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 5));

  add("nn.conv3d", {1, 8, 3, 14, 14}, {16, 8, 3, 3, 3},
      conv({1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1));
  add("nn.conv3d", {1, 4, 5, 7, 9}, {6, 4, 1, 1, 1},
      conv({2, 2, 2}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, 1));
  add("nn.conv3d", {2, 4, 5, 6, 7}, {4, 2, 2, 3, 3},
      conv({1, 2, 1}, {0, 1, 0, 1, 1, 2}, {1, 1, 2}, 2));

  add("nn.conv1d_transpose", {1, 4, 5}, {4, 3, 3}, transposed({2}, {1, 1}, {1}, 1, {1}));
  add("nn.conv1d_transpose", {2, 4, 7}, {4, 2, 4}, transposed({3}, {0, 2}, {2}, 2, {0}));
  add("nn.conv2d_transpose", {1, 16, 7, 7}, {16, 8, 4, 4},
      transposed({2, 2}, {1, 1, 1, 1}, {1, 1}, 1, {0, 0}));
  add("nn.conv2d_transpose", {2, 6, 5, 6}, {6, 4, 3, 3},
      transposed({2, 1}, {0, 1, 1, 0}, {1, 2}, 2, {1, 0}));
  add("nn.conv2d_transpose", {1, 1, 3, 3}, {1, 1, 2, 2},
      transposed({1, 1}, {0, 0, 0, 0}, {1, 1}, 1, {0, 0}));
  add("nn.conv3d_transpose", {1, 4, 2, 3, 4}, {4, 3, 2, 3, 3},
      transposed({2, 2, 2}, {0, 1, 1, 0, 1, 1}, {1, 1, 1}, 1, {0, 1, 0}));
  add("nn.conv3d_transpose", {2, 2, 2, 2, 2}, {2, 1, 2, 2, 2},
      transposed({1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, 2, {0, 0, 0}));
}

}  // namespace collage
