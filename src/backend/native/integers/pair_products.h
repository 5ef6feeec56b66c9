// Four products of uint8 and int8 added up by instructions of processors without VNNI: vpmaddubsw
// adds up pairs in 16 bits, which saturate, vpmaddwd pairs of such sums in 32. Halide finds both,
// but for sums that say that they saturate.
#pragma once

#include <Halide.h>

namespace collage::native {

/// The product, int32(a) * int32(b) of uint8 and int8 in either order, or the sum of two such
/// products, such that a sum of four along a loop that is vectorised atomically is these
/// instructions. Sums of two neighbours, of both products, have to fit 16 bits.
Halide::Expr pair_product(const Halide::Expr& product);

/// Has the pipeline, which holds some, compute them.
void lower_pair_products(Halide::Pipeline& pipeline);

}  // namespace collage::native
