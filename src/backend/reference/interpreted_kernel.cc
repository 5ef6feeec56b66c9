#include "backend/reference/interpreted_kernel.h"

#include <cstring>
#include <unordered_map>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"

namespace collage {

namespace {

size_t constant_bytes_of(const Expr& body) {
  size_t bytes = 0;
  for (const Expr& expr : post_order(body))
    if (const auto* constant = as<ConstantNode>(expr)) bytes += constant->value.bytes();
  return bytes;
}

std::vector<Tensor> borrow(const std::vector<TensorType>& types, void* const* buffers) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < types.size(); ++i)
    tensors.push_back(Tensor::borrow(types[i].dtype, types[i].shape, buffers[i]));
  return tensors;
}

std::vector<TensorType> param_types(const Function& function) {
  std::vector<TensorType> types;
  for (const Expr& param : function->params) types.push_back(param->tensor_type());
  return types;
}

// One operator call whose arguments are parameters, constants and tuples of these: no intermediate
// results, so nothing is allocated or copied.
class SingleCallKernel : public Kernel {
 public:
  // Null when the function is no such call.
  static std::unique_ptr<Kernel> make(const Function& function) {
    const auto* call = as<CallNode>(function->body);
    if (call == nullptr || call->op == nullptr) return nullptr;
    auto kernel = std::make_unique<SingleCallKernel>();
    kernel->function_ = function;
    kernel->call_ = call;
    kernel->inputs_ = param_types(function);
    kernel->outputs_ = function->result_type().leaves();
    std::unordered_map<const ExprNode*, size_t> index;
    for (const Expr& param : function->params) index[param.get()] = index.size();
    for (const Expr& arg : call->args) {
      const auto* tuple = as<TupleNode>(arg);
      for (const Expr& leaf : tuple != nullptr ? tuple->fields : std::vector<Expr>{arg}) {
        if (const auto* constant = as<ConstantNode>(leaf)) {
          kernel->leaves_.push_back({constant->value, 0});
        } else if (auto it = index.find(leaf.get()); it != index.end()) {
          kernel->leaves_.push_back({Tensor(), it->second});
        } else {
          return nullptr;
        }
      }
    }
    kernel->constant_bytes_ = constant_bytes_of(function->body);
    return kernel;
  }

  Status run(const KernelArgs& args) override {
    std::vector<Tensor> params = borrow(inputs_, args.inputs), flat;
    for (const Leaf& leaf : leaves_)
      flat.push_back(leaf.constant.defined() ? leaf.constant : params[leaf.param]);
    std::vector<Tensor> outputs = borrow(outputs_, args.outputs);
    return call_->op->reference(flat, call_->attrs, outputs);
  }
  size_t constant_bytes() const override { return constant_bytes_; }

 private:
  struct Leaf {
    Tensor constant;  // undefined: parameter `param`
    size_t param;
  };
  Function function_;  // owns call_
  const CallNode* call_ = nullptr;
  std::vector<TensorType> inputs_, outputs_;
  std::vector<Leaf> leaves_;
  size_t constant_bytes_ = 0;
};

class InterpretedKernel : public Kernel {
 public:
  explicit InterpretedKernel(Function function)
      : function_(std::move(function)),
        inputs_(param_types(function_)),
        outputs_(function_->result_type().leaves()),
        constant_bytes_(constant_bytes_of(function_->body)) {}

  Status run(const KernelArgs& args) override {
    std::vector<Tensor> results = TRY(interpret(function_, borrow(inputs_, args.inputs)));
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].bytes() > 0)
        std::memcpy(args.outputs[i], results[i].raw(), results[i].bytes());
    return {};
  }
  size_t constant_bytes() const override { return constant_bytes_; }

 private:
  Function function_;
  std::vector<TensorType> inputs_, outputs_;
  size_t constant_bytes_;
};

}  // namespace

Status check_interpretable(const Function& function) {
  for (const Expr& param : function->params)
    if (!param->type().is_tensor())
      return unsupported("reference: a parameter has type {}", param->type().to_string());
  const Function flat = TRY(inline_calls(function));
  for (const Expr& expr : post_order(flat->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr) continue;
    if (call->op == nullptr) return unsupported("reference: a call of a global function");
    if (!call->op->reference)
      return unsupported("reference: {} has no reference kernel", call->op->name);
  }
  return {};
}

Result<std::unique_ptr<Kernel>> make_interpreted_kernel(const Function& function) {
  const Function flat = TRY(inline_calls(function));
  if (std::unique_ptr<Kernel> single = SingleCallKernel::make(flat)) return single;
  return std::unique_ptr<Kernel>(std::make_unique<InterpretedKernel>(flat));
}

}  // namespace collage
