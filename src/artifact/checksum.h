// Checksums of entries against accidental damage: every entry is compared with its checksum before
// it is used, weights included, so computing one must be as fast as reading the bytes from memory.
// SHA-256 reads less than 2 GB a second on a thread, a tenth of that on processors without
// instructions for it: the weights of ResNet-50 would take 50 to 300 ms at each start. So bytes are
// summed in chunks of 1 MB, each a 64-bit sum of multiplied words, on several threads; the checksum
// is the SHA-256 of the chunks' sums. A chunk that changed by accident keeps its sum once in 2^64.
// Two files of equal checksums can be constructed: checksums do not guard against malice
// (docs/artifact.md).
#pragma once

#include <string>
#include <string_view>

namespace collage {

std::string checksum_of(std::string_view bytes, int threads);  // 64 lower-case hex digits

}  // namespace collage
