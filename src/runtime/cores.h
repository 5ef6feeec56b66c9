// Cores: a set of the machine's cores, by their numbers. Text form: "2", "2-3", "0-1+6".
#pragma once

#include <sched.h>

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace collage {

class Cores {
 public:
  Cores() = default;  // none
  // kUsage: the text is no set of cores.
  static Result<Cores> parse(std::string_view text);
  std::string to_string() const;
  bool empty() const { return numbers_.empty(); }
  bool contains(int core) const;
  int count() const { return static_cast<int>(numbers_.size()); }
  // kUnavailable: the machine lacks some of them, or this process may not use them.
  Status check_available() const;
  // Binds the calling thread to them.
  Status bind_thread() const;
  auto operator<=>(const Cores&) const = default;

 private:
  std::vector<int> numbers_;  // ascending
};

}  // namespace collage
