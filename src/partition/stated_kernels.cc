#include "partition/stated_kernels.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "ir/device_constraint.h"
#include "ir/pattern.h"
#include "runtime/encoding.h"

namespace collage {

namespace {

constexpr char kTarget[] = "Target", kVariant[] = "Variant", kConversions[] = "conversions";

std::string conversion_text(const TensorType& type, const Encoding& from, const Encoding& to) {
  return type.to_string() + " " + from.to_string() + " -> " + to.to_string();
}

// The entries of "a; b".
std::set<std::string> split(const std::string& text) {
  std::set<std::string> entries;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("; ", begin), text.size());
    entries.insert(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return entries;
}

// As Encoding::to_string writes it; none of other texts.
std::optional<Encoding> encoding_of(std::string_view text) {
  Encoding encoding;
  if (const size_t at = text.find('@'); at != text.npos) {
    const Result<DeviceConstraint> device = DeviceConstraint::parse(text.substr(at + 1));
    if (!device || !device->device) return std::nullopt;
    encoding.device = {*device->device, device->id.value_or(0), device->memory_scope.value_or("")};
    text = text.substr(0, at);
  }
  if (const size_t at = text.find(':'); at != text.npos) {
    const Result<Layout> layout = Layout::parse(text.substr(at + 1));
    if (!layout) return std::nullopt;
    encoding.layout = *layout;
    text = text.substr(0, at);
  }
  const Result<DType> dtype = parse_dtype(text);
  if (!dtype) return std::nullopt;
  encoding.dtype = *dtype;
  return encoding;
}

}  // namespace

std::string text_attr(const Attrs& attrs, std::string_view name) {
  const auto* text = std::get_if<std::string>(attrs.find(name));
  return text != nullptr ? *text : "";
}

const FunctionNode* called_primitive(const Expr& expr) {
  const auto* call = as<CallNode>(expr);
  if (call == nullptr || call->op != nullptr) return nullptr;
  const auto* function = as<FunctionNode>(call->callee);
  if (function == nullptr) return nullptr;
  const AttrValue* primitive = function->attrs.find("Primitive");
  return primitive != nullptr && attr_matches(*primitive, int64_t{1}) ? function : nullptr;
}

StatedKernels::StatedKernels(const DataflowGraph& graph)
    : compilers_(graph.size()), targets_(graph.size()), variants_(graph.size()) {
  for (const DataflowGraph::Node& node : graph.nodes()) {
    if (const FunctionNode* primitive = called_primitive(node.expr)) {
      primitives_.insert(node.index);
      compilers_[node.index] = text_attr(primitive->attrs, "Compiler");
      targets_[node.index] = text_attr(primitive->attrs, kTarget);
      variants_[node.index] = text_attr(primitive->attrs, kVariant);
    }
    if (node_role(graph, node.index) == NodeRole::kKernel)
      complete_ = complete_ && !targets_[node.index].empty() && !variants_[node.index].empty();
  }
  if (graph.function()->attrs.has(kConversions))
    conversions_ = split(text_attr(graph.function()->attrs, kConversions));
  for (const std::string& conversion : conversions_.value_or(std::set<std::string>())) {
    const size_t arrow = conversion.rfind(" -> "), from = conversion.rfind(' ', arrow - 1);
    if (arrow == conversion.npos || from == conversion.npos) continue;
    if (const auto to = encoding_of(std::string_view(conversion).substr(arrow + 4)))
      converted_to_[conversion.substr(0, from)].insert(*to);
  }
}

const std::string& StatedKernels::variant(const CandidatePartition& candidate) const {
  return variants_[candidate.sub_graph.inside().first()];
}

bool StatedKernels::allow_conversion(const TensorType& type, const Encoding& from,
                                     const Encoding& to) const {
  return !conversions_ || conversions_->contains(conversion_text(type, from, to));
}

std::set<Encoding> StatedKernels::converted_to(const TensorType& type) const {
  const auto found = converted_to_.find(type.to_string());
  if (found == converted_to_.end()) return {};
  std::set<Encoding> encodings = found->second;
  const auto rank = static_cast<int64_t>(type.shape.size());
  std::erase_if(encodings, [&](const Encoding& e) { return !e.layout.fits(rank); });
  return encodings;
}

Attrs stated_kernel(const Target& target, const std::string& variant) {
  return {{kTarget, target.to_string()}, {kVariant, variant}};
}

Attrs stated_conversions(std::span<const ConversionStatement> conversions) {
  std::set<std::string> changes;
  for (const ConversionStatement& change : conversions)
    changes.insert(conversion_text(change.type, change.from, change.to));
  std::string list;
  for (const std::string& change : changes) list += (list.empty() ? "" : "; ") + change;
  return {{kConversions, list}};
}

}  // namespace collage
