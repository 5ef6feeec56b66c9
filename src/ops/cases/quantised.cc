// Cases of the operators of quantised models: data of bytes, constant weights, scales and zero
// points.
#include "ops/quantised.h"

#include "ops/cases/cases_list.h"

namespace collage {

namespace {

OpArg bytes(Shape shape, DType dtype, bool constant) {
  const ValueRange range = dtype == DType::kUInt8 ? ValueRange{0, 255} : ValueRange{-128, 127};
  return {{std::move(shape), dtype}, constant, range};
}
OpArg scale(Shape shape, double low = 0.01, double high = 0.1) {
  return weight(std::move(shape), {low, high});
}
OpArg zero_point(Shape shape, double low, double high) {
  return {{std::move(shape), DType::kInt32}, true, {low, high}};
}
OpArg zero_point(Shape shape, DType dtype) {
  return dtype == DType::kUInt8 ? zero_point(std::move(shape), 110, 140)
                                : zero_point(std::move(shape), -20, 20);
}

void add_conversions(Cases& cases) {
  struct Along {
    Shape data, parameters;
    int64_t axis = -1;
  };
  const std::vector<Along> shapes = {{{1, 16, 7, 7}, {}},
                                     {{2, 5, 3}, {5}, 1},
                                     {{3, 1, 9}, {9}, -1},
                                     {{4, 3, 2, 2}, {4}, 0},
                                     {{1, 33, 5, 4}, {33}, 1},
                                     {{7}, {}},
                                     {{}, {}},
                                     {{2, 3, 1, 1}, {1}, 3}};
  struct Kind {
    DType dtype;
    double low, high;  // of the zero point
    double scale;      // so that some numbers of +-10 leave the range
  };
  const std::vector<Kind> kinds = {{DType::kInt8, -20, 20, 0.05},
                                   {DType::kUInt8, 110, 140, 0.05},
                                   {DType::kInt16, -300, 300, 2e-4},
                                   {DType::kUInt16, 30000, 34000, 2e-4},
                                   {DType::kInt32, 0, 0, 1e-3}};
  for (const Along& s : shapes)
    for (const Kind& kind : kinds) {
      if (kind.dtype != DType::kInt8 && kind.dtype != DType::kUInt8 && s.data.size() != 3) continue;
      const OpArg scales = scale(s.parameters, kind.scale, 2 * kind.scale);
      const OpArg zeros = zero_point(s.parameters, kind.low, kind.high);
      cases.push_back({"qnn.quantize",
                       {f32(s.data, {-10, 10}), scales, zeros},
                       {{"axis", s.axis}, {"out_dtype", std::string(dtype_name(kind.dtype))}}});
      cases.push_back({"qnn.dequantize",
                       {arg(kind.dtype, s.data, {kind.low - 100, kind.low + 115}), scales, zeros},
                       {{"axis", s.axis}}});
    }
}

struct Operands {
  Shape data, weight;
  DType data_type = DType::kUInt8, weight_type = DType::kInt8;
  int64_t channels = 0;  // with a scale each; 0: one for all
  bool constant = true;  // the right operand
  int64_t bits = 8;      // of its integers
};

OpCase product(std::string op, const Operands& o, Attrs attrs) {
  const Shape channels = o.channels == 0 ? Shape{} : Shape{o.channels};
  const OpArg weight_zero = o.weight_type == DType::kInt8 && o.channels != 0
                                ? zero_point(channels, 0, 0)
                                : zero_point(channels, o.weight_type);
  OpArg weights = bytes(o.weight, o.weight_type, o.constant);
  if (o.bits == 7) weights.range = {-kLargestOf7Bits, kLargestOf7Bits};
  attrs.set(kWeightBits, o.bits);
  return {std::move(op),
          {bytes(o.data, o.data_type, false), std::move(weights), scale({}),
           zero_point({}, o.data_type), scale(channels, 0.001, 0.01), weight_zero},
          std::move(attrs)};
}

void add_convolutions(Cases& cases) {
  auto add = [&](std::string op, const Operands& operands, Ints strides, Ints padding,
                 Ints dilation, int64_t groups) {
    cases.push_back(product(std::move(op), operands,
                            {{"strides", std::move(strides)},
                             {"padding", std::move(padding)},
                             {"dilation", std::move(dilation)},
                             {"groups", groups}}));
  };
  using enum DType;
  add("qnn.conv1d", {{1, 4, 9}, {6, 4, 3}, kUInt8, kInt8, 6}, {1}, {1, 1}, {1}, 1);
  add("qnn.conv1d", {{2, 6, 17}, {4, 3, 4}, kInt8, kInt8, 0}, {2}, {0, 3}, {2}, 2);
  add("qnn.conv1d", {{1, 16, 9}, {32, 16, 3}, kUInt8, kInt8, 32, true, 7}, {1}, {1, 1}, {1}, 1);

  const Ints ones = {1, 1}, none = {0, 0, 0, 0}, around = {1, 1, 1, 1};
  add("qnn.conv2d", {{1, 16, 14, 14}, {32, 16, 3, 3}, kUInt8, kInt8, 32}, ones, around, ones, 1);
  add("qnn.conv2d", {{1, 64, 28, 28}, {64, 64, 3, 3}, kUInt8, kInt8, 64}, ones, around, ones, 1);
  add("qnn.conv2d", {{1, 64, 14, 14}, {128, 64, 1, 1}, kInt8, kInt8, 128}, ones, none, ones, 1);
  add("qnn.conv2d", {{1, 64, 14, 14}, {128, 64, 1, 1}, kUInt8, kInt8, 128, true, 7}, ones, none,
      ones, 1);
  add("qnn.conv2d", {{1, 32, 15, 15}, {48, 32, 3, 3}, kUInt8, kInt8, 48, true, 7}, {2, 2}, around,
      ones, 1);
  add("qnn.conv2d", {{1, 32, 9, 9}, {16, 32, 1, 1}, kInt8, kInt8, 16, true, 7}, ones, none, ones,
      1);
  add("qnn.conv2d", {{1, 24, 14, 14}, {24, 1, 3, 3}, kUInt8, kInt8, 24, true, 7}, ones, around,
      ones, 24);
  add("qnn.conv2d", {{1, 32, 15, 15}, {48, 32, 1, 1}, kUInt8, kInt8, 0}, {2, 2}, none, ones, 1);
  add("qnn.conv2d", {{2, 3, 33, 31}, {8, 3, 7, 7}, kUInt8, kInt8, 8}, {2, 2}, {3, 3, 3, 3}, ones,
      1);
  add("qnn.conv2d", {{1, 1, 5, 7}, {1, 1, 3, 2}, kInt8, kInt8, 1}, ones, none, ones, 1);
  add("qnn.conv2d", {{3, 5, 11, 13}, {7, 5, 3, 5}, kInt8, kInt8, 7}, {2, 1}, {0, 2, 1, 3}, ones, 1);
  add("qnn.conv2d", {{1, 6, 19, 17}, {9, 6, 3, 3}, kUInt8, kUInt8, 0}, ones, {2, 2, 2, 2}, {2, 2},
      1);
  add("qnn.conv2d", {{1, 8, 9, 9}, {4, 8, 3, 3}, kUInt8, kUInt8, 4}, ones, around, ones, 1);
  add("qnn.conv2d", {{1, 12, 9, 9}, {18, 4, 3, 3}, kInt8, kInt8, 18}, {2, 2}, around, ones, 3);
  add("qnn.conv2d", {{1, 24, 14, 14}, {24, 1, 3, 3}, kUInt8, kInt8, 24}, ones, around, ones, 24);
  add("qnn.conv2d", {{2, 17, 13, 13}, {17, 1, 5, 5}, kInt8, kInt8, 0}, {2, 2}, {2, 2, 2, 2}, ones,
      17);

  add("qnn.conv3d", {{1, 8, 3, 9, 9}, {16, 8, 3, 3, 3}, kUInt8, kInt8, 16}, {1, 1, 1},
      {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1);
  add("qnn.conv3d", {{1, 8, 3, 9, 9}, {16, 8, 3, 3, 3}, kUInt8, kInt8, 16, true, 7}, {1, 1, 1},
      {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1);
  add("qnn.conv3d", {{2, 4, 5, 6, 7}, {4, 2, 2, 3, 3}, kInt8, kInt8, 0}, {1, 2, 1},
      {0, 1, 0, 1, 1, 2}, {1, 1, 2}, 2);
}

void add_matrix_products(Cases& cases) {
  using enum DType;
  for (const Operands& operands :
       std::vector<Operands>{{{1, 64}, {32, 64}, kUInt8, kInt8, 32},
                             {{3, 64}, {32, 64}, kUInt8, kInt8, 32, true, 7},
                             {{5, 33}, {17, 33}, kInt8, kInt8, 17},
                             {{1, 1}, {1, 1}, kUInt8, kInt8, 0},
                             {{2, 7, 48}, {64, 48}, kUInt8, kInt8, 64},
                             {{64, 128}, {96, 128}, kInt8, kInt8, 0},
                             {{3, 20}, {6, 20}, kUInt8, kUInt8, 0},
                             {{9}, {4, 9}, kInt8, kInt8, 4}})
    cases.push_back(product("qnn.dense", operands, {}));

  auto matmul = [&](const Operands& operands, bool ta, bool tb) {
    cases.push_back(product("qnn.matmul", operands, {{"transpose_a", ta}, {"transpose_b", tb}}));
  };
  matmul({{64, 96}, {96, 128}, kUInt8, kInt8, 128}, false, false);
  matmul({{64, 96}, {96, 128}, kUInt8, kInt8, 128, true, 7}, false, false);
  matmul({{7, 13}, {13, 5}, kInt8, kInt8, 0}, false, false);
  matmul({{13, 7}, {13, 5}, kUInt8, kInt8, 5}, true, false);
  matmul({{7, 13}, {5, 13}, kInt8, kInt8, 5}, false, true);
  matmul({{4, 5, 6}, {6, 7}, kUInt8, kInt8, 7}, false, false);
  matmul({{2, 3, 8, 16}, {2, 3, 16, 9}, kUInt8, kUInt8, 0, false}, false, false);
  matmul({{4, 16, 32}, {4, 16, 32}, kInt8, kInt8, 0, false}, false, true);
  matmul({{3, 1, 5, 6}, {4, 6, 7}, kUInt8, kInt8, 7, false}, false, false);
  matmul({{5, 6}, {4, 6, 7}, kInt8, kUInt8, 0, false}, false, false);
}

}  // namespace

void add_quantised_cases(Cases& cases) {
  add_conversions(cases);
  add_convolutions(cases);
  add_matrix_products(cases);
}

}  // namespace collage
