#include "ops/registry.h"

#include <mutex>

#include "ops/families.h"

namespace collage {

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
