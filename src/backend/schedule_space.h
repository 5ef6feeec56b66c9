// ScheduleSpace: the schedules that one function could have on a backend, as decisions of which
// each takes one of a few options. It follows from the function's structure. A search
// (cost/schedule_search.h) times some of them; what it finds is a variant like any other.
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
  // The variant of a choice. Several choices may be one variant; all have the same encodings.
  std::function<Variant(const Choice&)> variant;
  // The variant whose text (Variant::to_string) a module states, where it is one of these.
  std::function<std::optional<Variant>(const std::string& text)> stated;

  bool empty() const { return options.empty(); }
};

}  // namespace collage
