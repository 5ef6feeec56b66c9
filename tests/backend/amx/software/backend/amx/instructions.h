// The instructions of src/backend/amx/instructions.h as functions that run on any processor. The
// kernels' sources are compiled a second time with this header found first.
#pragma once

#include "backend/amx/software/tile_model.h"
#include "backend/amx/software/vector_model.h"

#define COLLAGE_AMX
#define COLLAGE_AMX_INSIDE inline
#define COLLAGE_VNNI
#define COLLAGE_VNNI_INSIDE inline

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

inline void add_products(__m512i& sum, __m512i a, __m512i b) {
  sum = software::add_products(sum, a, b);
}

}  // namespace collage::amx
