// Four products of uint8 and int8 added up by instructions of processors without VNNI: vpmaddubsw
// adds up pairs in 16 bits, which saturate, vpmaddwd pairs of such sums in 32. Halide finds both,
// but for sums that say that they saturate.
#pragma once

#include <Halide.h>

namespace collage::native {

/// a * b as int32, of uint8 and int8: a sum of four of which, along a loop that is vectorised
/// atomically, is such instructions. Sums of two products have to fit 16 bits.
Halide::Expr pair_product(const Halide::Expr& a, const Halide::Expr& b);

/// Has the pipeline, which holds some, compute them.
void lower_pair_products(Halide::Pipeline& pipeline);

}  // namespace collage::native
