// The sizes of this processor's caches, as the operating system tells them.
#pragma once

#include <cstddef>

namespace collage {

// Bytes of a core's first level, for data; 32 KB where the system does not say.
size_t first_cache_bytes();
// Bytes of a core's own cache (the second level); 1 MB where the system does not say.
size_t private_cache_bytes();
// Bytes of the cache that several cores share (the third level); 32 MB where it does not say.
size_t shared_cache_bytes();

}  // namespace collage
