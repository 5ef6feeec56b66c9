// Sizes of this processor's caches, as the operating system states them.
#pragma once

#include <cstddef>

namespace collage {

// Bytes of a core's first-level data cache; 32 KB if the system does not state it.
size_t first_cache_bytes();
// Bytes of a core's own second-level cache; 1 MB if the system does not state it.
size_t private_cache_bytes();
// Bytes of the third-level cache that several cores share; 32 MB if it is not stated.
size_t shared_cache_bytes();

}  // namespace collage
