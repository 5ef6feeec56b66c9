#include "passes/devices/device_numbers.h"

#include "ir/visitor.h"
#include "ops/placement.h"

namespace collage {

namespace {

Result<Attrs> with_numbers(const Attrs& attrs, const DeclaredDevices& devices) {
  Attrs numbered = attrs;
  for (const char* attr : {"device", "from", "to"})
    if (attrs.has(attr)) {
      const DeviceConstraint one = TRY(DeviceConstraint::parse(attrs.string(attr)));
      numbered.set(attr, TRY(refined(devices.with_number(one))).to_string());
    }
  return numbered;
}

Result<Function> with_numbers(const Function& function, const DeclaredDevices& devices) {
  Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
    if (rebuilt->kind() == ExprKind::kFunction)
      return Expr(
          TRY(with_numbers(std::static_pointer_cast<const FunctionNode>(rebuilt), devices)));
    if (!device_placement(rebuilt)) return rebuilt;
    const CallNode& call = *as<CallNode>(rebuilt);
    Attrs attrs = TRY(with_numbers(call.attrs, devices));
    if (attrs == call.attrs) return rebuilt;
    return make_call(*call.op, call.args, std::move(attrs), original->origin());
  });
  const Function numbered = TRY(rewriter.rewrite(function));
  Attrs attrs = numbered->attrs;
  for (const char* attr : {"param_devices", "result_devices"}) {
    const auto* text = std::get_if<std::string>(attrs.find(attr));
    if (text == nullptr) continue;
    std::vector<DeviceConstraint> list = TRY(parse_device_list(*text));
    for (DeviceConstraint& one : list) one = TRY(refined(devices.with_number(std::move(one))));
    attrs.set(attr, device_list_text(list));
  }
  if (attrs == numbered->attrs) return numbered;
  return make_function(numbered->params, numbered->body, std::move(attrs));
}

}  // namespace

Result<Module> with_device_numbers(Module module, const DeclaredDevices& devices) {
  for (auto& [name, function] : module.functions) function = TRY(with_numbers(function, devices));
  return module;
}

}  // namespace collage
