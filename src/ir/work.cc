#include "ir/work.h"

#include "ir/op.h"

namespace collage {

double result_elements(const CallNode& call) {
  double elements = 0;
  for (const TensorType& leaf : call.type().leaves())
    elements += static_cast<double>(num_elements(leaf.shape));
  return elements;
}

double call_flops(const CallNode& call) {
  if (!call.op->flops) return result_elements(call);
  std::vector<Type> types;
  for (const Expr& arg : call.args) types.push_back(arg->type());
  return call.op->flops(types, call.attrs, call.type());
}

}  // namespace collage
