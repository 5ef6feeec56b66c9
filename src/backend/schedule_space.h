// ScheduleSpace: the possible schedules of one function on a backend, as decisions with a few
// options each. It follows from the function's structure. A search (cost/schedule_search.h) times
// some of them; what it finds is a variant like any other.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/variant.h"

namespace collage {

struct ScheduleSpace {
  using Choice = std::vector<size_t>;  // an option of each decision

  std::vector<size_t> options;  // of each decision, how many there are; empty: nothing to search
  std::vector<Choice> start;    // what estimates favour
  // Returns the variant of a choice. Several choices may be one variant; all have equal encodings.
  std::function<Variant(const Choice&)> variant;
  // Returns the variant whose text (Variant::to_string) a module states, if it is in the space.
  std::function<std::optional<Variant>(const std::string& text)> stated;

  bool empty() const { return options.empty(); }
};

}  // namespace collage
