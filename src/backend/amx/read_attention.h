// Functions as attention (backend/amx/kernels/attention.h).
#pragma once

#include <functional>

#include "backend/amx/kernels/attention.h"
#include "base/result.h"
#include "ir/expr.h"

namespace collage::amx {

/// Whether the call can be one, types considered.
Status check_attention(const CallNode& call);
/// Whether the call, a user of attention, only moves its rows about.
bool moves_rows(const CallNode& call);

/// Whether its operands can be read where they lie, given what its kernel gets.
bool reads_operands(const CallNode& call, const std::function<bool(const Expr&)>& is_source);

/// Why the function is none, if so. `function` is flat.
Result<Attention> read_attention(const Function& function);

}  // namespace collage::amx
