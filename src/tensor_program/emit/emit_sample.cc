// Emission of images that are read between their pixels (image.grid_sample). Where a place lies and
// what its taps weigh is the same for all channels: stages over the places, in double like the
// reference, so that both read the same pixels.
#include "tensor_program/emit/emitter.h"

namespace collage::tensor_program {
namespace {

constexpr DType kWide = DType::kFloat64;
Term wide(double value) { return constant(value, kWide); }

/// As the Sampler of ops/sample.cc reads along one dimension.
class AxisTaps {
 public:
  AxisTaps(const CallNode& call, int64_t extent)
      : method_(call.attrs.string("method")),
        padding_(call.attrs.string("padding_mode")),
        corners_(call.attrs.flag("align_corners")),
        extent_(static_cast<double>(extent)) {}

  int count() const { return method_ == "nearest" ? 1 : method_ == "linear" ? 2 : 4; }
  bool is_outside_zero() const { return padding_ == "zeros"; }

  /// The pixel of tap t at a grid's coordinate; -1: outside of an image with zeros beyond.
  Term pixel(int t, const Term& grid) const {
    const Term x = padding_ == "reflection" ? reflected(tap(t, grid)) : tap(t, grid);
    const Term last = wide(extent_ - 1);
    const Term above = select(x > wide(0), x, wide(0));  // also where x is no number
    const Term within = select(above < last, above, last);
    const Term index = cast(DType::kInt32, within);
    return is_outside_zero() ? select(within == x, index, -1) : index;
  }
  Term weight(int t, const Term& grid) const {
    const Term x = place(grid), after = x - floor(x);
    const Term weight = count() == 2 ? (t == 0 ? wide(1) - after : after)
                        : t < 2      ? cubic(after + wide(1 - t), t == 0)
                                     : cubic(wide(t - 1) - after, t == 3);
    return cast(DType::kFloat32, weight);
  }

 private:
  /// In pixels, 0 the centre of the first.
  Term place(const Term& grid) const {
    const Term x = cast(kWide, grid) + wide(1);
    const Term pixels = corners_ ? x * wide((extent_ - 1) / 2) : x * wide(extent_ / 2) - wide(0.5);
    if (padding_ != "border" || count() == 1) return pixels;
    const double reach = count() == 4 ? 2 : 0;
    const Term low = wide(-reach), high = wide(extent_ - 1 + reach);
    return select(pixels < low, low, select(pixels > high, high, pixels));
  }
  Term tap(int t, const Term& grid) const {
    if (count() == 1) return round(place(grid));
    return floor(place(grid)) + wide(count() == 2 ? t : t - 1);
  }
  Term reflected(const Term& x) const {
    const double low = corners_ ? 0 : -0.5, range = corners_ ? extent_ - 1 : extent_;
    if (range == 0) return x * wide(0);
    const Term distance = abs(x - wide(low));
    const Term rest = distance - floor(distance * wide(1 / (2 * range))) * wide(2 * range);
    const Term back = wide(2 * range) - rest;
    return select(back < rest, back, rest) + wide(low);
  }
  /// Keys' cubic convolution with a = -0.75, nearer than 1 or farther.
  static Term cubic(const Term& d, bool far) {
    constexpr double kA = -0.75;
    return far ? ((d * wide(kA) - wide(5 * kA)) * d + wide(8 * kA)) * d - wide(4 * kA)
               : (d * wide(kA + 2) - wide(kA + 3)) * d * d + wide(1);
  }

  const std::string &method_, &padding_;
  bool corners_;
  double extent_;
};

class Sample {
 public:
  Sample(Emitter& e, const CallNode& call, const Coords& at)
      : e_(e), call_(call), at_(at), dims_(arg_shape(call).size() - 2) {
    places_ = arg_shape(call, 1);
    places_.pop_back();
    source_.logical = {at.logical[0], at.logical[1]};
  }

  /// What is read along dimension d and those behind it.
  Term value(size_t d) {
    if (d == dims_) return e_.value(call_.args[0], source_);
    const int64_t extent = arg_shape(call_)[d + 2];
    const AxisTaps taps(call_, extent);
    Term total;
    for (int t = 0; t < taps.count(); ++t) {
      const int slot = static_cast<int>(d) * 8 + t * 2;
      const Term pixel = stored(slot, d, [&](const Term& grid) { return taps.pixel(t, grid); });
      source_.logical.push_back(clamp(pixel, 0, to_int(extent - 1)));
      Term read = value(d + 1);
      source_.logical.pop_back();
      if (taps.count() > 1)
        read = read * stored(slot + 1, d, [&](const Term& grid) { return taps.weight(t, grid); });
      if (taps.is_outside_zero()) read = select(pixel < 0, 0.0f, read);
      total = total.defined() ? total + read : read;
    }
    return total;
  }

 private:
  /// Of the grid's coordinate along dimension d, at every place; the grid has the last one first.
  Term stored(int slot, size_t d, const std::function<Term(const Term&)>& of) {
    const Stored& stage = e_.store(call_, slot, places_, [&](const Coords& place) {
      Coords entry = place;
      entry.logical.push_back(static_cast<int>(dims_ - 1 - d));
      return of(e_.value(call_.args[1], entry));
    });
    std::vector<Term> place{at_.logical[0]};
    place.insert(place.end(), at_.logical.begin() + 2, at_.logical.end());
    return load(stage.total, stage.dtype, place);
  }

  Emitter& e_;
  const CallNode& call_;
  const Coords& at_;
  size_t dims_;
  Shape places_;
  Coords source_;
};

Term grid_sample(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return Sample(e, call, at).value(0);
}

}  // namespace

void add_sample_rules(EmitTable& table) {
  table["image.grid_sample"] = {check_float_args, grid_sample};
}

}  // namespace collage::tensor_program
