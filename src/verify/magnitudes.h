// Groups a tensor's elements by magnitude, and gives each a scale that outliers do not change.
//
// Elements are sorted into octaves by their magnitude. In any one distribution numbers near zero
// are as dense as those of medium size, so an element of a small magnitude belongs to the largest
// octave up to which elements are dense. A fill of -1e4 beside numbers about 1 is far from all of
// them and does not affect their scale.
#pragma once

#include <collage/tensor.h>

#include <array>
#include <cstdint>
#include <vector>

namespace collage {

class Magnitudes {
 public:
  // Takes the finite elements, of real numbers or integers.
  explicit Magnitudes(const Tensor& tensor);

  // Returns the largest magnitude of elements like one of that value; 0 if all are zero.
  double scale(double value) const { return octaves_[octave(value)].scale; }
  // The largest magnitude of all finite elements.
  double largest() const { return largest_; }
  // Returns the group of an element: elements of about one magnitude, several in each group if the
  // tensor has that many; zeros belong to the smallest.
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

// Reads an element of real numbers or integers.
double number_at(const Tensor& tensor, int64_t i);

}  // namespace collage
