// Sums large blocks of bytes at the speed of memory, to find equal blocks or damage. Different
// blocks have equal sums once in 2^64, unless they were constructed to, which is easy.
#pragma once

#include <cstdint>
#include <string_view>

namespace collage {

uint64_t block_sum(std::string_view bytes);

}  // namespace collage
