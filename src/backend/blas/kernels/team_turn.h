/// A lock for OpenBLAS's team. The library divides a product by a thread count that all host
/// threads share, and keeps one set of buffers for its threads: a caller whose team has another
/// size changes the count and frees buffers that the team of another caller still uses. So calls
/// that may start a team are serialised; those of one thread, and those inside a parallel region,
/// use neither.
#pragma once

#include <mutex>

namespace collage::blas {

/// Held during the call; empty if the call starts no team.
std::unique_lock<std::mutex> turn_at_team();

}  // namespace collage::blas
