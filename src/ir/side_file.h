// Side files: tensors too large for text, raw in a file of their own.
//
//   "CLGTENS1" | u64 length of the header | header (JSON) | padding to 64 | tensor | padding | …
//
// The header gives each tensor's dtype, shape, offset from the file's start and SHA-256. Files are
// published whole. Everything read is checked against the file's size and the hash.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "collage/tensor.h"

namespace collage {

Status write_side_file(const std::filesystem::path& path, std::span<const Tensor> tensors);
Result<std::vector<Tensor>> read_side_file(const std::filesystem::path& path);

}  // namespace collage
