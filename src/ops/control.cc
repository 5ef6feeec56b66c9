#include "ops/control.h"

#include <algorithm>
#include <cstring>

#include "base/interrupt.h"
#include "ops/families.h"
#include "runtime/run_number.h"

namespace collage {

namespace {

Status require_scalar(Types args, size_t index, DType dtype, std::string_view what) {
  const TensorType type = TRY(tensor_arg(args, index));
  if (type == TensorType{{}, dtype}) return {};
  return bad_model("{} is a {}, not a scalar of {}", what, type.to_string(), dtype_name(dtype));
}

Result<std::vector<Type>> function_arg(Types args, size_t index, std::string_view what) {
  if (!args[index].is_function())
    return bad_model("{} is a {}, not a function", what, args[index].to_string());
  return args[index].params();
}

Status require_type(const Type& type, const Type& wanted, std::string_view what, size_t index) {
  if (type == wanted) return {};
  return bad_model("{} {} is a {}, not a {}", what, index, type.to_string(), wanted.to_string());
}

Result<Type> infer_if(Types args, const Attrs&) {
  TRY(require_scalar(args, 0, DType::kBool, "the condition"));
  for (const size_t branch : {size_t{1}, size_t{2}}) {
    const std::vector<Type> params = TRY(function_arg(args, branch, "a branch"));
    if (params.size() != args.size() - kFirstOperand)
      return bad_model("a branch of {} parameters for {} arguments", params.size(),
                       args.size() - kFirstOperand);
    for (size_t i = 0; i < params.size(); ++i)
      TRY(require_type(args[i + kFirstOperand], params[i], "argument", i));
  }
  if (!(args[1].result() == args[2].result()))
    return bad_model("its branches give {} and {}", args[1].result().to_string(),
                     args[2].result().to_string());
  return args[1].result();
}

Result<Type> infer_loop(Types args, const Attrs& attrs) {
  TRY(require_scalar(args, 0, DType::kInt64, "the trip count"));
  TRY(require_scalar(args, 1, DType::kBool, "the condition"));
  const std::vector<Type> params = TRY(function_arg(args, kLoopBody, "the body"));
  const size_t operands = args.size() - kFirstOperand;
  const int64_t states = attrs.integer("states"), scanned = attrs.integer("scanned");
  const int64_t rows = attrs.integer("rows");
  const auto count = static_cast<int64_t>(operands);
  if (states < 0 || scanned < 0 || states > count || scanned > count - states)
    return bad_model("{} states and {} scanned tensors of {} operands", states, scanned, operands);
  if (params.size() != operands + 1)
    return bad_model("a body of {} parameters for {} operands", params.size(), operands);
  TRY(require_type(params[0], TensorType{{}, DType::kInt64}, "parameter", 0));
  const Type& body = args[kLoopBody].result();
  if (!body.is_tuple() || body.fields().size() < static_cast<size_t>(states) + 1 ||
      body.fields().size() == 1)
    return bad_model("its body gives a {}, not whether it goes on, {} states and rows",
                     body.to_string(), states);
  TRY(require_type(body.fields()[0], TensorType{{}, DType::kBool}, "result", 0));
  const size_t stacked = body.fields().size() - 1 - static_cast<size_t>(states);
  if ((scanned > 0 || stacked > 0) != (rows >= 0))
    return bad_model("{} rows for {} scanned and {} stacked tensors", rows, scanned, stacked);
  std::vector<Type> results;
  for (size_t i = 0; i < operands; ++i) {
    TensorType type = TRY(tensor_arg(args, kFirstOperand + i));
    const auto position = static_cast<int64_t>(i);
    if (position >= states && position < states + scanned) {
      if (type.shape.empty() || type.shape[0] != rows)
        return bad_model("scanned operand {} is a {}, not of {} rows", i, type.to_string(), rows);
      type.shape.erase(type.shape.begin());
    }
    TRY(require_type(params[i + 1], type, "parameter", i + 1));
    if (position >= states) continue;
    TRY(require_type(body.fields()[i + 1], type, "state", i));
    results.push_back(type);
  }
  for (size_t i = static_cast<size_t>(states) + 1; i < body.fields().size(); ++i) {
    TensorType row = TRY(tensor_arg(body.fields(), i));
    row.shape.insert(row.shape.begin(), rows);
    results.push_back(TRY(tensor_result(row.shape, row.dtype)));
  }
  return Type::tuple(std::move(results));
}

// The interpreter evaluates these calls itself.
Status run_control(std::span<const Tensor>, const Attrs&, std::span<Tensor>) {
  return internal_error("control flow without its functions");
}

// A row of it, which shares its storage.
Tensor row_of(const Tensor& whole, int64_t index) {
  Shape shape(whole.shape().begin() + 1, whole.shape().end());
  auto owner = std::make_shared<Tensor>(whole);
  const size_t bytes = static_cast<size_t>(num_elements(shape)) * dtype_size(whole.dtype());
  void* data = owner->data<uint8_t>() + static_cast<size_t>(index) * bytes;
  return Tensor::share(whole.dtype(), std::move(shape), std::move(owner), data);
}

Function function_of(const CallNode& call, size_t index) {
  return std::static_pointer_cast<const FunctionNode>(call.args[index]);
}

Result<std::vector<Tensor>> evaluate_loop(const CallNode& call, std::span<const Tensor> inputs,
                                          const RunFunction& run) {
  const LoopForm form = loop_form(call);
  const Function body = function_of(call, kLoopBody);
  const int64_t trips = inputs[0].element_as_int64(0);
  int64_t most = form.most(trips);
  if (!has_certain_end(call) && !RunNumber::of_user())
    most = std::min(most, kMostCheckedIterations);
  const auto first = inputs.begin() + 2;
  std::vector<Tensor> results(first, first + static_cast<std::ptrdiff_t>(form.states));
  const auto scanned = first + static_cast<std::ptrdiff_t>(form.states);
  const std::vector<TensorType> types = call.type().leaves();
  for (size_t i = form.states; i < types.size(); ++i)
    results.push_back(Tensor::zeros(types[i].dtype, types[i].shape));
  bool goes_on = inputs[1].element_as_int64(0) != 0;
  const bool stopped = interrupted();
  LoopIteration iteration;
  for (int64_t i = 0; goes_on && i < most; ++i) {
    if (!stopped && interrupted()) return error(ErrorCode::kInternal, "interrupted");
    iteration.begin(static_cast<uint64_t>(i));
    std::vector<Tensor> given = {Tensor::scalar<int64_t>(i)};
    given.insert(given.end(), results.begin(),
                 results.begin() + static_cast<std::ptrdiff_t>(form.states));
    for (size_t k = 0; k < form.scanned; ++k)
      given.push_back(row_of(scanned[static_cast<std::ptrdiff_t>(k)], i));
    given.insert(given.end(), scanned + static_cast<std::ptrdiff_t>(form.scanned), inputs.end());
    std::vector<Tensor> made = TRY(run(body, given));
    goes_on = made[0].element_as_int64(0) != 0;
    for (size_t k = 0; k < form.states; ++k) results[k] = std::move(made[k + 1]);
    for (size_t k = form.states; k < results.size(); ++k)
      if (const Tensor& row = made[k + 1]; row.bytes() > 0)
        std::memcpy(row_of(results[k], i).raw(), row.raw(), row.bytes());
  }
  return results;
}

}  // namespace

bool is_control_op(std::string_view op) { return op == kIfOp || op == kLoopOp; }

bool is_control(const CallNode& call) { return call.op != nullptr && is_control_op(call.op->name); }

bool is_control_flow(const Function& function) {
  const auto* call = as<CallNode>(function->body);
  return call != nullptr && is_control(*call);
}

LoopForm loop_form(const CallNode& call) {
  LoopForm form;
  form.states = static_cast<size_t>(call.attrs.integer("states"));
  form.scanned = static_cast<size_t>(call.attrs.integer("scanned"));
  form.rows = call.attrs.integer("rows");
  return form;
}

// Of so many iterations, or fewer.
bool has_certain_end(const CallNode& loop) {
  constexpr int64_t kMostTrips = int64_t{1} << 31;
  const auto* trips = as<ConstantNode>(loop.args[0]);
  return loop.attrs.integer("rows") >= 0 ||
         (trips != nullptr && trips->value.element_as_int64(0) < kMostTrips);
}

Result<std::vector<Tensor>> evaluate_control(const CallNode& call, std::span<const Tensor> inputs,
                                             const RunFunction& run) {
  if (call.op->name == kLoopOp) return evaluate_loop(call, inputs, run);
  const bool taken = inputs[0].element_as_int64(0) != 0;
  return run(function_of(call, taken ? 1 : 2), inputs.subspan(1));
}

void register_control_ops() {
  OpDef branch = make_op(kIfOp, 3, {}, FusionKind::kOpaque, infer_if, run_control);
  branch.max_args = -1;
  register_op(std::move(branch));
  OpDef loop =
      make_op(kLoopOp, 3, {{"states", int64_t{0}}, {"scanned", int64_t{0}}, {"rows", int64_t{-1}}},
              FusionKind::kOpaque, infer_loop, run_control);
  loop.max_args = -1;
  register_op(std::move(loop));
}

}  // namespace collage
