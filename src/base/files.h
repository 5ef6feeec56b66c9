// Files, read whole and published whole (output_file.h).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace collage {

Result<std::string> read_file(const std::filesystem::path& path);
// Returns false if writing failed on the way; an interruption by a signal is no failure.
bool write_all(int fd, const void* data, size_t bytes);
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);
// Returns $COLLAGE_CACHE, else $XDG_CACHE_HOME/collage, else $HOME/.cache/collage, and creates it
// with mode 0700. Fails if it cannot be created or belongs to another user (the caller warns once
// and goes on without a cache).
Result<std::filesystem::path> cache_folder();

}  // namespace collage
