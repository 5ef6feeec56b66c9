// The instructions of the matrix unit: the intrinsics, for functions marked COLLAGE_AMX, and those
// that GCC 12's intrinsics do not serve well.
#pragma once

#include "backend/contraction/kernels/instructions.h"

#define COLLAGE_AMX \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))

namespace collage::amx {

// The rows and columns of the matrix unit's tiles: 64 bytes. The intrinsics that touch memory do
// not all declare it to the compiler.
template <typename Shapes>
inline void store_tile_shapes(Shapes& to) {
  static_assert(sizeof to == 64);
  __asm__ volatile("sttilecfg %0" : "=m"(to));
}
template <typename Shapes>
inline void load_tile_shapes(const Shapes& from) {
  static_assert(sizeof from == 64);
  __asm__ volatile("ldtilecfg %0" ::"m"(from));
}

}  // namespace collage::amx
