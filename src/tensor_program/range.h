// Ranges of integer terms: interval arithmetic over the extents of index variables and the known
// values of arrays that are read. An interval is returned only if no intermediate operation can
// leave its type's range, so that it holds for compiled code too, which assumes that integers do
// not overflow.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// From low to high, both included.
struct Range {
  int64_t low = 0, high = 0;
  bool operator==(const Range&) const = default;
};

/// Returns the values of an integer type, or of bool; none for reals and uint64.
std::optional<Range> range_of_type(DType dtype);

/// Returns the range of a tensor's values; none if range_of_type gives none, or it is empty.
std::optional<Range> range_of_values(const Tensor& values);

/// Ranges of arrays' elements, by name; none if they may overflow, or are no integers.
using ElementRanges = std::unordered_map<std::string, std::optional<Range>>;
/// Returns ranges for a verified program's arrays: constants by their values, stages that may be
/// computed where they are read by these.
ElementRanges element_ranges(const Program& program);

class Ranges {
 public:
  /// Returns the range of an array's elements; none if they may overflow, or are not known.
  using Elements = std::function<std::optional<Range>(const std::string& array)>;

  /// Variables other than the axes may have any value. `axes` must outlive this.
  explicit Ranges(const std::vector<Axis>& axes, Elements elements = {})
      : axes_(axes), elements_(std::move(elements)) {}

  /// Returns none if the term is no integer, may overflow, or depends on elements that are not
  /// known.
  std::optional<Range> of(const Term& term);

 private:
  std::optional<Range> computed(const Term& term);
  std::optional<Range> operation(const TermNode& term);

  const std::vector<Axis>& axes_;
  Elements elements_;
  std::unordered_map<const TermNode*, std::pair<Term, std::optional<Range>>> memo_;
};

}  // namespace collage::tensor_program
