#include "backend/native/templates/cook_toom.h"

#include <cmath>

#include "base/check.h"

namespace collage::native {

CookToom::CookToom(std::vector<std::pair<double, double>> pairs) : pairs_(std::move(pairs)) {}

const CookToom& CookToom::of(int outputs) {
  static const CookToom two({{1, -1}}), four({{1, -1}, {0.5, -2}});
  COLLAGE_CHECK(outputs == 2 || outputs == 4, "F({}, 3)", outputs);
  return outputs == 2 ? two : four;
}

double CookToom::point(int product) const {
  if (product == 0) return 0;
  const auto& pair = pairs_[static_cast<size_t>(product - 1) / 2];
  return product % 2 == 1 ? pair.first : pair.second;
}

double CookToom::output_entry(int output, int product) const {
  if (product == products() - 1) return output == outputs() - 1 ? 1 : 0;
  return output == 0 ? 1 : std::pow(point(product), output);
}

double CookToom::weight_entry(int product, int tap) const {
  if (product == products() - 1) return tap == kTaps - 1 ? 1 : 0;
  double slope = 1;
  for (int other = 0; other < products() - 1; ++other) {
    if (other != product) slope *= point(product) - point(other);
  }
  return (tap == 0 ? 1 : std::pow(point(product), tap)) / slope;
}

}  // namespace collage::native
