// Makes names of models fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace collage {

// Replaces control characters, and those that change the direction of writing, by '?'; cuts text
// above `longest` bytes and appends "..." (never within a letter).
std::string printable(std::string_view name, size_t longest = 100);

}  // namespace collage
