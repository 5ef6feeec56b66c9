// Which operator calls ATen computes as they are defined here.
#pragma once

#include "ir/expr.h"

namespace collage::torch_plugin {

// Why not, where it does not.
Status check_call(const CallNode& call);

// Convolutions and products, which element-wise calls may follow in one kernel.
bool is_anchor(const CallNode& call);
// Element-wise, also in place.
bool is_elementwise(const CallNode& call);
// What ATen computes as well on images whose channels are last, for a result that lies so.
bool takes_channels_last(const CallNode& call);

}  // namespace collage::torch_plugin
