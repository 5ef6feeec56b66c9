// Attention as JSON, for kernels that are saved. A constant mask is the kernel's only constant.
#pragma once

#include "backend/amx/kernels/attention.h"
#include "backend/contraction/kernels/loader_name.h"
#include "runtime/kernel.h"

namespace collage::amx {

inline constexpr char kAttentionLoader[] = COLLAGE_NAME_OF(amx) ".attention";

struct SavedAttention {
  Attention attention;
  int parts = 1;  ///< of each number
};

SavedKernel save_attention(const Attention& attention, int parts);
/// kBadModel: it describes no attention.
Result<SavedAttention> read_saved_attention(const SavedKernel& saved);

}  // namespace collage::amx
