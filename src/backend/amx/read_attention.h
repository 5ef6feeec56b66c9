// Reads functions as attention (backend/amx/kernels/attention.h).
#pragma once

#include <functional>

#include "backend/amx/kernels/attention.h"
#include "base/result.h"
#include "ir/expr.h"

namespace collage::amx {

/// Checks whether the call can be attention, types considered.
Status check_attention(const CallNode& call);
/// Returns whether the call, a user of attention, only moves its rows.
bool moves_rows(const CallNode& call);

/// Returns whether its operands can be read in place, given the inputs of its kernel.
bool reads_operands(const CallNode& call, const std::function<bool(const Expr&)>& is_source);

/// Fails if the function is no attention. `function` is flat.
Result<Attention> read_attention(const Function& function);

}  // namespace collage::amx
