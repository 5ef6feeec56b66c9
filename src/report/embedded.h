// Files that are part of the program: the report's schema, the parts of the HTML page, and the
// C that libraries are made of (src/emit/).
// cmake/embed.cmake generates the table.
#pragma once

#include <string_view>

namespace collage {

// By name, without folder; empty when there is no such file.
std::string_view embedded_file(std::string_view name);

}  // namespace collage
