// One function a family of operators: each registers its operators and their test cases. A new
// family is one file, one line here and one in registry.cc.
#pragma once

#include "ir/op.h"
#include "ops/arithmetic.h"
#include "ops/half.h"
#include "ops/type_rules.h"
#include "runtime/dispatch.h"

namespace collage {

using TypeRule = decltype(OpDef::infer_type);
using Work = decltype(OpDef::flops);

// Makes an OpDef of what most operators state; the caller sets the rest.
OpDef make_op(std::string name, int args, std::vector<AttrSpec> attrs, FusionKind kind,
              TypeRule infer_type, ReferenceKernel reference, Work flops = {});
// Work of `operations` operations for each element of argument `index`.
Work work_per_element(size_t index, double operations = 1);
inline double no_work(Types, const Attrs&, const Type&) { return 0; }

// Registers an operator that only moves elements.
void register_injective(std::string name, std::vector<AttrSpec> attrs, TypeRule infer_type,
                        ReferenceKernel reference, int args = 1);

void register_attention_ops();
void register_binary_ops();
void register_cast_ops();
void register_control_ops();
void register_conv_ops();
void register_index_ops();
void register_join_ops();
void register_matmul_ops();
void register_non_max_suppression_ops();
void register_non_zero_ops();
void register_norm_ops();
void register_packed_product_ops();
void register_pad_ops();
void register_pool_ops();
void register_quantised_ops();
void register_random_ops();
void register_rearrange_ops();
void register_recurrent_ops();
void register_reduce_ops();
void register_resize_ops();
void register_roi_ops();
void register_sample_ops();
void register_scan_ops();
void register_scatter_ops();
void register_select_ops();
void register_softmax_ops();
void register_unary_ops();
void register_unique_ops();
void register_view_ops();

}  // namespace collage
