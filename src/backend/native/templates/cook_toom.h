// Minimal filtering F(m, 3) by Cook and Toom: m outputs of a three-tap correlation with m + 2
// products.
//
// The product of two polynomials is known by its values at m + 1 points and its leading
// coefficient ("infinity"); read backwards (transposed) that gives y = A'[(G g) * (B'd)]:
//
//   N(x) = prod_a (x - a)           over the finite points a
//   A'[i][a] = a^i                  A'[i][inf] = 1 where i = m - 1
//   G[a][j]  = a^j / N'(a)          G[inf][j]  = 1 where j = 2
//   B'[a]    = coefficients of N(x) / (x - a)      B'[inf] = those of N(x)
//
// The finite points are 0 and pairs (a, b). Rows of B' share the factors of the other pairs, and
// columns of A' of a pair (a, -a) share sums and differences, so the transforms below take about
// half the operations of the matrices.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace collage::native {

class CookToom {
 public:
  /// Two points a pair; `outputs` = 2 * pairs.
  explicit CookToom(std::vector<std::pair<double, double>> pairs);
  /// The points in use: 0, 1, -1 for two outputs and 0, 1, -1, 1/2, -2 for four.
  static const CookToom& of(int outputs);

  static constexpr int kTaps = 3;
  int outputs() const { return static_cast<int>(2 * pairs_.size()); }
  int products() const { return outputs() + 2; }

  /// Entries of two of the matrices; products are numbered 0, the pairs, infinity.
  double output_entry(int output, int product) const;
  double weight_entry(int product, int tap) const;

  /// B'd, A'm: `T` is a number or an expression with +, - and * float.
  template <typename T>
  std::vector<T> transform_input(const std::vector<T>& data) const;
  template <typename T>
  std::vector<T> transform_output(const std::vector<T>& products) const;

 private:
  double point(int product) const;
  template <typename T>
  static void accumulate(T& sum, bool& started, double factor, const T& value);
  /// The correlation with (x - a)(x - b) = x^2 - (a + b) x + ab: two elements fewer.
  template <typename T>
  std::vector<T> apply_pair(size_t pair, const std::vector<T>& data) const;

  std::vector<std::pair<double, double>> pairs_;
};

template <typename T>
void CookToom::accumulate(T& sum, bool& started, double factor, const T& value) {
  if (factor == 0) return;
  const float f = static_cast<float>(factor);
  if (!started) {
    sum = factor == 1 ? value : T(value * f);
  } else if (factor == 1) {
    sum = sum + value;
  } else if (factor == -1) {
    sum = sum - value;
  } else {
    sum = sum + value * f;
  }
  started = true;
}

template <typename T>
std::vector<T> CookToom::apply_pair(size_t pair, const std::vector<T>& data) const {
  const auto [a, b] = pairs_[pair];
  std::vector<T> result;
  for (size_t k = 0; k + 2 < data.size(); ++k) {
    T sum{};
    bool started = false;
    accumulate(sum, started, 1, data[k + 2]);
    accumulate(sum, started, -(a + b), data[k + 1]);
    accumulate(sum, started, a * b, data[k]);
    result.push_back(sum);
  }
  return result;
}

template <typename T>
std::vector<T> CookToom::transform_input(const std::vector<T>& data) const {
  std::vector<T> all = data;
  for (size_t i = 0; i < pairs_.size(); ++i) all = apply_pair(i, all);
  std::vector<T> result{all[0]};
  for (size_t i = 0; i < pairs_.size(); ++i) {
    std::vector<T> rest = data;
    for (size_t other = 0; other < pairs_.size(); ++other) {
      if (other != i) rest = apply_pair(other, rest);
    }
    const auto [a, b] = pairs_[i];
    for (double partner : {b, a}) {  // x (x - partner) on what is left
      T sum{};
      bool started = false;
      accumulate(sum, started, 1, rest[2]);
      accumulate(sum, started, -partner, rest[1]);
      result.push_back(sum);
    }
  }
  result.push_back(all[1]);
  return result;
}

template <typename T>
std::vector<T> CookToom::transform_output(const std::vector<T>& products) const {
  const int last = outputs() - 1;
  std::vector<T> result;
  for (int i = 0; i <= last; ++i) {
    T sum{};
    bool started = false;
    double power_sign = i % 2 == 0 ? 1 : -1;
    if (i == 0) accumulate(sum, started, 1, products[0]);
    for (size_t p = 0; p < pairs_.size(); ++p) {
      const T &first = products[1 + 2 * p], &second = products[2 + 2 * p];
      const int at = static_cast<int>(1 + 2 * p);
      if (pairs_[p].first == -pairs_[p].second) {
        accumulate(sum, started, output_entry(i, at),
                   power_sign > 0 ? T(first + second) : T(first - second));
      } else {
        accumulate(sum, started, output_entry(i, at), first);
        accumulate(sum, started, output_entry(i, at + 1), second);
      }
    }
    if (i == last) accumulate(sum, started, 1, products.back());
    result.push_back(sum);
  }
  return result;
}

}  // namespace collage::native
