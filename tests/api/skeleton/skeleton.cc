// A backend out of tree, as small as one can be, to copy: it takes nn.relu, division by a constant,
// and an operator of its own, and uses every hook.
#include <algorithm>
#include <cmath>

#include "backend/plugin.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "partition/rules/pattern_table.h"
#include "tensor_program/emitter.h"

namespace {

using namespace collage;

bool is_float(const Expr& expr) {
  return expr->type().is_tensor() && expr->tensor_type().dtype == DType::kFloat32;
}

// x times its own sigmoid.
float swish(float x) { return x / (1 + std::exp(-x)); }

// One call, element by element.
class SkeletonKernel : public Kernel {
 public:
  SkeletonKernel(const CallNode& call, int64_t size) : name_(call.op->name), size_(size) {
    if (name_ == "divide") factor_ = as<ConstantNode>(call.args[1])->value.data<float>()[0];
  }
  Status run(const KernelArgs& args) override {
    const float* x = static_cast<const float*>(args.inputs[0]);
    float* y = static_cast<float*>(args.outputs[0]);
    for (int64_t i = 0; i < size_; ++i)
      y[i] = name_ == "nn.relu"  ? std::max(x[i], 0.f)
             : name_ == "divide" ? x[i] * factor_
                                 : swish(x[i]);
    return {};
  }
  // Runs keep nothing, so any number of them may go on at once.
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }

 private:
  std::string name_;
  int64_t size_;
  float factor_ = 1;
};

class SkeletonBackend : public Backend {
 public:
  std::string name() const override { return "skeleton"; }
  std::string version() const override { return "1"; }

  // An operator of its own.
  void register_operators() const override {
    OpDef op;
    op.name = "skeleton.swish";
    op.kind = FusionKind::kElementwise;
    op.infer_type = [](std::span<const Type> args, const Attrs&) -> Result<Type> {
      return args[0];
    };
    op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
      for (int64_t i = 0; i < inputs[0].size(); ++i)
        outputs[0].data<float>()[i] = swish(inputs[0].data<float>()[i]);
      return Status();
    };
    register_op(std::move(op));
    // And native, which fuses it with its neighbours.
    using tensor_program::Coords, tensor_program::Emitter, tensor_program::Term;
    tensor_program::register_emit_rule(
        "skeleton.swish",
        {tensor_program::check_float_args,
         [](Emitter& emitter, const CallNode& call, size_t, const Coords& at) -> Term {
           const Term x = emitter.value(call.args[0], at);
           return x / (1.0f + exp(-x));
         },
         true});
  }

  // What the simplification calls nn.silu becomes that operator.
  std::vector<Pass> rewrites(const Target&) const override {
    return {function_pass("skeleton.swish", [](const Function& function) -> Result<Function> {
      Rewriter rewriter([](const Expr&, const Expr& rebuilt) -> Result<Expr> {
        const CallNode* call = as_op(rebuilt, "nn.silu");
        if (call == nullptr || !is_float(rebuilt)) return rebuilt;
        return make_call("skeleton.swish", call->args, {}, call->origin());
      });
      return rewriter.rewrite(function);
    })};
  }

  // The kernel multiplies: it wants the divisor's reciprocal.
  Result<Function> update_constants(const Function& function, const Target&) const override {
    Rewriter rewriter([](const Expr&, const Expr& rebuilt) -> Result<Expr> {
      const CallNode* call = as_op(rebuilt, "divide");
      const auto* divisor = call != nullptr ? as<ConstantNode>(call->args[1]) : nullptr;
      if (divisor == nullptr) return rebuilt;
      Expr factor = make_scalar(1 / divisor->value.data<float>()[0]);
      return make_call("divide", {call->args[0], factor});
    });
    return rewriter.rewrite(function);
  }

  PartitionRulePtr partition_rule(const Target&) const override {
    auto floats = [](const Match& match) { return is_float(match.root); };
    auto by_number = [](const Match& match) {
      const auto* divisor = as<ConstantNode>(as<CallNode>(match.root)->args[1]);
      return is_float(match.root) && divisor->value.rank() == 0;
    };
    return make_pattern_rule(
        "skeleton", {{"skeleton.relu", is_op("nn.relu")(wildcard()), floats},
                     {"skeleton.scale", is_op("divide")(wildcard(), is_constant()), by_number},
                     {"skeleton.swish", is_op("skeleton.swish")(wildcard()), floats}});
  }

  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions&) const override {
    return std::vector<Variant>{Variant::plain("loop", function)};
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant&, const Target&,
                                          const CompileOptions&) const override {
    Function flat = TRY(inline_calls(function));
    const auto* call = as<CallNode>(flat->body);
    if (call == nullptr || call->op == nullptr)
      return unsupported("skeleton: takes one operator a kernel");
    return std::unique_ptr<Kernel>(
        std::make_unique<SkeletonKernel>(*call, num_elements(flat->body->tensor_type().shape)));
  }
};

}  // namespace

COLLAGE_PLUGIN(std::make_unique<SkeletonBackend>())
