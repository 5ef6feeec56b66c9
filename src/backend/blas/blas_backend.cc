#include "backend/blas/blas_backend.h"

#include <omp.h>

#include "backend/blas/labels.h"
#include "backend/fingerprint.h"
#include "backend/gemm/read_product.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "kernels/blas/loaders.h"
#include "kernels/blas/openblas.h"
#include "kernels/blas/product_kernel.h"
#include "partition/rules/anchor_epilogue.h"

namespace collage {
namespace blas {
namespace {

bool starts(const Match& match) { return gemm::check_anchor(*as<CallNode>(match.root)).ok(); }

/// A scale, then a sum, at most one of each.
bool follows(const EpilogueStep& step) {
  if (step.call.args.size() != 2 || step.call.args[0] == step.call.args[1]) return false;
  if (gemm::is_sum(step.call, step.data_arg))
    return step.before.empty() || gemm::is_scale(*step.before.back(), 0) ||
           gemm::is_scale(*step.before.back(), 1);
  return step.before.empty() && gemm::is_scale(step.call, step.data_arg);
}

Variant variant_of(const Method& method, const Function& function) {
  Variant variant = Variant::plain(method.to_string(), function);
  if (method.repacked) variant.weights = "transposed";
  return variant;
}

class BlasBackend : public Backend {
 public:
  std::string name() const override { return "blas"; }
  std::string version() const override {
    return fmt::format("openblas-{}+{}", openblas_version(), source_fingerprint("blas"));
  }
  Status available() const override { return openblas().status(); }
  int priority() const override { return 50; }
  // Slower than onednn and native on the products of transformers, by half and more.
  bool by_default() const override { return false; }
  void register_operators() const override { register_labels(); }

  PartitionRulePtr partition_rule(const Target&) const override {
    return std::make_shared<AnchorEpiloguePartitionRule>(
        "blas.product", is_op_among({"nn.dense", "nn.matmul", "nn.batch_matmul"}), starts, follows,
        2);
  }

  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions& options) const override {
    const Product product =
        TRY(gemm::read_product(TRY(inline_calls(function))).with_context(name()));
    std::vector<Variant> list;
    for (const Method& method : methods(product, options.threads))
      list.push_back(variant_of(method, function));
    return list;
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    Product product = TRY(gemm::read_product(TRY(inline_calls(function))).with_context(name()));
    for (const Method& method : methods(product, options.threads))
      if (variant == variant_of(method, function))
        return make_product_kernel(std::move(product), method);
    return unsupported("blas: no variant {}", variant.to_string());
  }
};

}  // namespace
}  // namespace blas

std::unique_ptr<Backend> make_blas_backend() {
  blas::register_loaders();
  return std::make_unique<blas::BlasBackend>();
}

}  // namespace collage
