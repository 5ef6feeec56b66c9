// What a backend offers for a function, as everybody asks for it.
#pragma once

#include <vector>

#include "backend/backend.h"

namespace collage {

// Whether the backend's kernels of the function may lose NaN: it calls one of the operators that
// Backend::loses_nan names.
Result<bool> may_lose_nan(const Backend& backend, const Function& function);

enum class Offer { kFull, kLowered };  // Backend::variants or Backend::lowered_variants

// The backend's variants, each marked with whether it may lose NaN; or why it has none.
Result<std::vector<Variant>> offered_variants(const Backend& backend, Offer offer,
                                              const Function& function, const Target& target,
                                              const CompileOptions& options);

}  // namespace collage
