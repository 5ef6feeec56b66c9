#include "backend/backend.h"

#include <algorithm>

namespace collage {

namespace {

// Whether one of them names the other, or something that it brings.
std::string conflict_of(const Backend& a, const Backend& b) {
  const auto lists = [](const std::vector<std::string_view>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const BackendTraits& other = b.traits();
  for (const std::string_view name : a.traits().conflicts)
    if (name == b.name() || lists(other.runtimes, name) || lists(other.symbols, name))
      return fmt::format("{} does not run beside {}{}", a.name(), b.name(),
                         name == b.name() ? "" : fmt::format("'s {}", name));
  for (const std::string_view name : a.traits().symbols)
    if (lists(other.symbols, name))
      return fmt::format("{} and {} both define {}", a.name(), b.name(), name);
  return "";
}

}  // namespace

std::string why_apart(const Backend& a, const Backend& b) {
  if (&a == &b) return "";
  const std::string reason = conflict_of(a, b);
  return reason.empty() ? conflict_of(b, a) : reason;
}

const BackendTraits& Backend::traits() const {
  std::call_once(found_, [&] { traits_ = find_traits_(); });
  return traits_;
}

Result<ScheduleSpace> Backend::schedule_space(const Function&, const Target&,
                                              const CompileOptions&) const {
  return ScheduleSpace();
}

Result<std::unique_ptr<Kernel>> Backend::compile_conversion(const TensorType&, const Encoding& from,
                                                            const Encoding& to,
                                                            const CompileOptions&) const {
  return unsupported("{}: no conversion from {} to {}", name(), from.to_string(), to.to_string());
}

}  // namespace collage
