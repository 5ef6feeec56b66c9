// Random functions over the made-up operators of tests/ir/tiny_function.h: branching, tuples,
// projections, views, residuals, shared constants, several results.
#pragma once

#include <random>

#include "ir/tiny_function.h"

namespace collage {

class RandomFunction {
 public:
  explicit RandomFunction(uint64_t seed) : rng_(seed) { register_tiny_ops(); }

  Function make(size_t calls) {
    std::vector<Expr> params;
    for (size_t i = 0; i <= below(3); ++i)
      params.push_back(make_var("x" + std::to_string(i), TensorType{{4}, DType::kFloat32}));
    values_ = params;
    for (size_t i = 0; i < 3; ++i) constants_.push_back(constant());
    while (calls-- > 0) step();
    std::vector<Expr> results = {values_.back()};
    for (size_t i = below(3); i > 0; --i) results.push_back(pick());
    return make_function(params, results.size() == 1 ? results[0] : make_tuple(results));
  }

 private:
  size_t below(size_t n) { return rng_() % n; }
  Expr constant() {
    return make_constant(Tensor::from<float>(
        {4}, {static_cast<float>(below(9)), 1, 2, static_cast<float>(below(5))}));
  }
  // Recent values more often, so that graphs are deep too.
  Expr pick() {
    size_t n = values_.size();
    return below(3) == 0 ? values_[below(n)] : values_[n - 1 - below(std::min<size_t>(n, 4))];
  }
  Expr call(const std::string& op, std::vector<Expr> args) { return *make_call(op, args); }
  std::string any(std::initializer_list<const char*> names) {
    return *(names.begin() + below(names.size()));
  }

  void step() {
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        values_.push_back(call(any({"relu", "exp", "tanh", "sigmoid"}), {pick()}));
        break;
      case 3:
      case 4:
        values_.push_back(call(any({"add", "multiply", "subtract"}), {pick(), pick()}));
        break;
      case 5:
        values_.push_back(call("add", {pick(), constants_[below(constants_.size())]}));
        break;
      case 6: {  // often siblings
        Expr input = pick();
        std::string op = any({"conv", "dense"});
        for (size_t i = 0; i <= below(3); ++i)
          values_.push_back(call(op, {input, constants_[below(constants_.size())]}));
        break;
      }
      case 7:
        values_.push_back(call(any({"transpose", "reshape", "sum", "pool", "sort"}), {pick()}));
        break;
      case 8: {
        std::vector<Expr> fields = {pick(), pick()};
        if (below(3) == 0) fields.push_back(constants_[0]);
        values_.push_back(call("concat", {make_tuple(fields)}));
        break;
      }
      default: {
        Expr both = call("split", {pick()});
        values_.push_back(*make_tuple_get_item(both, static_cast<int64_t>(below(2))));
        if (below(2)) values_.push_back(*make_tuple_get_item(both, 1));
      }
    }
  }

  std::mt19937_64 rng_;
  std::vector<Expr> values_, constants_;
};

}  // namespace collage
