// Removes operators without effect, merges neighbours, and normalises equivalent forms: views
// become reshape, constants stand on the right, biases are nn.bias_add, transposes of product
// operands become flags, zero padding moves into convolutions.
#pragma once

#include "passes/pass.h"
#include "passes/rewrite_rules.h"

namespace collage {

Result<Function> simplify(const Function& function);

// Its rules, by family (simplify_<family>.cc).
std::span<const RewriteRule> arithmetic_rules();
std::span<const RewriteRule> shape_rules();
std::span<const RewriteRule> product_rules();

}  // namespace collage
