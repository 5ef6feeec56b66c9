#include "passes/simplify.h"

namespace collage {

Result<Function> simplify(const Function& function) {
  std::vector<RewriteRule> rules;
  for (auto family : {arithmetic_rules(), shape_rules(), product_rules()})
    rules.insert(rules.end(), family.begin(), family.end());
  return apply_rules(function, rules);
}

}  // namespace collage
