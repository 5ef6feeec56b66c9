#include "ops/registry.h"

#include <mutex>

#include "ops/families.h"

namespace collage {

OpDef make_op(std::string name, int args, std::vector<AttrSpec> attrs, FusionKind kind,
              TypeRule infer_type, ReferenceKernel reference, Work flops) {
  return {std::move(name),
          args,
          args,
          std::move(attrs),
          kind,
          std::move(infer_type),
          std::move(reference),
          std::move(flops)};
}

Work work_per_element(size_t index, double operations) {
  return [=](Types args, const Attrs&, const Type&) {
    return operations * static_cast<double>(num_elements(args[index].tensor().shape));
  };
}

void register_injective(std::string name, std::vector<AttrSpec> attrs, TypeRule infer_type,
                        ReferenceKernel reference, int args) {
  register_op(make_op(std::move(name), args, std::move(attrs), FusionKind::kInjective,
                      std::move(infer_type), std::move(reference), no_work));
}

void register_all_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_attention_ops();
    register_binary_ops();
    register_cast_ops();
    register_control_ops();
    register_conv_ops();
    register_index_ops();
    register_join_ops();
    register_matmul_ops();
    register_non_max_suppression_ops();
    register_non_zero_ops();
    register_norm_ops();
    register_packed_product_ops();
    register_pad_ops();
    register_pool_ops();
    register_quantised_ops();  // after the products of real numbers
    register_random_ops();
    register_rearrange_ops();
    register_recurrent_ops();
    register_reduce_ops();
    register_resize_ops();
    register_roi_ops();
    register_sample_ops();
    register_scan_ops();
    register_scatter_ops();
    register_select_ops();
    register_softmax_ops();
    register_unary_ops();
    register_unique_ops();
    register_view_ops();
  });
}

}  // namespace collage
