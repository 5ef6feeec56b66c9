#include "backend/rounding.h"

namespace collage {

RoundingLimit Rounding::limit() const {
  constexpr double kDefaultUnit = 0x1p-17;
  if (none()) return RoundingLimit::kStrict;
  if (factors > kDefaultUnit || fixed_point > 0 || tensors > 0) return RoundingLimit::kAny;
  return RoundingLimit::kDefault;
}

}  // namespace collage
