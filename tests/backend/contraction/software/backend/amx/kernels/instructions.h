// The instructions of src/backend/amx/kernels/instructions.h as functions that run on any
// processor.
#pragma once

#include "backend/contraction/kernels/instructions.h"
#include "backend/contraction/software/tile_model.h"

#define COLLAGE_AMX

namespace collage::amx {

template <typename Shapes>
inline void store_tile_shapes(Shapes& to) {
  static_assert(sizeof to == 64);
  software::store_tile_shapes(&to);
}
template <typename Shapes>
inline void load_tile_shapes(const Shapes& from) {
  static_assert(sizeof from == 64);
  software::load_tile_shapes(&from);
}

}  // namespace collage::amx
