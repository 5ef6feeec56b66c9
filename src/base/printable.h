// Names that come from models, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace collage {

// Control characters, and those that turn the direction of writing, become '?'; what is longer than
// `longest` bytes ends in "..." (never within a letter).
std::string printable(std::string_view name, size_t longest = 100);

}  // namespace collage
