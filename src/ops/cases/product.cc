// Cases of dense, matmul, bias_add and attention.
#include "ops/cases/cases_list.h"

namespace collage {

void add_product_cases(Cases& cases) {
  for (auto [data, weights] : std::vector<std::pair<Shape, Shape>>{{{1, 64}, {32, 64}},
                                                                   {{5, 33}, {17, 33}},
                                                                   {{1, 1}, {1, 1}},
                                                                   {{2, 7, 48}, {64, 48}},
                                                                   {{64, 128}, {96, 128}},
                                                                   {{9}, {4, 9}}})
    cases.push_back({"nn.dense", {f32(data), weight(weights)}});

  auto matmul = [&](OpArg a, OpArg b, bool ta, bool tb, std::string op = "nn.matmul") {
    cases.push_back(
        {std::move(op), {std::move(a), std::move(b)}, {{"transpose_a", ta}, {"transpose_b", tb}}});
  };
  matmul(f32({64, 96}), weight({96, 128}), false, false);
  matmul(f32({7, 13}), f32({13, 5}), false, false);
  matmul(f32({13, 7}), f32({13, 5}), true, false);
  matmul(f32({7, 13}), f32({5, 13}), false, true);
  matmul(f32({13, 7}), f32({5, 13}), true, true);
  matmul(f32({2, 3, 8, 16}), f32({2, 3, 16, 9}), false, false);
  matmul(f32({12, 16, 64}), f32({12, 16, 64}), false, true);
  matmul(f32({3, 1, 5, 6}), f32({4, 6, 7}), false, false);
  matmul(f32({4, 5, 6}), weight({6, 7}), false, false);
  matmul(f32({5, 6}), f32({4, 6, 7}), false, false);
  matmul(f32({1, 160}), weight({160, 320}), false, false);
  matmul(f32({3, 6, 8}), f32({3, 5, 8}), false, true, "nn.batch_matmul");
  matmul(f32({2, 8, 3}), f32({1, 8, 5}), true, false, "nn.batch_matmul");

  // Weights of a few bits.
  for (const auto& [shape, columns, bits, block, zeros] :
       {std::tuple(Shape{1, 64}, 48, 4, 32, false), std::tuple(Shape{3, 32}, 20, 4, 16, true),
        std::tuple(Shape{2, 2, 32}, 17, 8, 16, true), std::tuple(Shape{48}, 32, 2, 16, false)}) {
    const int64_t terms = shape.back(), n = columns;
    OpArg codes = arg(DType::kUInt8, {terms * bits / 8, n}, {0, 255});
    codes.is_constant = true;
    const Shape each{terms / block, n};
    cases.push_back(
        {"nn.packed_dense",
         {f32(shape), codes, weight(each, {0.01, 0.1}), weight(zeros ? each : Shape{}, {1, 8})},
         {{"bits", int64_t{bits}}, {"block_size", int64_t{block}}}});
  }

  auto bias = [&](Shape data, int64_t axis, int64_t extent) {
    cases.push_back({"nn.bias_add", {f32(std::move(data)), weight({extent})}, {{"axis", axis}}});
  };
  bias({1, 16, 7, 7}, 1, 16);
  bias({5, 33}, -1, 33);
  bias({2, 3, 5, 7}, -2, 5);

  auto attention = [&](Shape q, Shape k, Shape v, bool causal, std::vector<Shape> mask = {}) {
    OpCase c{"nn.attention",
             {f32(std::move(q)), f32(std::move(k)), f32(std::move(v))},
             {{"scale", 0.125}, {"causal", causal}}};
    for (Shape& shape : mask) c.args.push_back(f32(std::move(shape), {-2, 0}));
    cases.push_back(std::move(c));
  };
  attention({1, 4, 16, 64}, {1, 4, 16, 64}, {1, 4, 16, 64}, false);
  attention({2, 3, 17, 8}, {2, 3, 17, 8}, {2, 3, 17, 8}, true);
  attention({2, 2, 5, 8}, {2, 2, 9, 8}, {2, 2, 9, 6}, false, {{2, 1, 1, 9}});
  attention({3, 7, 16}, {3, 7, 16}, {3, 7, 16}, false, {{7, 7}});
  attention({2, 2, 9, 8}, {2, 2, 9, 8}, {2, 2, 9, 8}, true, {{2, 1, 1, 9}});
}

}  // namespace collage
