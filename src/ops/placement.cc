#include "ops/placement.h"

#include <cstring>

#include "ir/op.h"

namespace collage {

namespace {

OpDef placement_op(std::string name, std::vector<AttrSpec> attrs) {
  OpDef op;
  op.name = std::move(name);
  op.attrs = std::move(attrs);
  op.kind = FusionKind::kOpaque;  // nothing is fused over it
  op.is_view = true;
  op.infer_type = [](std::span<const Type> args, const Attrs& given) -> Result<Type> {
    if (!args[0].is_tensor()) return bad_model("takes a tensor, not a tuple");
    for (const auto& [attr, value] : given.entries())
      if (const auto* text = std::get_if<std::string>(&value))
        if (const auto device = DeviceConstraint::parse(*text); !device)
          return bad_model("{}: {}", attr, device.status().message());
    return args[0];
  };
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    if (inputs[0].bytes() > 0) std::memcpy(outputs[0].raw(), inputs[0].raw(), inputs[0].bytes());
    return Status();
  };
  op.flops = [](std::span<const Type>, const Attrs&, const Type&) { return 0.0; };
  return op;
}

DeviceConstraint constraint(const CallNode& call, std::string_view attr) {
  return DeviceConstraint::parse(call.attrs.string(attr)).value();  // its type rule has parsed it
}

}  // namespace

void register_placement_ops() {
  register_op(placement_op(
      "on_device",
      {{"device", std::string(), true}, {"constrain_body", true}, {"constrain_result", false}}));
  register_op(
      placement_op("device_copy", {{"from", std::string(), true}, {"to", std::string(), true}}));
}

std::optional<DevicePlacement> device_placement(const Expr& expr) {
  if (const CallNode* copy = as_op(expr, "device_copy"))
    return DevicePlacement{constraint(*copy, "from"), constraint(*copy, "to")};
  const CallNode* on_device = as_op(expr, "on_device");
  if (on_device == nullptr) return std::nullopt;
  const DeviceConstraint device = constraint(*on_device, "device");
  return DevicePlacement{on_device->attrs.flag("constrain_body") ? device : DeviceConstraint(),
                         on_device->attrs.flag("constrain_result") ? device : DeviceConstraint()};
}

}  // namespace collage
