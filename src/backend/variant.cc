#include "backend/variant.h"

namespace collage {

std::string Variant::to_string() const {
  auto list = [](const std::vector<Encoding>& encodings) {
    std::string text;
    for (const Encoding& e : encodings) text += (text.empty() ? "" : ", ") + e.to_string();
    return "(" + text + ")";
  };
  return name + list(inputs) + "->" + list(outputs);
}

Rounding Variant::effective_rounding() const {
  if (!rounding.none()) return rounding;
  return lowered ? rounding::kBFloat16 : relaxed ? rounding::kWinograd4 : Rounding();
}

}  // namespace collage
