// Functions as contractions (backend/contraction/kernels/contraction.h), and which calls can be
// parts of one.
#pragma once

#include <cstddef>
#include <optional>

#include "backend/contraction/kernels/contraction.h"
#include "ir/expr.h"

namespace collage::contraction {

/// Whether the call can be one, types and attributes considered.
Status check_anchor(const CallNode& call);
/// How often the anchor's image repeats each pixel of another (ops/resize.h), which it can read in
/// its place; nothing where it is no such image.
std::optional<Ints> repeats_of_image(const CallNode& anchor);
/// Along which of the result's dimensions its channels lie.
size_t channel_axis(const CallNode& anchor);
/// Whether two calls that can each be one, of one image, can be one together.
bool are_siblings(const CallNode& a, const CallNode& b);

/// Whether the sum of two convolutions can be one, types and attributes considered.
bool are_addends(const CallNode& a, const CallNode& b);

/// Why the function is none, if so. `function` is flat; its result is a tensor or a tuple of such.
Result<Contraction> read_contraction(const Function& function);

}  // namespace collage::contraction
