// The backend torch: operators as ATen of PyTorch computes them on the processor, one call a
// kernel; convolutions and products also with the element-wise calls that follow them, in place.
#include "backend/plugin.h"
#include "calls.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "library.h"
#include "partition/rules/anchor_epilogue.h"
#include "partition/rules/op_predicate.h"
#include "partition/rules/union_rule.h"

namespace collage::torch_plugin {

namespace {

constexpr size_t kMostFollowing = 3;

bool starts(const Match& match) {
  const CallNode& call = *as<CallNode>(match.root);
  return check_call(call).ok();
}

// What leaves the array's shape as it is can be computed where it lies.
bool follows(const EpilogueStep& step) {
  return is_elementwise(step.call) && check_call(step.call).ok() &&
         step.call.type() == step.call.args[step.data_arg]->type() &&
         (step.call.op->name != "nn.bias_add" || step.data_arg == 0);
}

class TorchBackend : public Backend {
 public:
  TorchBackend()
      : Backend("torch", [] {
          return BackendTraits{.version = COLLAGE_TORCH_VERSION,
                               .priority = 60,
                               .brings_own_threads = true};  // those of GCC's OpenMP library
        }) {}
  Status available() const override { return kernel_maker().status(); }

  PartitionRulePtr partition_rule(const Target&) const override {
    auto calls = std::make_shared<OpPredicatePartitionRule>("torch.call", [](const CallNode& call) {
      return check_call(call).ok() && !is_anchor(call);
    });
    auto chains = std::make_shared<AnchorEpiloguePartitionRule>(
        "torch.anchor",
        is_op_among(
            {"nn.batch_matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.dense", "nn.matmul"}),
        starts, follows, kMostFollowing);
    return std::make_shared<UnionPartitionRule>("torch",
                                                std::vector<PartitionRulePtr>{calls, chains});
  }

  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions&) const override {
    return listed(function);
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    const std::vector<Variant> known = TRY(listed(function));
    if (std::find(known.begin(), known.end(), variant) == known.end())
      return unsupported("torch: no variant {}", variant.to_string());
    const MakeKernel make = TRY(kernel_maker());
    return make(function, variant, options.threads);
  }

 private:
  // All arrays in rows; or the images with their channels last, as PyTorch's convolutions prefer.
  static Result<std::vector<Variant>> listed(const Function& function) {
    const Function flat = TRY(inline_calls(function));
    bool channels_last = true;
    for (const Expr& expr : post_order(flat->body)) {
      const auto* call = as<CallNode>(expr);
      if (call == nullptr) continue;
      TRY(check_call(*call));
      channels_last = channels_last && takes_channels_last(*call);
    }
    std::vector<Variant> variants{Variant::plain("aten", function)};
    if (!channels_last) return variants;
    Variant last = variants[0];
    last.weights.clear();
    for (size_t i = 0; i < last.inputs.size(); ++i)
      if (function->params[i]->tensor_type().shape.size() == 4)
        last.inputs[i].layout = Layout::channels_last(4);
    last.outputs[0].layout = Layout::channels_last(4);
    variants.push_back(std::move(last));
    return variants;
  }
};

}  // namespace

}  // namespace collage::torch_plugin

COLLAGE_PLUGIN(std::make_unique<collage::torch_plugin::TorchBackend>())
