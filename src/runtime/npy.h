// Reads and writes NumPy's .npy files, format versions 1 to 3, C order. (Format: NumPy Enhancement
// Proposal 1.) bfloat16 has no type there and is written as float32.
#pragma once

#include <collage/tensor.h>

#include <filesystem>

#include "base/result.h"

namespace collage {

Result<Tensor> read_npy(const std::filesystem::path& path);
// Writes and publishes atomically.
Status write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace collage
