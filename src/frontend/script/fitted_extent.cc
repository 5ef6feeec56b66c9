#include "frontend/script/fitted_extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"

namespace collage::tensor_program {
namespace {

/// Far from the grid: what holds up to a size only, such as min(n, 512), is no term.
constexpr int64_t kCheckedSizes[] = {1, 2, 3, 7, 17, 100, 513, 1025, 4099};

constexpr int64_t kMany = 600;  // beyond most bounds

constexpr int64_t kMostOfProducts = 4096;  // 64 by 64

/// A polynomial without its constant: factors of x_i * x_j with i <= j, and of x_i.
struct Polynomial {
  std::vector<std::vector<int64_t>> squares;
  std::vector<int64_t> factors;

  int64_t at(const std::vector<int64_t>& x) const {
    int64_t sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += factors[i] * x[i];
    for (size_t i = 0; i < squares.size(); ++i)
      for (size_t j = i; j < x.size(); ++j) sum += squares[i][j] * x[i] * x[j];
    return sum;
  }
};

std::vector<int64_t> coordinates(const ExtentPoints& at, size_t point) {
  std::vector<int64_t> x;
  for (const std::string& symbol : at.symbols) x.push_back(at.points[point].at(symbol));
  return x;
}

/// `divisor` times the polynomial that the grid's values are; none: its factors are no integers.
std::optional<Polynomial> polynomial(const ExtentPoints& at,
                                     std::span<const std::optional<int64_t>> values,
                                     int64_t divisor) {
  const size_t n = at.symbols.size();
  const std::vector<int64_t> base = coordinates(at, 0);
  const auto value = [&](size_t point) { return divisor * *values[point]; };
  Polynomial found{
      std::vector<std::vector<int64_t>>(at.is_linear() ? 0 : n, std::vector<int64_t>(n)),
      std::vector<int64_t>(n)};
  bool whole = true;
  const auto quotient = [&](int64_t a, int64_t b) {
    whole = whole && a % b == 0;
    return a / b;
  };
  for (size_t i = 0; i < n; ++i) found.factors[i] = quotient(value(1 + i) - value(0), at.step);
  const int64_t area = at.step * at.step;
  size_t pair = 1 + 2 * n;
  for (size_t i = 0; i < found.squares.size(); ++i) {
    found.squares[i][i] = quotient(value(1 + n + i) - 2 * value(1 + i) + value(0), 2 * area);
    for (size_t j = i + 1; j < n; ++j, ++pair)
      found.squares[i][j] = quotient(value(pair) - value(1 + i) - value(1 + j) + value(0), area);
  }
  for (size_t i = 0; i < found.squares.size(); ++i) {
    found.factors[i] -= found.squares[i][i] * (2 * base[i] + at.step);
    for (size_t j = 0; j < n; ++j)
      if (j != i) found.factors[i] -= found.squares[std::min(i, j)][std::max(i, j)] * base[j];
  }
  if (!whole) return std::nullopt;
  return found;
}

/// The positive terms first, since a text has no sign in front.
std::string text_of(const ExtentPoints& at, const Polynomial& polynomial, int64_t constant) {
  std::vector<std::pair<int64_t, std::string>> terms;
  for (size_t i = 0; i < polynomial.squares.size(); ++i)
    for (size_t j = i; j < at.symbols.size(); ++j)
      if (polynomial.squares[i][j] != 0)
        terms.emplace_back(polynomial.squares[i][j], at.symbols[i] + " * " + at.symbols[j]);
  for (size_t i = 0; i < at.symbols.size(); ++i)
    if (polynomial.factors[i] != 0) terms.emplace_back(polynomial.factors[i], at.symbols[i]);
  if (constant != 0 || terms.empty()) terms.emplace_back(constant, "");
  std::stable_partition(terms.begin(), terms.end(),
                        [](const auto& term) { return term.first >= 0; });
  std::string text;
  for (const auto& [factor, product] : terms) {
    const int64_t size = std::abs(factor);
    text += text.empty() ? "" : factor < 0 ? " - " : " + ";
    if (product.empty() || size != 1) text += std::to_string(size);
    if (!product.empty()) text += (size != 1 ? " * " : "") + product;
  }
  return text;
}

}  // namespace

ExtentPoints ExtentPoints::of(const std::vector<std::string>& symbols, int64_t step,
                              int64_t most_divisor) {
  ExtentPoints made{symbols, step, most_divisor, {}, 1};
  Symbols base;
  for (size_t i = 0; i < symbols.size(); ++i)  // no two alike, which broadcasts would hide
    base[symbols[i]] = step * static_cast<int64_t>(i + 1) + (step == 1 ? 1 : 0);
  made.points.push_back(base);
  const auto moved = [&](std::initializer_list<std::pair<size_t, int64_t>> by) {
    Symbols point = base;
    for (const auto& [symbol, distance] : by) point[symbols[symbol]] += distance;
    made.points.push_back(std::move(point));
  };
  const bool linear = made.is_linear();
  for (size_t i = 0; i < symbols.size(); ++i) moved({{i, step}});
  for (size_t i = 0; i < symbols.size() && !linear; ++i) moved({{i, 2 * step}});
  for (size_t i = 0; i < symbols.size() && !linear; ++i)
    for (size_t j = i + 1; j < symbols.size(); ++j) moved({{i, step}, {j, step}});
  made.count_of_grid = made.points.size();
  for (size_t i = 0; i < symbols.size() && !linear; ++i)
    for (int64_t offset = 1; offset < most_divisor; ++offset) moved({{i, offset}});
  // Where the others are one beside the grid, products leave all remainders too.
  for (size_t i = 0; i < (linear ? 1 : symbols.size()) && symbols.size() > 1; ++i)
    for (int64_t offset = 1; offset <= most_divisor; ++offset) {
      Symbols point = base;
      for (size_t j = 0; j < symbols.size(); ++j)
        point[symbols[j]] += j == i ? offset : linear ? static_cast<int64_t>(j) % offset : 1;
      made.points.push_back(std::move(point));
    }
  for (const int64_t size : kCheckedSizes) {
    Symbols point;
    for (const std::string& symbol : symbols)
      point[symbol] = size + static_cast<int64_t>(point.size());
    made.points.push_back(std::move(point));
  }
  // One small among large ones: which of them a bounded term grows with.
  for (size_t i = 0; i < symbols.size() && symbols.size() > 1; ++i)
    for (const int64_t few : {1, 3}) {
      if (linear && few > 1) break;
      Symbols point;
      for (size_t j = 0; j < symbols.size(); ++j)
        point[symbols[j]] = j == i ? few : kMany + static_cast<int64_t>(j);
      made.points.push_back(std::move(point));
    }
  return made;
}

namespace {

/// min(a * s + c, most) of one symbol; none: it is no such term.
std::optional<std::string> bounded_term(const ExtentPoints& at,
                                        std::span<const std::optional<int64_t>> values) {
  int64_t most = 0;
  for (const std::optional<int64_t>& value : values) most = std::max(most, value.value_or(0));
  for (const std::string& symbol : at.symbols) {
    std::map<int64_t, int64_t> below;  // values under the most, by the symbol's
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] && *values[i] < most) below[at.points[i].at(symbol)] = *values[i];
    if (below.size() < 2) continue;
    const auto [x0, y0] = *below.begin();
    const auto [x1, y1] = *below.rbegin();
    if ((y1 - y0) % (x1 - x0) != 0) continue;
    const int64_t factor = (y1 - y0) / (x1 - x0), constant = y0 - factor * x0;
    const auto holds = [&](size_t i) {
      return !values[i] ||
             *values[i] == std::min(factor * at.points[i].at(symbol) + constant, most);
    };
    size_t i = 0;
    while (i < values.size() && holds(i)) ++i;
    if (factor < 1 || i < values.size()) continue;
    const Polynomial line{{}, {factor}};
    ExtentPoints alone;
    alone.symbols = {symbol};
    return fmt::format("min({}, {})", text_of(alone, line, constant), most);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fitted_extent(const ExtentPoints& at,
                                         std::span<const std::optional<int64_t>> values) {
  COLLAGE_CHECK(values.size() == at.points.size(), "{} values", values.size());
  std::vector<int64_t> divisors(static_cast<size_t>(at.most_divisor));
  std::iota(divisors.begin(), divisors.end(), 1);
  // Of products of divided extents, which round nothing where others do not fit.
  for (int64_t divisor = 2; divisor <= kMostOfProducts; divisor *= 2)
    if (divisor > at.most_divisor) divisors.push_back(divisor);
  for (const int64_t divisor : divisors) {
    const std::optional<Polynomial> found = polynomial(at, values, divisor);
    if (!found) continue;
    // What is left to add before the division.
    int64_t least = INT64_MIN, most = INT64_MAX;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      const int64_t rest = divisor * *values[i] - found->at(coordinates(at, i));
      least = std::max(least, rest);
      most = std::min(most, rest + divisor - 1);
    }
    if (least > most) continue;
    const std::string text = text_of(at, *found, least);
    if (divisor == 1) return text;
    const bool is_symbol = text.find(' ') == std::string::npos;
    return (is_symbol ? text : "(" + text + ")") + fmt::format(" / {}", divisor);
  }
  return bounded_term(at, values);
}

}  // namespace collage::tensor_program
