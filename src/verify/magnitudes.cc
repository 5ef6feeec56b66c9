#include "verify/magnitudes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/integers.h"

namespace collage {

namespace {

// How much less dense elements may become up to the scale of those below: at 4 times the standard
// deviation of normal numbers they are by a factor of 4.
constexpr double kSparser = 4;
// Octaves without an element that separate two kinds.
constexpr size_t kGap = 10;
// So few of the smallest may be nearer to zero than others by chance: at most this many, and no
// more than one in so many.
constexpr int64_t kFewest = 5, kOneIn = 16;
// Elements of a group.
constexpr int64_t kGroup = 16;

}  // namespace

double number_at(const Tensor& tensor, int64_t i) {
  return is_float(tensor.dtype()) ? tensor.element_as_double(i)
                                  : static_cast<double>(tensor.element_as_int64(i));
}

void Magnitudes::add(double value) {
  Octave& one = octaves_[octave(value)];
  ++one.count;
  one.largest = std::max(one.largest, std::abs(value));
}

// By the exponents that floats are stored with. Those of denormals are their own as doubles.
void Magnitudes::add_floats(const float* data, int64_t count) {
  constexpr int64_t kPart = 1 << 16;
  constexpr size_t kDenormal = 0, kNotFinite = 255, kExponents = 256;
  constexpr size_t kToDouble = 1023 - 127;
  struct Part {
    std::array<int64_t, kExponents> count{};
    std::array<uint32_t, kExponents> largest{};  // magnitude, as it is stored
  };
  std::vector<Part> parts(static_cast<size_t>(ceil_div(count, kPart)));
#pragma omp parallel for if (parts.size() > 1)
  for (size_t p = 0; p < parts.size(); ++p) {
    Part& part = parts[p];
    const int64_t begin = static_cast<int64_t>(p) * kPart;
    for (int64_t i = begin, end = std::min(count, begin + kPart); i < end; ++i) {
      const uint32_t magnitude = std::bit_cast<uint32_t>(data[i]) & 0x7fffffff;
      const size_t exponent = magnitude >> 23;
      ++part.count[exponent];
      part.largest[exponent] = std::max(part.largest[exponent], magnitude);
    }
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    for (size_t e = kDenormal + 1; e < kNotFinite; ++e) {
      Octave& one = octaves_[e + kToDouble];
      one.count += parts[p].count[e];
      one.largest = std::max<double>(one.largest, std::bit_cast<float>(parts[p].largest[e]));
    }
    if (parts[p].largest[kDenormal] == 0) continue;
    const int64_t begin = static_cast<int64_t>(p) * kPart;
    for (int64_t i = begin, end = std::min(count, begin + kPart); i < end; ++i)
      if (std::fpclassify(data[i]) == FP_SUBNORMAL) add(static_cast<double>(data[i]));
  }
}

Magnitudes::Magnitudes(const Tensor& tensor) : octaves_(kOctaves) {
  const int64_t count = tensor.size();
  if (tensor.dtype() == DType::kFloat32) {
    add_floats(tensor.data<float>(), count);
  } else {
    for (int64_t i = 0; i < count; ++i) add(number_at(tensor, i));
  }
  std::vector<size_t> nonempty;  // without those of zeros, infinities and NaN
  for (size_t o = 1; o + 1 < kOctaves; ++o)
    if (octaves_[o].count > 0) nonempty.push_back(o);
  if (!nonempty.empty()) largest_ = octaves_[nonempty.back()].largest;
  find_scales(nonempty);
  find_groups(nonempty);
}

void Magnitudes::find_scales(const std::vector<size_t>& nonempty) {
  std::vector<double> density;  // elements of this magnitude and below, divided by it
  int64_t below = 0;
  size_t first = 0;  // that is judged by its own density
  int64_t all = 0;
  for (const size_t o : nonempty) all += octaves_[o].count;
  const int64_t few = 1 + std::min(kFewest - 1, all / kOneIn);
  for (const size_t o : nonempty) {
    below += octaves_[o].count;
    if (below < few) ++first;
    density.push_back(static_cast<double>(below) / std::ldexp(1.0, static_cast<int>(o) - 1022));
  }
  for (size_t k = nonempty.size(); k-- > 0;) {
    Octave& own = octaves_[nonempty[k]];
    own.scale = own.largest;
    const bool chance = k < first && nonempty[k + 1] - nonempty[k] <= kGap;
    if (chance) own.scale = octaves_[nonempty[k + 1]].scale;
    for (size_t j = k + 1; !chance && j < nonempty.size(); ++j) {
      if (nonempty[j] - nonempty[j - 1] > kGap) break;
      if (kSparser * density[j] >= density[k]) own.scale = octaves_[nonempty[j]].largest;
    }
  }
  octaves_[0].scale = nonempty.empty() ? octaves_[0].largest : octaves_[nonempty[0]].scale;
}

void Magnitudes::find_groups(const std::vector<size_t>& nonempty) {
  size_t group = 0, last = 0;
  int64_t count = 0;
  for (const size_t o : nonempty) {
    const bool far = last > 0 && o - last > kGap;
    if (last > 0 && (far || count >= kGroup)) {
      ++group;
      count = 0;
    }
    octaves_[o].group = group;
    count += octaves_[o].count;
    last = o;
  }
  group_counts_.assign(group + 1, 0);
  for (const size_t o : nonempty) group_counts_[octaves_[o].group] += octaves_[o].count;
}

}  // namespace collage
