// KernelGroup: a candidate's function as native sees it. Either one anchor that a template computes
// (a convolution, a product), with any expression in front of its operands and element-wise calls
// after it; or a generic group, whose result is one expression over stages.
#pragma once

#include <string>
#include <vector>

#include "backend/native/templates/attention_template.h"
#include "backend/native/templates/conv_problem.h"
#include "backend/native/templates/matmul_template.h"
#include "ir/expr.h"

namespace collage::native {

struct KernelGroup {
  enum class Kind { kConv, kDepthwise, kMatmul, kAttention, kGeneric };
  Kind kind = Kind::kGeneric;
  Function function;        ///< flat
  std::vector<Expr> order;  ///< post-dfs of the body
  std::vector<Expr>
      results;  ///< result tensors; trailing views are taken off where `plain_results`
  const CallNode* anchor = nullptr;
  ConvShape conv;
  // The image that the convolution's input is an enlarged copy of (twice, nearest neighbour), or
  // null.
  Expr small_image;
  MatmulShape matmul;
  AttentionShape attention;
  // Attention may be followed by a transpose that keeps the columns last: the anchor's dimensions
  // in the order in which the result holds them.
  std::vector<int64_t> result_order;
  bool constant_b = false;
  bool row_stages = false;  ///< a row of the result needs only statistics of that row
  /// Whether images can be blocked by channels: the whole group follows channel blocks.
  bool blockable = false;
  /// Whether some image is of bytes and all can have their channels innermost.
  bool channels_last = false;
};

/// Why native cannot compute a call in any group; sees types and attributes only.
Status check_call(const CallNode& call);
/// Of real numbers, or of quantised ones (real_products.h).
bool is_template_anchor(const CallNode& call);

Result<KernelGroup> analyse_group(const Function& function);

/// The function with everything that code depends on, in text: constants by shape unless they are
/// scalars.
std::string program_text(const Function& function);

/// Whether a tensor of this type has the layout of images in variants that have one.
bool is_image(const TensorType& type);

}  // namespace collage::native
