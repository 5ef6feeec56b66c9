// What a backend offers for a function, as everybody asks for it.
#pragma once

#include <vector>

#include "backend/backend.h"

namespace collage {

// Whether the backend's kernels of the function may lose NaN: it calls one of the operators that
// BackendTraits::loses_nan names.
Result<bool> may_lose_nan(const Backend& backend, const Function& function);

// The backend's variants within options.rounding, each marked with whether it may lose NaN; or why
// it has none.
Result<std::vector<Variant>> offered_variants(const Backend& backend, const Function& function,
                                              const Target& target, const CompileOptions& options);

// The same, as costs are kept: those that need RoundingLimit::kAny apart from all others.
Result<std::vector<Variant>> variants_to_cost(const Backend& backend, const Function& function,
                                              const Target& target, const CompileOptions& options);

}  // namespace collage
