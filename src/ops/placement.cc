#include "ops/placement.h"

#include <algorithm>
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

Result<Expr> placed(const Expr& value, std::span<const DeviceConstraint> devices, size_t& next,
                    Placed where) {
  if (value->type().is_tensor()) {
    const DeviceConstraint& device = devices[next++];
    if (device.is_open()) return value;
    return make_call("on_device", {value},
                     {{"device", device.to_string()},
                      {"constrain_body", where != Placed::kUsed},
                      {"constrain_result", where != Placed::kComputed}},
                     value->origin());
  }
  const auto* tuple = as<TupleNode>(value);
  std::vector<Expr> fields;
  for (size_t i = 0; i < value->type().fields().size(); ++i) {
    const Expr field = tuple != nullptr ? tuple->fields[i]
                                        : TRY(make_tuple_get_item(value, static_cast<int64_t>(i)));
    fields.push_back(TRY(placed(field, devices, next, where)));
  }
  return make_tuple(std::move(fields));
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

Result<Expr> placed(const Expr& value, std::span<const DeviceConstraint> devices, Placed where) {
  size_t next = 0;
  if (std::all_of(devices.begin(), devices.end(), [](const auto& one) { return one.is_open(); }))
    return value;
  return placed(value, devices, next, where);
}

Result<std::vector<DeviceConstraint>> stated_devices(const Function& function,
                                                     std::string_view attribute, size_t tensors) {
  const auto* text = std::get_if<std::string>(function->attrs.find(attribute));
  if (text == nullptr) return std::vector<DeviceConstraint>();
  std::vector<DeviceConstraint> list = TRY(parse_device_list(*text));
  if (list.size() != tensors)
    return bad_model("{} names {} devices, there are {} tensors", attribute, list.size(), tensors);
  return list;
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
