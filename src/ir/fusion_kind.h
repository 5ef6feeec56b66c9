// The fusion kind of a call by its operator and by shape, as in FuseOps: a broadcast whose inputs
// all have the shape of its result is elementwise.
#pragma once

#include "ir/expr.h"
#include "ir/op.h"

namespace collage {

// Returns opaque for a call of anything but an operator.
FusionKind fusion_kind(const CallNode& call);

}  // namespace collage
