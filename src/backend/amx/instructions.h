// The instructions that the kernels of this folder use: the intrinsics, for functions marked
// COLLAGE_AMX or COLLAGE_VNNI, and those that GCC 12's intrinsics do not serve well. No other file
// here names an instruction, so tests compile the folder against a software model of this header
// (tests/backend/amx/software).
#pragma once

// GCC 12's own headers read what they call undefined (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#define COLLAGE_AMX \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))
#define COLLAGE_AMX_INSIDE COLLAGE_AMX __attribute__((always_inline)) inline

#define COLLAGE_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define COLLAGE_VNNI_INSIDE COLLAGE_VNNI __attribute__((always_inline)) inline

namespace collage::amx {

// What tells the matrix unit the rows and columns of its tiles: 64 bytes. The intrinsics that touch
// memory do not all say so to the compiler.
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

/// Adds to each 32-bit integer of the sum the products of two pairs of 16-bit ones. GCC 12 spills
/// the sums of its own intrinsic, which it takes for new variables each time.
COLLAGE_VNNI_INSIDE void add_products(__m512i& sum, __m512i a, __m512i b) {
  __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

}  // namespace collage::amx
