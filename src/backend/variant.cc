#include "backend/variant.h"

#include <charconv>

namespace collage {

std::string Variant::to_string() const {
  auto list = [](const std::vector<Encoding>& encodings) {
    std::string text;
    for (const Encoding& e : encodings) text += (text.empty() ? "" : ", ") + e.to_string();
    return "(" + text + ")";
  };
  return name + list(inputs) + "->" + list(outputs);
}

std::optional<size_t> position_in(std::string_view schedule, size_t count) {
  size_t at = 0;
  const char* end = schedule.data() + schedule.size();
  const auto [rest, error] = std::from_chars(schedule.data(), end, at);
  if (error != std::errc() || rest != end || at >= count) return std::nullopt;
  return at;
}

Status check_fit(const Variant& variant, const std::vector<TensorType>& inputs,
                 const std::vector<TensorType>& outputs) {
  auto check = [](const char* what, const std::vector<Encoding>& encodings,
                  const std::vector<TensorType>& types) -> Status {
    if (encodings.size() != types.size())
      return internal_error("the variant has {} {}s, the function {}", encodings.size(), what,
                            types.size());
    for (size_t i = 0; i < types.size(); ++i)
      if (!encodings[i].layout.fits(static_cast<int64_t>(types[i].shape.size())))
        return internal_error("the variant's {} {} is {}, the function's has rank {}", what, i,
                              encodings[i].to_string(), types[i].shape.size());
    return {};
  };
  TRY(check("input", variant.inputs, inputs));
  return check("output", variant.outputs, outputs);
}

}  // namespace collage
