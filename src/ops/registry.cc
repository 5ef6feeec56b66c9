#include "ops/registry.h"

#include <mutex>

#include "ops/families.h"

namespace collage {

void register_injective(std::string name, std::vector<AttrSpec> attrs,
                        decltype(OpDef::infer_type) infer_type, ReferenceKernel reference,
                        int args) {
  OpDef op;
  op.name = std::move(name);
  op.min_args = op.max_args = args;
  op.attrs = std::move(attrs);
  op.kind = FusionKind::kInjective;
  op.infer_type = std::move(infer_type);
  op.reference = std::move(reference);
  op.flops = [](Types, const Attrs&, const Type&) { return 0.0; };
  register_op(std::move(op));
}

void register_all_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_attention_ops();
    register_binary_ops();
    register_cast_ops();
    register_conv_ops();
    register_index_ops();
    register_join_ops();
    register_matmul_ops();
    register_norm_ops();
    register_pad_ops();
    register_pool_ops();
    register_rearrange_ops();
    register_reduce_ops();
    register_resize_ops();
    register_scan_ops();
    register_scatter_ops();
    register_select_ops();
    register_softmax_ops();
    register_unary_ops();
    register_view_ops();
  });
}

}  // namespace collage
