#include "backend/reference/kernels/interpreted_kernel.h"

#include <cstring>
#include <unordered_map>

#include "ir/op.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "runtime/saved_fields.h"
#include "runtime/updating_kernel.h"

namespace collage {

namespace {

using nlohmann::json;

constexpr char kFunctionLoader[] = "reference.function";
constexpr char kSideFile[] = "constants";  // no file: the kernel's constants

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

// As text, its larger constants beside it.
Result<SavedKernel> saved_function(const Function& function) {
  std::vector<Tensor> constants;
  PrintOptions options;
  options.constants = PrintOptions::Constants::kSideFile;
  options.side_file = kSideFile;
  options.side_tensors = &constants;
  json description = {{"function", to_text(function, options)}, {"constants", json::array()}};
  SavedKernel saved;
  saved.loader = kFunctionLoader;
  for (const Tensor& constant : constants) {
    description["constants"].push_back(to_json(TensorType{constant.shape(), constant.dtype()}));
    auto holder = std::make_shared<Tensor>(constant);
    saved.constants.push_back({{holder, holder->raw()}, constant.bytes()});
  }
  saved.description = description.dump();
  return saved;
}

// One operator call whose arguments are parameters, constants and tuples of these: no intermediate
// results, so nothing is allocated or copied.
class SingleCallKernel : public UpdatingKernel {
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
  std::vector<Update> updates() const override {
    std::vector<Update> made;
    if (!call_->op->updates) return made;
    size_t output = 0;
    for (const size_t input : call_->op->updates(call_->attrs)) {
      if (!leaves_.at(input).constant.defined()) made.push_back({leaves_[input].param, output});
      ++output;
    }
    return made;
  }
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }
  Result<SavedKernel> save() const override { return saved_function(function_); }

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
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }
  Result<SavedKernel> save() const override { return saved_function(function_); }

 private:
  Function function_;
  std::vector<TensorType> inputs_, outputs_;
  size_t constant_bytes_;
};

Result<std::shared_ptr<Kernel>> load_function(const SavedKernel& saved, int) {
  const json description = TRY(description_object(saved.description));
  const JsonFields fields(description);
  const std::vector<TensorType> types = TRY(tensor_types_from(fields, "constants"));
  if (types.size() != saved.constants.size())
    return bad_model("{} constants, described are {}", saved.constants.size(), types.size());
  std::vector<Tensor> constants;
  for (size_t i = 0; i < types.size(); ++i) {
    const SharedBytes& bytes = saved.constants[i];
    if (types[i].bytes() != bytes.bytes)
      return bad_model("a constant {} of {} bytes", types[i].to_string(), bytes.bytes);
    auto owner = std::const_pointer_cast<void>(bytes.data);
    constants.push_back(Tensor::share(types[i].dtype, types[i].shape, owner, owner.get()));
  }
  ParseOptions options;
  options.side_tensors = &constants;
  const Function function = TRY(parse_function(TRY(fields.text("function")), options));
  TRY(check_interpretable(function));
  const std::vector<TensorType> inputs = param_types(function),
                                outputs = function->result_type().leaves();
  for (size_t i = 0; i < inputs.size(); ++i)
    TRY(saved.buffers.input_holds(i,
                                  TRY(bytes_from(inputs[i].shape, dtype_size(inputs[i].dtype)))));
  for (size_t i = 0; i < outputs.size(); ++i)
    TRY(saved.buffers.output_holds(
        i, TRY(bytes_from(outputs[i].shape, dtype_size(outputs[i].dtype)))));
  return std::shared_ptr<Kernel>(TRY(make_interpreted_kernel(function)));
}

}  // namespace

void register_function_loader() { register_kernel_loader({kFunctionLoader, "1", load_function}); }

Status check_interpretable(const Function& function) {
  for (const Expr& param : function->params)
    if (!param->type().is_tensor())
      return unsupported("reference: a parameter has type {}", param->type().to_string());
  const Function flat = TRY(inline_calls(function));
  for (const Expr& expr : post_order(flat->body)) {
    if (expr->kind() == ExprKind::kFunction)  // of control flow
      TRY(check_interpretable(std::static_pointer_cast<const FunctionNode>(expr)));
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
