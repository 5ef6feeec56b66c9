// Conversions between float32 and half-width types: of many elements as of one, and both as the
// formats are defined.
#include "ops/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace collage {
namespace {

constexpr DType kHalves[] = {DType::kFloat16, DType::kBFloat16};

std::vector<uint16_t> all_bits() {
  std::vector<uint16_t> bits;
  for (uint32_t i = 0; i <= 0xffff; ++i) bits.push_back(static_cast<uint16_t>(i));
  return bits;
}

// By the definition of a format with so many bits of exponent.
double value_of(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int exponent = (bits & 0x7fff) >> fraction_bits, most = (1 << exponent_bits) - 1;
  const double fraction =
      std::ldexp(static_cast<double>(bits & ((1 << fraction_bits) - 1)), -fraction_bits);
  const int bias = most / 2;
  double value =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  if (exponent == most)
    value = fraction == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  return (bits & 0x8000) != 0 ? -value : value;
}

TEST(Half, EveryValueIsWidenedExactly) {
  const std::vector<uint16_t> bits = all_bits();
  std::vector<float> wide(bits.size());
  for (DType half : kHalves) {
    halves_to_floats(bits.data(), half, static_cast<int64_t>(bits.size()), wide.data());
    for (uint16_t b : bits) {
      const double value = value_of(b, half == DType::kFloat16 ? 5 : 8);
      const auto got = static_cast<double>(wide[b]),
                 one = static_cast<double>(half_to_float(b, half));
      const bool same =
          std::isnan(value) ? std::isnan(got) && std::isnan(one) : got == value && one == value;
      ASSERT_TRUE(same) << dtype_name(half) << " " << b << ": " << got << ", " << one << " for "
                        << value;
    }
  }
}

// Each value, half-way between neighbours, and next to both.
TEST(Half, RoundsToTheNearestTiesToEven) {
  for (DType half : kHalves) {
    std::vector<float> floats;
    std::vector<uint16_t> wanted;
    const auto expect = [&](float value, uint16_t bits) {
      for (const bool negative : {false, true}) {
        floats.push_back(negative ? -value : value);
        wanted.push_back(static_cast<uint16_t>(bits | (negative ? 0x8000 : 0)));
      }
    };
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const uint16_t infinity = half == DType::kFloat16 ? 0x7c00 : 0x7f80;
    for (uint16_t b = 0; b + 1 < infinity; ++b) {
      const auto next = static_cast<uint16_t>(b + 1);
      const float low = half_to_float(b, half), high = half_to_float(next, half);
      const float middle = low + (high - low) / 2;
      expect(low, b);
      expect(middle, b % 2 == 0 ? b : next);
      if (middle > low && middle < high) {
        expect(std::nextafter(middle, low), b);
        expect(std::nextafter(middle, high), next);
      }
    }
    expect(kInfinity, infinity);
    expect(std::numeric_limits<float>::max(), infinity);
    if (half == DType::kFloat16) {
      expect(65519.0f, 0x7bff);
      expect(65520.0f, infinity);
    }
    std::vector<uint16_t> got(floats.size());
    floats_to_halves(floats.data(), half, static_cast<int64_t>(floats.size()), got.data());
    for (size_t i = 0; i < floats.size(); ++i) {
      ASSERT_EQ(got[i], wanted[i]) << dtype_name(half) << " of " << floats[i];
      ASSERT_EQ(float_to_half(floats[i], half), wanted[i]) << dtype_name(half) << " " << floats[i];
    }
  }
}

TEST(Half, NaNStaysNaNWhereverItStands) {
  for (DType half : kHalves) {
    for (int64_t count = 1; count < 20; ++count) {
      std::vector<float> floats(static_cast<size_t>(count), 1.0f);
      floats.back() = std::numeric_limits<float>::quiet_NaN();
      std::vector<uint16_t> narrow(floats.size());
      std::vector<float> again(floats.size());
      floats_to_halves(floats.data(), half, count, narrow.data());
      halves_to_floats(narrow.data(), half, count, again.data());
      for (size_t i = 0; i + 1 < again.size(); ++i) EXPECT_EQ(again[i], 1.0f);
      EXPECT_TRUE(std::isnan(again.back()));
    }
  }
}

}  // namespace
}  // namespace collage
