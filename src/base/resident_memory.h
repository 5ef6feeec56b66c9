// How much memory this process holds, as the kernel of the operating system counts it.
#pragma once

#include <cstddef>

namespace collage {

// Forgets the peak so far. Where that is not allowed, peaks are those since the process began.
void reset_peak_resident_bytes();
// The most since then; 0 where the system does not say.
size_t peak_resident_bytes();
// Now, of memory that is no file's: what was allocated and touched. 0 likewise.
size_t anonymous_bytes();
// Now, of the mapping of a file that begins at `begin` and has so many bytes. 0 likewise.
size_t resident_bytes_of(const void* begin, size_t bytes);

// Gives the system back what the process holds and does not use: freed memory that malloc keeps for
// later, and pages that were read of mapped files (mapped_file.h).
void return_unused_memory();

}  // namespace collage
