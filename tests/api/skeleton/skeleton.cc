// A backend out of tree, as small as one can be, to copy: it takes nn.relu, division by a constant,
// and an operator of its own.
#include <algorithm>
#include <cmath>

#include "backend/plugin.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "partition/rules/pattern_table.h"
#include "tensor_program/emit/emitter.h"

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
    if (name_ == "divide") factor_ = 1 / as<ConstantNode>(call.args[1])->value.data<float>()[0];
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

// An operator of its own.
void register_swish() {
  OpDef op;
  op.name = "skeleton.swish";
  op.kind = FusionKind::kElementwise;
  op.infer_type = [](std::span<const Type> args, const Attrs&) -> Result<Type> { return args[0]; };
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

class SkeletonBackend : public Backend {
 public:
  SkeletonBackend() : Backend("skeleton", [] { return BackendTraits{.version = "1"}; }) {
    register_swish();
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
