// The processor's vector and matrix intrinsics, for functions marked COLLAGE_AMX.
#pragma once

// GCC 12's own headers read what they call undefined (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cstdint>

#define COLLAGE_AMX \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))

#define COLLAGE_AMX_INSIDE COLLAGE_AMX __attribute__((always_inline)) inline

namespace collage::amx {

/// The first `count` of 16 lanes.
inline __mmask16 mask_of(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1u);
}

}  // namespace collage::amx
