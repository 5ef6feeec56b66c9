#include "backend/vnni/vnni_backend.h"

#include "backend/contraction/contraction_offer.h"
#include "backend/fingerprint.h"
#include "ir/visitor.h"
#include "kernels/contraction/processor.h"
#include "kernels/vnni/dot_products.h"
#include "kernels/vnni/loaders.h"

namespace collage {
namespace vnni {
namespace {

class VnniBackend : public Backend {
 public:
  std::string name() const override { return "vnni"; }
  std::string version() const override { return source_fingerprint(name()); }
  Status available() const override {
    if (contraction::matrix_unit().ok())
      return error(ErrorCode::kUnavailable, "this processor's matrix unit (amx) is faster");
    return contraction::dot_products();
  }
  int priority() const override { return 26; }
  double vector_speedup() const override { return 2; }

  PartitionRulePtr partition_rule(const Target&) const override {
    // Products of integers are native's.
    return contraction::make_contraction_rule(name(), false);
  }

  std::string spreads_nan() const override { return "products of integers"; }

  bool only_lowers() const override { return true; }
  bool lowers() const override { return available().ok(); }
  Result<std::vector<Variant>> variants(const Function&, const Target&,
                                        const CompileOptions&) const override {
    return unsupported("its integers need --max-error").with_context(name());
  }
  Result<std::vector<Variant>> lowered_variants(const Function& function, const Target&,
                                                const CompileOptions& options) const override {
    return contraction::contraction_variants(function, TRY(inline_calls(function)), kAllIntegers,
                                             options.threads)
        .with_context(name());
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    return kernel_of(function, variant, options).with_context(name());
  }

 private:
  static Result<std::unique_ptr<Kernel>> kernel_of(const Function& function, const Variant& variant,
                                                   const CompileOptions& options) {
    TRY(contraction::dot_products());
    return contraction::compile_contraction(function, TRY(inline_calls(function)), variant,
                                            kAllIntegers, dot_micro_kernel(), options.threads);
  }
};

}  // namespace
}  // namespace vnni

std::unique_ptr<Backend> make_vnni_backend() {
  vnni::register_loaders();
  return std::make_unique<vnni::VnniBackend>();
}

}  // namespace collage
