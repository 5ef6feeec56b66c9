#include "frontend/onnx/refusals.h"

#include <string>

#include "frontend/onnx/functions.h"

namespace collage::frontend {

namespace {

constexpr size_t kRowsInMessage = 8;

}  // namespace

Status refusal_of(const std::vector<LateNode>& nodes, bool all,
                  std::vector<UnsupportedNode>* rows) {
  std::vector<UnsupportedNode> refused;
  for (const LateNode& late : nodes)
    if (late.why == Lateness::kNever || (all && late.why != Lateness::kWaits))
      refused.push_back({late.node.label, qualified_op(*late.node.proto), late.reason,
                         late.why != Lateness::kNever});
  if (rows != nullptr) *rows = refused;
  if (refused.empty()) return {};
  std::string text;
  for (size_t i = 0; i < refused.size() && i < kRowsInMessage; ++i)
    text += fmt::format("{}node '{}' ({}): {}", i ? "; " : "", refused[i].node, refused[i].op,
                        refused[i].reason);
  if (refused.size() > kRowsInMessage)
    text += fmt::format("; and {} more", refused.size() - kRowsInMessage);
  if (refused.size() == 1) return unsupported("unsupported: {}", text);
  return unsupported("{} nodes are unsupported: {}", refused.size(), text);
}

}  // namespace collage::frontend
