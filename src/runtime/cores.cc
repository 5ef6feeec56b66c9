#include "runtime/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/printable.h"

namespace collage {

namespace {

std::optional<int> core_number(std::string_view text) {
  int number = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 0 || number >= CPU_SETSIZE)
    return std::nullopt;
  return number;
}

}  // namespace

Result<Cores> Cores::parse(std::string_view text) {
  Cores cores;
  for (std::string_view rest = text;;) {
    const size_t plus = rest.find('+');
    const std::string_view range = rest.substr(0, plus);
    const size_t dash = range.find('-');
    const std::optional<int> first = core_number(range.substr(0, dash));
    const std::optional<int> last =
        dash == range.npos ? first : core_number(range.substr(dash + 1));
    if (!first || !last || *first > *last)
      return usage_error("'{}' states no cores: expected NUMBER or FIRST-LAST, joined by '+'",
                         printable(std::string(text)));
    for (int number = *first; number <= *last; ++number) cores.numbers_.push_back(number);
    if (plus == rest.npos) break;
    rest.remove_prefix(plus + 1);
  }
  std::vector<int>& numbers = cores.numbers_;
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return cores;
}

bool Cores::contains(int core) const {
  return std::binary_search(numbers_.begin(), numbers_.end(), core);
}

std::string Cores::to_string() const {
  std::string text;
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const size_t first = i;
    while (i + 1 < numbers_.size() && numbers_[i + 1] == numbers_[i] + 1) ++i;
    if (!text.empty()) text += "+";
    text += std::to_string(numbers_[first]);
    if (i > first) text += "-" + std::to_string(numbers_[i]);
  }
  return text;
}

// The system leaves out cores that do not exist or are another control group's.
Status Cores::bind_thread() const {
  cpu_set_t wanted, given;
  CPU_ZERO(&wanted);
  for (const int number : numbers_) CPU_SET(number, &wanted);
  if (sched_setaffinity(0, sizeof wanted, &wanted) == 0 &&
      sched_getaffinity(0, sizeof given, &given) == 0 && CPU_EQUAL(&wanted, &given))
    return {};
  return error(ErrorCode::kUnavailable, "this process cannot use the cores {}", to_string());
}

Status Cores::check_available() const {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before) != 0)
    return error(ErrorCode::kUnavailable, "the cores of this process are not known");
  const Status status = bind_thread();
  sched_setaffinity(0, sizeof before, &before);
  return status;
}

}  // namespace collage
