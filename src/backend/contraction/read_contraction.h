// Reads functions as contractions (backend/contraction/kernels/contraction.h), and checks which
// calls can be parts of one.
#pragma once

#include <cstddef>
#include <optional>

#include "backend/contraction/kernels/contraction.h"
#include "ir/expr.h"

namespace collage::contraction {

/// Checks whether the call can be a contraction, types and attributes considered.
Status check_anchor(const CallNode& call);
/// Returns how often the anchor's image repeats each pixel of another (ops/resize.h), which it can
/// read in its place; none if it is no such image.
std::optional<Ints> repeats_of_image(const CallNode& anchor);
/// Returns the result's dimension of the channels.
size_t channel_axis(const CallNode& anchor);
/// Returns whether two contractions of one image can be one together.
bool are_siblings(const CallNode& a, const CallNode& b);

/// Returns whether the sum of two convolutions can be one, types and attributes considered.
bool are_addends(const CallNode& a, const CallNode& b);

/// Fails if the function is none. `function` is flat; its result is a tensor or a tuple of such.
Result<Contraction> read_contraction(const Function& function);

}  // namespace collage::contraction
