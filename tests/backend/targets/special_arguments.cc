#include "backend/targets/special_arguments.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace collage {

namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

void add_with_neighbours(std::vector<float>& to, float number) {
  to.push_back(number);
  to.push_back(std::nextafter(number, -kInfinity));
  to.push_back(std::nextafter(number, kInfinity));
}

}  // namespace

bool allows(const Promise& promise, double value, double got, bool may_lose_nan) {
  if (std::isnan(value)) return may_lose_nan || std::isnan(got);
  if (value == got) return true;
  if (std::isnan(got)) return false;
  // An overflow that a rounding decides.
  const auto held = [&](double number) {
    return std::isinf(number) ? std::copysign(double{kLargest}, number) : number;
  };
  const double error = std::abs(held(value) - held(got));
  const bool same_size = std::isfinite(value) == std::isfinite(got);
  return same_size ? error <= promise.absolute + promise.relative * std::abs(value)
                   : error <= promise.relative * double{kLargest} && promise.relative > 1e-6;
}

std::vector<float> special_arguments(const Promise& promise) {
  std::vector<float> list;
  for (float size : {0.0f, 1e-42f, 0x1p-126f, 1e-30f,   1e-10f,   1e-4f,    0.03f, 0.3f,
                     0.5f, 1.0f,   2.0f,      2.71828f, 5.0f,     10.0f,    20.0f, 50.0f,
                     1e4f, 1e10f,  1e20f,     1e30f,    kLargest, kInfinity})
    for (float number : {size, -size}) add_with_neighbours(list, number);
  for (float number : promise.around) add_with_neighbours(list, number);
  list.push_back(-0.0f);
  list.push_back(std::numeric_limits<float>::quiet_NaN());
  return list;
}

std::vector<float> special_pair_arguments(const Promise& promise) {
  std::vector<float> list;
  for (float size : {0.0f, 1e-42f, 0x1p-126f, 1e-10f, 0.5f, 1.0f, 2.0f, 3.0f, 2.5f, 10.0f, 0x1p24f,
                     1e9f, kLargest, kInfinity})
    for (float number : {size, -size}) list.push_back(number);
  if (!promise.signs_of_zero) list.erase(list.begin() + 1);
  list.push_back(std::nextafter(1.0f, 2.0f));
  list.push_back(std::numeric_limits<float>::quiet_NaN());
  return list;
}

}  // namespace collage
