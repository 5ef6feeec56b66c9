// Which values an integer term can take: interval arithmetic over the extents of index variables
// and what is known of the arrays that it reads. An interval is given only where no operation on
// the way can leave its type's range, so that it holds for compiled code too, which takes for
// granted that integers do not overflow.
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

/// The values of an integer type, or of bool; none for reals and uint64.
std::optional<Range> range_of_type(DType dtype);

/// Of what a tensor holds; none where range_of_type gives none, or it holds nothing.
std::optional<Range> range_of_values(const Tensor& values);

/// Of the elements of arrays, by name; nothing where they may overflow, or are no integers.
using ElementRanges = std::unordered_map<std::string, std::optional<Range>>;
/// Of a verified program's arrays: constants by their values, stages that may be computed where
/// they are read by these.
ElementRanges element_ranges(const Program& program);

class Ranges {
 public:
  /// What the elements of an array are; nothing where they are what may overflow, or not known.
  using Elements = std::function<std::optional<Range>(const std::string& array)>;

  /// Variables other than the axes may have any value. `axes` must outlive this.
  explicit Ranges(const std::vector<Axis>& axes, Elements elements = {})
      : axes_(axes), elements_(std::move(elements)) {}

  /// Nothing where the term is no integer, may overflow, or depends on elements of which nothing
  /// is known.
  std::optional<Range> of(const Term& term);

 private:
  std::optional<Range> computed(const Term& term);
  std::optional<Range> operation(const TermNode& term);

  const std::vector<Axis>& axes_;
  Elements elements_;
  std::unordered_map<const TermNode*, std::pair<Term, std::optional<Range>>> memo_;
};

}  // namespace collage::tensor_program
