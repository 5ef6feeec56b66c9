#include "backend/amx/vnni_backend.h"

#include "backend/amx/contraction_offer.h"
#include "backend/amx/dot_products.h"
#include "backend/amx/tiles.h"
#include "backend/fingerprint.h"
#include "ir/visitor.h"

namespace collage {
namespace {

class VnniBackend : public Backend {
 public:
  std::string name() const override { return "vnni"; }
  std::string version() const override { return source_fingerprint("amx"); }
  Status available() const override {
    if (amx::matrix_unit().ok())
      return error(ErrorCode::kUnavailable, "this processor's matrix unit (amx) is faster");
    return amx::dot_products();
  }
  int priority() const override { return 26; }
  double vector_speedup() const override { return 2; }

  PartitionRulePtr partition_rule(const Target&) const override {
    return amx::make_contraction_rule(name());
  }

  bool only_lowers() const override { return true; }
  bool lowers() const override { return available().ok(); }
  Result<std::vector<Variant>> variants(const Function&, const Target&,
                                        const CompileOptions&) const override {
    return unsupported("vnni: its integers need --max-error");
  }
  Result<std::vector<Variant>> lowered_variants(const Function& function, const Target&,
                                                const CompileOptions& options) const override {
    return amx::contraction_variants(function, TRY(inline_calls(function)), amx::kAllIntegers,
                                     options.threads);
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    TRY(amx::dot_products());
    return amx::compile_contraction(function, TRY(inline_calls(function)), variant,
                                    amx::kAllIntegers, options.threads);
  }
};

}  // namespace

std::unique_ptr<Backend> make_vnni_backend() { return std::make_unique<VnniBackend>(); }

}  // namespace collage
