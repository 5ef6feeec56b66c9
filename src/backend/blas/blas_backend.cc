#include "backend/blas/blas_backend.h"

#include <omp.h>

#include "backend/blas/kernels/loaders.h"
#include "backend/blas/kernels/openblas.h"
#include "backend/blas/kernels/product_kernel.h"
#include "backend/blas/labels.h"
#include "backend/fingerprint.h"
#include "backend/gemm/read_product.h"
#include "ir/op.h"
#include "ir/visitor.h"
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
  // Slower than onednn and native on the products of transformers, by half and more.
  BlasBackend()
      : Backend("blas", [] {
          return BackendTraits{.version = fmt::format("openblas-{}+{}", openblas_version(),
                                                      source_fingerprint("blas")),
                               .priority = 50,
                               .by_default = false,
                               .kernels = {{.name = "sgemm",
                                            .computes = "matrix products",
                                            .tile = "constants repacked, products side by side"},
                                           {.name = "sgemv",
                                            .computes = "products of one row",
                                            .tile = "constants repacked"}}};
        }) {}
  Status available() const override { return openblas().status(); }

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
    for (const Method& method : methods(product, options.threads)) {
      list.push_back(variant_of(method, function));
      list.back().schedule = std::to_string(list.size() - 1);
    }
    return list;
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    Product product = TRY(gemm::read_product(TRY(inline_calls(function))).with_context(name()));
    const std::vector<Method> offered = methods(product, options.threads);
    const std::optional<size_t> position = position_in(variant.schedule, offered.size());
    if (!position || !(variant == variant_of(offered[*position], function)))
      return unsupported("blas: no variant {}", variant.to_string());
    return make_product_kernel(std::move(product), offered[*position]);
  }
};

}  // namespace
}  // namespace blas

std::unique_ptr<Backend> make_blas_backend() {
  blas::register_loaders();
  blas::register_labels();
  return std::make_unique<blas::BlasBackend>();
}

}  // namespace collage
