#include "ir/fusion_kind.h"

#include <algorithm>

namespace collage {

FusionKind fusion_kind(const CallNode& call) {
  if (call.op == nullptr) return FusionKind::kOpaque;
  if (call.op->kind != FusionKind::kBroadcast || !call.type().is_tensor()) return call.op->kind;
  bool same = std::all_of(call.args.begin(), call.args.end(), [&](const Expr& arg) {
    return arg->type().is_tensor() && arg->tensor_type().shape == call.tensor_type().shape;
  });
  return same ? FusionKind::kElementwise : FusionKind::kBroadcast;
}

}  // namespace collage
