// A call's fusion kind by its operator and by shape, as FuseOps relabels: a broadcast whose inputs
// all have the shape of its result broadcasts nothing, it is elementwise.
#pragma once

#include "ir/expr.h"
#include "ir/op.h"

namespace collage {

// Of a call of anything but an operator: opaque.
FusionKind fusion_kind(const CallNode& call);

}  // namespace collage
