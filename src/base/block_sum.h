// A sum of large blocks of bytes, as fast as memory is read: to find equal blocks, or damage.
// Blocks that differ have one sum once in 2^64, unless somebody made them so, which is easy.
#pragma once

#include <cstdint>
#include <string_view>

namespace collage {

uint64_t block_sum(std::string_view bytes);

}  // namespace collage
