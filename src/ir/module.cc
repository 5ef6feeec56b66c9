#include "ir/module.h"

namespace collage {

Status check_external_mod(const ExternalMod& mod) {
  const auto* code = as<ConstantNode>(mod.code);
  if (code == nullptr || code->value.dtype() != DType::kUInt8 || code->value.rank() != 1)
    return bad_model("the code of an external module is a Tensor[(n), uint8]");
  return {};
}

}  // namespace collage
