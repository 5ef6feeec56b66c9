// Files that are part of the program: the report's schema and the parts of the HTML page.
// cmake/embed.cmake generates the table.
#pragma once

#include <string_view>

namespace collage {

// By name, without folder; empty when there is no such file.
std::string_view report_file(std::string_view name);

}  // namespace collage
