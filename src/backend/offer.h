// A backend's variants and kernels for a function, as all callers ask for them.
#pragma once

#include <vector>

#include "backend/backend.h"

namespace collage {

// Returns whether the backend's kernels of the function may lose NaN: it calls an operator that
// BackendTraits::loses_nan names.
Result<bool> may_lose_nan(const Backend& backend, const Function& function);

// Returns the backend's variants within options.rounding, each marked if it may lose NaN; or why it
// has none.
Result<std::vector<Variant>> offered_variants(const Backend& backend, const Function& function,
                                              const Target& target, const CompileOptions& options);

// Returns its further schedules, and compiles; for a target with cores of its own for as many
// threads as these are, and the kernel runs there (runtime/core_team.h).
Result<ScheduleSpace> offered_schedules(const Backend& backend, const Function& function,
                                        const Target& target, const CompileOptions& options);
Result<std::unique_ptr<Kernel>> compile_kernel(const Backend& backend, const Function& function,
                                               const Variant& variant, const Target& target,
                                               const CompileOptions& options);

// Does so for the database: returns variants that need RoundingLimit::kAny apart from the others.
Result<std::vector<Variant>> variants_to_cost(const Backend& backend, const Function& function,
                                              const Target& target, const CompileOptions& options);

}  // namespace collage
