// Lays buffers with known lifetimes out in one arena: greedy by size, each at the lowest offset
// that no buffer alive at the same time occupies. (The greedy-by-size offset assignment of
// Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.)
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/plan.h"

namespace collage {

struct BufferLifetime {
  size_t bytes = 0;
  size_t first = 0, last = 0;  // steps, inclusive
};

// A slot of a plan in an arena: a buffer, or a step's workspace. Parts lie in their wholes.
struct ArenaSlot {
  VirtualDevice device;            // whose arena
  size_t step = 0;                 // that writes it, or a part of it, first
  std::optional<BufferId> buffer;  // none: the step's workspace
  BufferLifetime lifetime;
};
std::vector<ArenaSlot> arena_slots(const Plan& plan);

struct ArenaLayout {
  std::vector<size_t> offsets;  // one a buffer, multiples of the alignment
  size_t bytes = 0;             // of the whole arena
};

ArenaLayout plan_arena(const std::vector<BufferLifetime>& buffers,
                       size_t alignment = kArenaAlignment);

}  // namespace collage
