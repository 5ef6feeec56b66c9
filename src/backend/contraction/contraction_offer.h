// Candidates and variants of backends that compute contractions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/contraction/kernels/micro_kernel.h"
#include "backend/contraction/kernels/parts.h"
#include "backend/kernel_row.h"
#include "backend/variant.h"
#include "partition/rules/rule.h"
#include "runtime/kernel.h"

namespace collage::contraction {

/// Offers convolutions and products with their epilogues, each alone and siblings together.
PartitionRulePtr make_contraction_rule(const std::string& name);

/// Returns what kernels of such parts round and do.
KernelRow row_of(const Parts& parts);
/// Returns a variant whose tensors have plain layouts.
Variant plain_variant(std::string name, const Parts& parts, const Function& function);

/// `flat` is `function` without its Composite functions. Schedules are positions among these.
Result<std::vector<Variant>> contraction_variants(const Function& function, const Function& flat,
                                                  const Parts& parts, int threads);
/// Compiles the variant with these parts and that schedule. `micro_kernel` outlives it.
Result<std::unique_ptr<Kernel>> compile_contraction(const Function& function, const Function& flat,
                                                    const Variant& variant, const Parts& parts,
                                                    std::string_view schedule,
                                                    const MicroKernel& micro_kernel, int threads);

}  // namespace collage::contraction
