#include "passes/devices/device_numbers.h"

#include "ir/visitor.h"
#include "ops/placement.h"

namespace collage {

namespace {

Result<std::string> with_number(const std::string& text, const DeclaredDevices& devices) {
  return devices.with_number(TRY(DeviceConstraint::parse(text))).to_string();
}

}  // namespace

Result<Module> with_device_numbers(Module module, const DeclaredDevices& devices) {
  if (devices.list().empty()) return module;
  for (auto& [name, function] : module.functions) {
    Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
      if (!device_placement(rebuilt)) return rebuilt;
      const CallNode& call = *as<CallNode>(rebuilt);
      Attrs attrs = call.attrs;
      for (const char* attr : {"device", "from", "to"})
        if (attrs.has(attr)) attrs.set(attr, TRY(with_number(attrs.string(attr), devices)));
      if (attrs == call.attrs) return rebuilt;
      return make_call(*call.op, call.args, std::move(attrs), original->origin());
    });
    function = TRY(rewriter.rewrite(function));
  }
  return module;
}

}  // namespace collage
