// Files, read whole and published whole (output_file.h).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace collage {

Result<std::string> read_file(const std::filesystem::path& path);
// False when it failed on the way; an interruption by a signal is none.
bool write_all(int fd, const void* data, size_t bytes);
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);
// $COLLAGE_CACHE, else $XDG_CACHE_HOME/collage, else $HOME/.cache/collage. Created with mode 0700;
// an error when it cannot be created or belongs to another user (the caller warns once and goes on
// without a cache).
Result<std::filesystem::path> cache_folder();

}  // namespace collage
