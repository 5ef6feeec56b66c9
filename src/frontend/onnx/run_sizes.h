// Sizes that a run counts (NonZero, NonMaxSuppression, Unique, TopK of a computed k), in a model
// that is imported for several sizes: symbols, whose sizes each import states. The nodes that ask
// for them come in the same order in every import.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace collage::frontend {

class RunSizes {
 public:
  /// `size_of` returns what the symbol of that number is in this import; none: it is no symbol, but
  /// the same in all runs.
  explicit RunSizes(std::function<std::optional<int64_t>(size_t number)> size_of)
      : size_of_(std::move(size_of)) {}

  static std::string name(size_t number) { return "count" + std::to_string(number); }

  struct Size {
    std::string symbol;  // empty: none
    int64_t size = 0;
  };
  /// The symbol that `count` is; `known`: what importing knows of it.
  Size of(const Expr& count, std::optional<int64_t> known) {
    const auto found = numbers_.emplace(count, known_.size()).first;
    if (found->second == known_.size()) known_.push_back(known);
    const std::optional<int64_t> size = size_of_(found->second);
    if (!size && known) return {"", *known};
    return {name(found->second), size.value_or(1)};
  }
  bool has(const Expr& count) const { return numbers_.count(count) != 0; }
  /// What importing knew of each.
  const std::vector<std::optional<int64_t>>& known() const { return known_; }

 private:
  const std::function<std::optional<int64_t>(size_t number)> size_of_;
  std::map<Expr, size_t> numbers_;
  std::vector<std::optional<int64_t>> known_;
};

}  // namespace collage::frontend
