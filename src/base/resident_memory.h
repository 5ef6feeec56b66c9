// How much memory this process holds, as the kernel of the operating system counts it.
#pragma once

#include <cstddef>

namespace collage {

// Forgets the peak so far. Where that is not allowed, peaks are those since the process began.
void reset_peak_resident_bytes();
// The most since then; 0 where the system does not say.
size_t peak_resident_bytes();

}  // namespace collage
