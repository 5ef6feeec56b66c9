// Which of a tensor's elements are alike: a scale for each that no outlier changes.
//
// Elements are sorted into octaves by their magnitude. Of numbers that are distributed in one way,
// whatever that is, those near zero are as dense as those of middling size, so an element of a
// small magnitude belongs to the largest octave up to which elements are dense. A fill of -1e4
// beside numbers about 1 is far from all of them, and no scale of theirs.
#pragma once

#include <collage/tensor.h>

#include <array>
#include <cstdint>
#include <vector>

namespace collage {

class Magnitudes {
 public:
  // Of the finite elements, of real numbers or integers.
  explicit Magnitudes(const Tensor& tensor);

  // The largest magnitude of elements like one of that value; 0 where all are zero.
  double scale(double value) const { return octaves_[octave(value)].scale; }
  // Of all finite elements.
  double largest() const { return largest_; }
  // Elements of about one magnitude, several in each group where the tensor has that many; zeros
  // belong to the smallest. Of an element of the tensor.
  size_t group(double value) const { return octaves_[octave(value)].group; }
  size_t groups() const { return groups_; }

 private:
  // The exponent that a double is stored with. That of zero is 0.
  static constexpr size_t kOctaves = 2048;
  static size_t octave(double value);
  void find_scales(const std::vector<size_t>& nonempty);
  void find_groups(const std::vector<size_t>& nonempty);

  struct Octave {
    int64_t count = 0;
    double largest = 0, scale = 0;
    size_t group = 0;
  };
  std::vector<Octave> octaves_;
  size_t groups_ = 1;
  double largest_ = 0;
};

// Of real numbers or integers.
double number_at(const Tensor& tensor, int64_t i);

}  // namespace collage
