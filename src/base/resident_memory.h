// How much memory this process holds, as the operating system counts it.
#pragma once

#include <cstddef>

namespace collage {

// Resets the peak. If that is not allowed, peaks are those since the process began.
void reset_peak_resident_bytes();
// Returns the peak since the reset; 0 if the system does not state it.
size_t peak_resident_bytes();
// Returns the anonymous memory held now: allocated and touched. 0 if it is not stated.
size_t anonymous_bytes();
// Returns the resident part of a file's mapping of `bytes` bytes at `begin`. 0 if it is not stated.
size_t resident_bytes_of(const void* begin, size_t bytes);

// Returns unused memory to the system: freed memory that malloc keeps, and pages that were read of
// mapped files (mapped_file.h).
void return_unused_memory();

}  // namespace collage
