// One function a family of operators: each registers its operators and their test cases. A new
// family is one file, one line here and one in registry.cc.
#pragma once

#include "ir/op.h"
#include "ops/arithmetic.h"
#include "ops/half.h"
#include "ops/type_rules.h"
#include "runtime/dispatch.h"

namespace collage {

// Registers an operator that computes nothing but where each element comes from.
void register_injective(std::string name, std::vector<AttrSpec> attrs,
                        decltype(OpDef::infer_type) infer_type, ReferenceKernel reference,
                        int args = 1);

void register_attention_ops();
void register_binary_ops();
void register_cast_ops();
void register_conv_ops();
void register_index_ops();
void register_join_ops();
void register_matmul_ops();
void register_norm_ops();
void register_pad_ops();
void register_pool_ops();
void register_rearrange_ops();
void register_reduce_ops();
void register_resize_ops();
void register_scan_ops();
void register_scatter_ops();
void register_select_ops();
void register_softmax_ops();
void register_unary_ops();
void register_view_ops();

}  // namespace collage
