// A chain of calls of ATen over the program's buffers, each of which writes into the destination.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <vector>

#include "aten.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "library.h"

namespace collage::torch_plugin {

namespace {

at::Tensor view_of(const TensorType& type, const Layout& layout, const void* memory) {
  Shape strides(type.shape.size());
  for (size_t d = 0; d < strides.size(); ++d) {
    Shape index(strides.size(), 0);
    index[d] = 1;
    strides[d] = layout.offset(type.shape, index);
  }
  return at::from_blob(const_cast<void*>(memory), type.shape, strides, at::kFloat);
}

struct Operand {
  enum class Source { kParameter, kConstant, kBefore };  // the last: what the step before gave
  Source source;
  size_t parameter = 0;
  at::Tensor constant = {};
};

struct Step {
  const CallNode* call;
  Compute compute;
  std::vector<Operand> operands;
  bool adds_bias = false;  // of a convolution: the last operand
};

// PyTorch counts threads for each thread that calls it, by OpenMP's number and MKL's.
void use_threads(int threads) {
  thread_local int last = 0;
  if (last == threads && at::get_num_threads() == threads) return;
  at::set_num_threads(threads);
  last = threads;
}

class AtenKernel : public Kernel {
 public:
  AtenKernel(Function flat, Variant variant, int threads)
      : function_(std::move(flat)), variant_(std::move(variant)), threads_(threads) {}

  Status read() {
    std::vector<const CallNode*> calls;
    for (const Expr& expr : post_order(function_->body))
      if (const auto* call = as<CallNode>(expr)) calls.push_back(call);
    for (const CallNode* call : calls) TRY(add(*call));
    if (steps_.empty()) return unsupported("torch: no call");
    for (const Expr& expr : post_order(function_->body))
      if (const auto* constant = as<ConstantNode>(expr)) constant_bytes_ += constant->value.bytes();
    return {};
  }

  Status run(const KernelArgs& args) override {
    try {
      const c10::InferenceMode no_gradients;
      use_threads(threads_);
      bind(args);
      for (size_t i = 0; i < steps_.size(); ++i) {
        const Step& step = steps_[i];
        if (step.adds_bias) {
          convolve(inputs_[i], inputs_[i].back(), out_, step.call->attrs);
        } else {
          step.compute(inputs_[i], out_, step.call->attrs);
        }
      }
      return {};
    } catch (const c10::Error& refused) {
      const std::string text = refused.what_without_backtrace();
      return internal_error("torch: {}", text.substr(0, text.find('\n')));
    } catch (const std::exception& failed) {
      return internal_error("torch: {}", failed.what());
    }
  }
  size_t constant_bytes() const override { return constant_bytes_; }
  ThreadUse thread_use() const override { return ThreadUse::kOwnPool; }
  // Views of buffers are kept from one run to the next.
  Result<std::shared_ptr<Kernel>> twin() const override {
    auto made = std::make_shared<AtenKernel>(function_, variant_, threads_);
    TRY(made->read());
    return std::shared_ptr<Kernel>(std::move(made));
  }

 private:
  Status add(const CallNode& call) {
    Step step{&call, find_compute(call.op->name), {}, false};
    if (step.compute == nullptr) return unsupported("torch: {}", call.op->name);
    for (const Expr& arg : call.args) {
      const auto* tuple = as<TupleNode>(arg);
      for (const Expr& leaf : tuple != nullptr ? tuple->fields : std::vector<Expr>{arg})
        step.operands.push_back(TRY(operand(leaf)));
    }
    // A vector along the channels is the convolution's own.
    if (call.op->name == "nn.bias_add" && steps_.size() == 1 &&
        steps_[0].call->op->name.starts_with("nn.conv") &&
        step.operands[0].source == Operand::Source::kBefore && call.attrs.integer("axis") == 1) {
      steps_[0].operands.push_back(step.operands[1]);
      steps_[0].adds_bias = true;
      last_ = &call;
      return {};
    }
    last_ = &call;
    steps_.push_back(std::move(step));
    return {};
  }

  Result<Operand> operand(const Expr& leaf) const {
    const auto& params = function_->params;
    if (const auto* constant = as<ConstantNode>(leaf)) {
      const at::Tensor plain = view_of(leaf->tensor_type(), Layout(), constant->value.raw());
      // Copied where its channels are to be last.
      const bool last = plain.dim() == 4 && !variant_.outputs[0].layout.is_plain();
      return Operand{Operand::Source::kConstant, 0,
                     last ? plain.contiguous(at::MemoryFormat::ChannelsLast) : plain};
    }
    if (const auto found = std::find(params.begin(), params.end(), leaf); found != params.end())
      return Operand{Operand::Source::kParameter, static_cast<size_t>(found - params.begin())};
    if (leaf.get() == last_ && leaf->type() == function_->body->type())
      return Operand{Operand::Source::kBefore};
    return unsupported("torch: calls that are no chain");
  }

  // Views of these buffers, unless they are those of the last run.
  void bind(const KernelArgs& args) {
    std::vector<void*> buffers(args.inputs, args.inputs + function_->params.size());
    buffers.push_back(args.outputs[0]);
    if (buffers == bound_) return;
    out_ = view_of(function_->body->tensor_type(), variant_.outputs[0].layout, args.outputs[0]);
    std::vector<at::Tensor> parameters;
    for (size_t i = 0; i < function_->params.size(); ++i)
      parameters.push_back(
          view_of(function_->params[i]->tensor_type(), variant_.inputs[i].layout, args.inputs[i]));
    inputs_.clear();
    for (const Step& step : steps_) {
      std::vector<at::Tensor>& views = inputs_.emplace_back();
      for (const Operand& operand : step.operands)
        views.push_back(operand.source == Operand::Source::kBefore ? out_
                        : operand.source == Operand::Source::kConstant
                            ? operand.constant
                            : parameters[operand.parameter]);
    }
    bound_ = std::move(buffers);
  }

  const Function function_;  // flat; owns the calls and constants of the steps
  const Variant variant_;
  const int threads_;
  std::vector<Step> steps_;
  const CallNode* last_ = nullptr;
  size_t constant_bytes_ = 0;
  std::vector<void*> bound_;  // the buffers that the views are of
  std::vector<std::vector<at::Tensor>> inputs_;
  at::Tensor out_;
};

Result<std::unique_ptr<Kernel>> make_kernel(const Function& function, const Variant& variant,
                                            int threads) {
  try {
    auto kernel = std::make_unique<AtenKernel>(TRY(inline_calls(function)), variant, threads);
    TRY(kernel->read());
    return std::unique_ptr<Kernel>(std::move(kernel));
  } catch (const std::exception& failed) {
    return internal_error("torch: {}", failed.what());
  }
}

}  // namespace

}  // namespace collage::torch_plugin

// Null where the process had another PyTorch already, which libraries of equal names then are.
extern "C" __attribute__((visibility("default"))) collage::torch_plugin::MakeKernel
collage_torch_kernels() {
  const bool is_ours =
      at::show_config().find("TORCH_VERSION=" TORCH_VERSION ",") != std::string::npos;
  return is_ours ? &collage::torch_plugin::make_kernel : nullptr;
}
