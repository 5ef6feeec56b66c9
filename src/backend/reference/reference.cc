#include "backend/reference/reference.h"

#include "backend/fingerprint.h"
#include "backend/reference/kernels/convert.h"
#include "backend/reference/kernels/interpreted_kernel.h"
#include "backend/reference/kernels/loaders.h"
#include "partition/rules/host.h"

namespace collage {

namespace {

class ReferenceBackend : public Backend {
 public:
  ReferenceBackend()
      : Backend("reference", [] {
          return BackendTraits{
              .version = source_fingerprint("reference"),
              .priority = 1000,
              .is_host = true,
              .kernels = {{.name = "reference", .computes = "every operator, by the interpreter"}}};
        }) {}

  PartitionRulePtr partition_rule(const Target&) const override {
    return std::make_shared<HostPartitionRule>();
  }

  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions&) const override {
    TRY(check_interpretable(function));
    return std::vector<Variant>{Variant::plain("reference", function)};
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&, const CompileOptions&) const override {
    TRY(check_interpretable(function));
    if (!(variant == Variant::plain("reference", function)))
      return unsupported("reference: no variant {}", variant.to_string());
    return make_interpreted_kernel(function);
  }

  Result<std::unique_ptr<Kernel>> compile_conversion(const TensorType& type, const Encoding& from,
                                                     const Encoding& to,
                                                     const CompileOptions&) const override {
    return make_conversion_kernel(type, from, to);
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() {
  reference::register_loaders();
  return std::make_unique<ReferenceBackend>();
}

}  // namespace collage
