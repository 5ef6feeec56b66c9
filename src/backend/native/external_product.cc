#include "backend/native/external_product.h"

#include <algorithm>

#include "backend/native/generic_schedule.h"
#include "tensor_program/external.h"
#include "tensor_program/transform.h"

namespace collage::native {

namespace tp = tensor_program;

namespace {

/// A function that multiplies matrices.
struct Multiplier {
  const char* label;
  bool transposed;       ///< takes the second one transposed
  bool turns_constants;  ///< else a constant is turned round, once, where it has no other form
};
constexpr Multiplier kMultipliers[] = {
    {"cblas_sgemm", false, false}, {"cblas_sgemm_nt", true, false}, {"onednn.matmul", false, true}};

bool is_transposed(const CallNode& anchor, size_t operand) {
  if (anchor.op->name == "nn.dense") return operand == 1;
  return anchor.attrs.flag(operand == 0 ? "transpose_a" : "transpose_b");
}

Expr node_of(const KernelGroup& group, const CallNode* call) {
  return *std::find_if(group.order.begin(), group.order.end(),
                       [&](const Expr& e) { return e.get() == call; });
}

/// The addition of a vector to each row of the anchor, where nothing else reads the anchor; or
/// null.
const CallNode* bias_of(const KernelGroup& group) {
  const CallNode* found = nullptr;
  int readers = 0;
  for (const Expr& node : group.order) {
    const auto* call = as<CallNode>(node);
    if (call == nullptr) continue;
    for (const Expr& arg : call->args) readers += arg.get() == group.anchor ? 1 : 0;
    if (call->op->name == "nn.bias_add" && call->args[0].get() == group.anchor &&
        tp::normal_axis_of(*call, "axis", 2) == 1)
      found = call;
  }
  return readers == 1 ? found : nullptr;
}

/// A whole array that holds the node (as a matrix transposed where `flip`): its buffer where it is
/// one, else a stage of that name.
std::string array_of(tp::Emitter& e, const Expr& node, bool flip, const std::string& name) {
  tp::Stage stage;
  stage.name = name;
  Shape shape = node->tensor_type().shape;
  if (flip) std::swap(shape[0], shape[1]);
  stage.axes = tp::numbered_axes("d", shape);
  tp::Coords at{stage.indices(), {}, {}};
  if (flip) std::swap(at.logical[0], at.logical[1]);
  stage.value = e.value(node, at);
  const std::vector<tp::Term> own = stage.indices();
  const tp::Term& value = stage.value;
  if (value->op == tp::TermOp::kLoad && e.program().type_of(value->name).shape == shape &&
      std::equal(own.begin(), own.end(), value->args.begin(), value->args.end(), tp::same))
    return value->name;
  e.program().stages.push_back(std::move(stage));
  e.program().schedule.push_back({name, -1, tp::PrimitiveKind::kComputeRoot, {}});
  e.program().schedule.push_back({name, -1, tp::PrimitiveKind::kParallel, {"d0"}});
  return name;
}

}  // namespace

std::vector<std::string> external_products(const KernelGroup& group) {
  std::vector<std::string> labels;
  const CallNode& anchor = *group.anchor;
  for (const Expr& arg : anchor.args)
    if (arg->tensor_type().shape.size() != 2) return labels;
  for (const Multiplier& multiplier : kMultipliers) {
    if (tp::find_external(multiplier.label) == nullptr) continue;
    const bool constant = anchor.args[1]->kind() == ExprKind::kConstant;
    if (multiplier.transposed == is_transposed(anchor, 1) ||
        (multiplier.turns_constants && constant))
      labels.emplace_back(multiplier.label);
  }
  return labels;
}

Status add_external_product(tp::Emitter& e, const KernelGroup& group, const std::string& label,
                            int threads) {
  const CallNode& anchor = *group.anchor;
  const auto* multiplier = std::find_if(std::begin(kMultipliers), std::end(kMultipliers),
                                        [&](const Multiplier& m) { return m.label == label; });
  const CallNode* bias = bias_of(group);
  tp::Stage product;
  product.name = "product";
  product.external.label = label;
  auto& inputs = product.external.inputs;
  inputs.push_back(array_of(e, anchor.args[0], is_transposed(anchor, 0), "left"));
  inputs.push_back(
      array_of(e, anchor.args[1], multiplier->transposed != is_transposed(anchor, 1), "right"));
  if (bias != nullptr) inputs.push_back(array_of(e, bias->args[1], false, "bias"));
  const Shape& shape = anchor.tensor_type().shape;
  product.axes = {{"d0", shape[0]}, {"d1", shape[1]}};
  e.bind(node_of(group, bias != nullptr ? bias : &anchor),
         [](const tp::Coords& at) { return tp::load("product", DType::kFloat32, at.logical); });
  e.program().schedule.push_back({product.name, -1, tp::PrimitiveKind::kComputeRoot, {}});
  e.program().stages.push_back(std::move(product));
  add_result(e, group, group.results[0], "result0", ChannelLayout::kPlain, threads);
  schedule_stages_first(e);
  e.program() = TRY(tp::fold_constants(e.program()));
  return {};
}

}  // namespace collage::native
