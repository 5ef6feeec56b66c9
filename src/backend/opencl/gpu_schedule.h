// How the stages of a program run on a device. Each stage that is stored is one launch or a few:
// its points are spread over work-groups of threads. Sums (products, convolutions) are computed in
// registers by the stage that reads them, a tile of `lanes` points along the innermost dimension
// and `rows` of another by each thread; other reductions by the thread of their result, or by its
// work-group.
#pragma once

#include <string>
#include <vector>

#include "backend/native/codegen/translate.h"

namespace collage::opencl {

struct Tile {
  int lanes = 1, rows = 1;
  int threads = 64;     ///< of a work-group
  bool packed = false;  ///< constant matrices lie in columns of that many lanes
  /// Lanes are channels, and rows neighbours in a row of the image: for small images.
  bool across = false;
  bool group_a_row = false;  ///< long rows are reduced by a work-group each, not by a thread

  std::string to_string() const;  ///< "v8 r4 t64"
};

/// Those worth measuring for programs with sums, most promising first. A processor's threads are
/// its lanes' own and run one after the other; a graphics processor has vectors of threads.
const std::vector<Tile>& sum_tiles(bool on_cpu);

/// The same for programs without.
const std::vector<Tile>& plain_tiles();

/// Whether the program reduces rows that are long enough for a work-group.
bool has_long_rows(tensor_program::Emitter& emitter);

/// Schedules all stages of the emitter's program.
void schedule(tensor_program::Emitter& emitter, native::Translator& translator, const Tile& tile);

}  // namespace collage::opencl
