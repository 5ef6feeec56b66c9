// DeformConv: without offsets it is a convolution, with whole ones it reads other pixels, and what
// does not fit together is refused.
#include "frontend/onnx/model_builder.h"
#include "ops/random_inputs.h"

namespace collage {
namespace {

Tensor random_floats(Shape shape, uint64_t seed) {
  return random_tensor({std::move(shape), DType::kFloat32}, seed);
}

std::vector<std::string> dims_of(const Shape& shape) {
  std::vector<std::string> dims;
  for (int64_t extent : shape) dims.push_back(std::to_string(extent));
  return dims;
}

void set_window(NodeBuilder node, int64_t group) {
  node.ints("strides", {2, 1}).ints("pads", {1, 0, 2, 1}).ints("dilations", {1, 2});
  node.integer("group", group);
}

TEST(DeformConv, WithoutOffsetsIsAConvolution) {
  for (const int64_t offset_group : {1, 2}) {
    ModelBuilder m(19);
    m.input("x", {"2", "4", "6", "7"}).constant("w", random_floats({6, 2, 3, 2}, 1));
    m.constant("b", random_floats({6}, 2));
    // 4 by 6 positions of 3 by 2 taps.
    m.constant("o", Tensor::zeros(DType::kFloat32, {2, offset_group * 12, 4, 6}));
    NodeBuilder node = m.node("DeformConv", {"x", "w", "o", "b"}, {"y"});
    set_window(node.integer("offset_group", offset_group), 2);
    set_window(m.node("Conv", {"x", "w", "b"}, {"z"}), 2);
    m.output("y").output("z");
    const std::vector<Tensor> results = m.run({random_floats({2, 4, 6, 7}, 3)});
    expect_values(results[0], results[1].shape(), values_of(results[1]));
  }
}

TEST(DeformConv, OffsetsMoveTapsAndTheMaskWeighsThem) {
  ModelBuilder m(19);
  // One tap of weight 2 at each of 2 by 2 pixels.
  m.input("x", {"1", "1", "2", "2"}).constant("w", floats({1, 1, 1, 1}, {2}));
  // Rows first, then columns: one down, half a pixel left, out of the image, not at all.
  m.constant("o", floats({1, 2, 2, 2}, {1, 0, 5, 0, 0, -0.5f, 0, 0}));
  m.constant("mask", floats({1, 1, 2, 2}, {1, 1, 1, 0.5f}));
  m.node("DeformConv", {"x", "w", "o", "", "mask"}, {"y"});
  m.output("y");
  expect_values(m.run({floats({1, 1, 2, 2}, {1, 2, 3, 4})})[0], {1, 1, 2, 2}, {6, 3, 0, 4});
}

TEST(DeformConv, OneDimension) {
  ModelBuilder m(22);
  m.input("x", {"1", "1", "3"}).constant("w", floats({1, 1, 2}, {1, 10}));
  m.constant("o", floats({1, 2, 2}, {0, 0, -1, 0.25f}));
  m.node("DeformConv", {"x", "w", "o"}, {"y"});
  m.output("y");
  // 1 + 10 · x[0] and 2 + 10 · x[2.25].
  expect_values(m.run({floats({1, 1, 3}, {1, 2, 4})})[0], {1, 1, 2}, {11, 2 + 30});
}

TEST(DeformConv, WhatDoesNotFit) {
  struct Bad {
    Shape weight, offset, mask;
    int64_t group, offset_group;
    const char* message;
  };
  for (const Bad& bad :
       {Bad{{2, 2, 3, 3},
            {1, 18, 4, 3},
            {},
            1,
            1,
            "offset must have shape (1, 18, 4, 4), not (1, 18, 4, 3)"},
        {{2, 2, 3, 3}, {1, 18, 4, 4}, {1, 18, 4, 4}, 1, 1, "mask must have shape (1, 9, 4, 4)"},
        {{2, 2, 3, 3}, {1, 18, 4, 4}, {}, 2, 1, "groups 2 does not fit"},
        {{2, 2, 3, 3}, {1, 18, 4, 4}, {}, 1, 3, "offset_groups 3"},
        {{2, 2, 7, 7}, {1, 98, 1, 1}, {}, 1, 1, "a window of 7 does not fit extent 6"}}) {
    ModelBuilder m(19);
    m.input("x", {"1", "2", "6", "6"}).constant("w", random_floats(bad.weight, 1));
    m.input("o", dims_of(bad.offset));
    std::vector<std::string> inputs = {"x", "w", "o"};
    if (!bad.mask.empty()) {
      m.input("mask", dims_of(bad.mask));
      inputs.insert(inputs.end(), {"", "mask"});
    }
    m.node("DeformConv", inputs, {"y"})
        .integer("group", bad.group)
        .integer("offset_group", bad.offset_group);
    m.output("y");
    expect_error(m.import(), ErrorCode::kBadModel, bad.message);
  }
}

}  // namespace
}  // namespace collage
