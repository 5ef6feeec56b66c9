// Families of cases that Collage leaves out as a whole: what they are about is no tensor of
// numbers, or no part of the standard operators. Shares of cases that pass leave them out; each has
// its reason.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace collage {

struct Family {
  const char* name;
  const char* reason;
};
std::span<const Family> excluded_families();

// The excluded family that a model belongs to; null where it is in none. By its domains, the types
// of its values and its operators, those in sub-graphs and functions too.
Result<const Family*> excluded_family(const std::filesystem::path& model);

}  // namespace collage
