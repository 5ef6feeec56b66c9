#include "measure/effort.h"

namespace collage {

std::string_view effort_name(Effort effort) {
  switch (effort) {
    case Effort::kFast:
      return "fast";
    case Effort::kMax:
      return "max";
    default:
      return "default";
  }
}

Result<Effort> parse_effort(std::string_view name) {
  for (Effort effort : {Effort::kFast, Effort::kDefault, Effort::kMax})
    if (effort_name(effort) == name) return effort;
  return usage_error("effort '{}': it is fast, default or max", name);
}

double seconds_for_quiet(Effort effort) { return effort == Effort::kFast ? 0 : 10; }

}  // namespace collage
