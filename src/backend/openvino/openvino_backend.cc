#include "backend/openvino/openvino_backend.h"

#include "backend/fingerprint.h"
#include "backend/openvino/openvino_kernel.h"
#include "backend/openvino/translate.h"
#include "ir/visitor.h"
#include "partition/rules/combine_by_primitives.h"
#include "partition/rules/max_coalesce.h"
#include "partition/rules/op_predicate.h"
#include "partition/rules/union_rule.h"

namespace collage {

namespace {

// Single operators, short chains as Relay would fuse them, and the largest regions.
PartitionRulePtr make_rule() {
  PartitionRulePtr operators = std::make_shared<OpPredicatePartitionRule>(
      "openvino.operator", [](const CallNode& call) { return openvino::can_translate(call).ok(); });
  CombineConfig chains;
  chains.max_depth = 4;
  chains.max_ops = 6;
  chains.max_per_exit = 4;
  chains.maximal = false;
  PartitionRulePtr combined =
      std::make_shared<CombineByPrimitivesPartitionRule>("openvino.chain", operators, chains);
  PartitionRulePtr regions =
      std::make_shared<MaxCoalescePartitionRule>("openvino.region", operators);
  return std::make_shared<UnionPartitionRule>(
      "openvino", std::vector<PartitionRulePtr>{operators, combined, regions});
}

class OpenVinoBackend : public Backend {
 public:
  std::string name() const override { return "openvino"; }
  std::string version() const override {
    return fmt::format("{}+{}", ov::get_openvino_version().buildNumber,
                       source_fingerprint("openvino"));
  }
  Status available() const override {
    TRY(openvino::shared_core());
    return {};
  }
  int priority() const override { return 30; }
  bool brings_own_threads() const override { return true; }
  bool prefers_maximal_regions() const override { return true; }
  PartitionRulePtr partition_rule(const Target&) const override { return rule_; }

  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions&) const override {
    Function flat = TRY(inline_calls(function));
    TRY(openvino::translate(flat));
    return std::vector<Variant>{Variant::plain("ov", function)};
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    if (variant != Variant::plain("ov", function))
      return unsupported("openvino: no variant {}", variant.to_string());
    return openvino::compile_kernel(function, options.threads);
  }

 private:
  PartitionRulePtr rule_ = make_rule();
};

}  // namespace

std::unique_ptr<Backend> make_openvino_backend() { return std::make_unique<OpenVinoBackend>(); }

}  // namespace collage
