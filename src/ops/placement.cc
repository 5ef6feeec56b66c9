#include "ops/placement.h"

#include <cstring>

#include "ir/op.h"

namespace collage {

void register_placement_ops() {
  OpDef op;
  op.name = "on_device";
  op.attrs = {{"device", std::string(), true}};
  op.kind = FusionKind::kOpaque;  // nothing is fused over it
  op.is_view = true;
  op.infer_type = [](std::span<const Type> args, const Attrs&) -> Result<Type> {
    if (!args[0].is_tensor()) return bad_model("takes a tensor, not a tuple");
    return args[0];
  };
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    if (inputs[0].bytes() > 0) std::memcpy(outputs[0].raw(), inputs[0].raw(), inputs[0].bytes());
    return Status();
  };
  op.flops = [](std::span<const Type>, const Attrs&, const Type&) { return 0.0; };
  register_op(std::move(op));
}

}  // namespace collage
