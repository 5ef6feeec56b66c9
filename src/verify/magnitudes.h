// Groups a tensor's elements by magnitude, and gives each a scale that outliers do not change.
//
// Elements are sorted into octaves by their magnitude. In any one distribution numbers near zero
// are as dense as those of medium size, so an element of a small magnitude belongs to the largest
// octave up to which elements are dense. A fill of -1e4 beside numbers about 1 is far from all of
// them and does not affect their scale.
#pragma once

#include <collage/tensor.h>

#include <bit>
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
  size_t groups() const { return group_counts_.size(); }
  // Of each group, how many elements belong to it, zeros left out.
  const std::vector<int64_t>& group_counts() const { return group_counts_; }

 private:
  // The exponent that a double is stored with. That of zero is 0.
  static constexpr size_t kOctaves = 2048;
  static size_t octave(double value) {
    return static_cast<size_t>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff);
  }
  void add(double value);
  void add_floats(const float* data, int64_t count);
  void find_scales(const std::vector<size_t>& nonempty);
  void find_groups(const std::vector<size_t>& nonempty);

  struct Octave {
    int64_t count = 0;
    double largest = 0, scale = 0;
    size_t group = 0;
  };
  std::vector<Octave> octaves_;
  std::vector<int64_t> group_counts_;
  double largest_ = 0;
};

// Reads an element of real numbers or integers.
double number_at(const Tensor& tensor, int64_t i);

// Reads the elements of a tensor of T as number_at does, faster.
template <typename T>
struct Numbers {
  const T* data;
  explicit Numbers(const Tensor& tensor) : data(tensor.data<T>()) {}
  double operator()(int64_t i) const { return static_cast<double>(data[i]); }
};

// Calls `body` with functions that read the elements of `a`, and of `b`, which is of its type.
template <typename Body>
void with_numbers(const Tensor& a, const Tensor& b, const Body& body) {
  if (a.dtype() == DType::kFloat32) {
    body(Numbers<float>(a), Numbers<float>(b));
  } else {
    body([&a](int64_t i) { return number_at(a, i); }, [&b](int64_t i) { return number_at(b, i); });
  }
}
template <typename Body>
void with_numbers(const Tensor& tensor, const Body& body) {
  with_numbers(tensor, tensor, [&](const auto& number, const auto&) { body(number); });
}

}  // namespace collage
