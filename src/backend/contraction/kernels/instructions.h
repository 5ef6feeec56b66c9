// The vector instructions of the kernels in this folder: the intrinsics, for functions marked
// COLLAGE_VECTORS, or COLLAGE_BFLOAT16 if they round to bfloat16. amx has a header of this name for
// its own. No other file of the two folders names an instruction, so tests compile them against a
// software model of these headers (tests/backend/contraction/software).
#pragma once

// GCC 12's own headers read what they call undefined (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#define COLLAGE_VECTORS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define COLLAGE_VECTORS_INSIDE COLLAGE_VECTORS __attribute__((always_inline)) inline

#define COLLAGE_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
