#include "tensor_program/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "ops/half.h"
#include "runtime/dispatch.h"
#include "tensor_program/external.h"
#include "tensor_program/symbols.h"

namespace collage::tensor_program {
namespace {

/// Reals in one, all else in the other.
struct Value {
  double real = 0;
  int64_t integer = 0;
};

struct Array {
  Tensor tensor;
  Shape shape;
};
using Arrays = std::unordered_map<std::string, Array>;

Value element(const Tensor& tensor, int64_t at) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return {static_cast<double>(tensor.data<float>()[at]), 0};
    case DType::kInt32:
      return {0, tensor.data<int32_t>()[at]};
    default:
      return is_float(tensor.dtype()) ? Value{tensor.element_as_double(at), 0}
                                      : Value{0, tensor.element_as_int64(at)};
  }
}

Status store(Tensor& tensor, int64_t at, const Value& value) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      tensor.data<float>()[at] = static_cast<float>(value.real);
      return {};
    case DType::kFloat64:
      tensor.data<double>()[at] = value.real;
      return {};
    case DType::kFloat16:
    case DType::kBFloat16:
      tensor.data<uint16_t>()[at] = float_to_half(static_cast<float>(value.real), tensor.dtype());
      return {};
    case DType::kBool:
      tensor.data<bool>()[at] = value.integer != 0;
      return {};
    default:
      dispatch_integer(tensor.dtype(), [&]<typename T>(Tag<T>) {
        tensor.data<T>()[at] = static_cast<T>(value.integer);
      });
      return {};
  }
}

/// As integers of the type wrap around.
int64_t wrapped(int64_t value, DType dtype) {
  return dispatch_integer(
      dtype, [&]<typename T>(Tag<T>) { return static_cast<int64_t>(static_cast<T>(value)); });
}

double rounded(double value, DType dtype) {
  if (dtype == DType::kFloat64) return value;
  auto single = static_cast<float>(value);
  if (is_half(dtype)) single = half_to_float(float_to_half(single, dtype), dtype);
  return static_cast<double>(single);
}

double real_function(TermOp op, double x) {
  switch (op) {
    case TermOp::kExp:
      return std::exp(x);
    case TermOp::kLog:
      return std::log(x);
    case TermOp::kSqrt:
      return std::sqrt(x);
    case TermOp::kErf:
      return std::erf(x);
    case TermOp::kAbs:
      return std::abs(x);
    case TermOp::kCeil:
      return std::ceil(x);
    case TermOp::kFloor:
      return std::floor(x);
    case TermOp::kRound:
      return std::nearbyint(x);
    case TermOp::kTrunc:
      return std::trunc(x);
    case TermOp::kSin:
      return std::sin(x);
    case TermOp::kCos:
      return std::cos(x);
    case TermOp::kTanh:
      return std::tanh(x);
    default:
      return x;
  }
}

/// Sums, differences and products of integers wrap around.
int64_t wrapping(TermOp op, int64_t a, int64_t b) {
  const auto u = static_cast<uint64_t>(a), v = static_cast<uint64_t>(b);
  const uint64_t result = op == TermOp::kAdd ? u + v : op == TermOp::kSubtract ? u - v : u * v;
  return static_cast<int64_t>(result);
}

/// The terms of one definition as a list of steps, each computed once a point.
class Code {
 public:
  Code(const Arrays& arrays, std::vector<std::string> variables)
      : arrays_(arrays), variables_(std::move(variables)) {}

  /// The register that will hold the term.
  size_t add(const Term& term) {
    if (auto found = registers_.find(term.get()); found != registers_.end()) return found->second;
    Step step{term, {}, nullptr, 0};
    for (const Term& arg : term->args) step.args.push_back(add(arg));
    if (term->op == TermOp::kLoad) step.array = &arrays_.at(term->name);
    if (term->op == TermOp::kVar)
      step.variable = static_cast<size_t>(
          std::find(variables_.begin(), variables_.end(), term->name) - variables_.begin());
    steps_.push_back(std::move(step));
    values_.emplace_back();
    return registers_[term.get()] = steps_.size() - 1;
  }

  Status run(const std::vector<int64_t>& variables) {
    for (size_t i = 0; i < steps_.size(); ++i) values_[i] = compute(steps_[i], variables);
    return failed_.ok() ? Status() : failed_;
  }
  const Value& value(size_t at) const { return values_[at]; }

 private:
  struct Step {
    Term term;
    std::vector<size_t> args;
    const Array* array;
    size_t variable;
  };

  Value compute(const Step& step, const std::vector<int64_t>& variables) {
    const TermNode& term = *step.term.get();
    const auto arg = [&](size_t i) -> const Value& { return values_[step.args[i]]; };
    switch (term.op) {
      case TermOp::kConstant:
        return Value{term.real, term.integer};
      case TermOp::kVar:
        return Value{0, variables[step.variable]};
      case TermOp::kLoad: {
        int64_t offset = 0;
        for (size_t d = 0; d < step.args.size(); ++d) {
          const int64_t index = arg(d).integer, extent = step.array->shape[d];
          if (index < 0 || index >= extent) {
            failed_ = internal_error("tensor program: index {} of {} in dimension {} of {}", index,
                                     extent, d, term.name);
            return {};
          }
          offset = offset * extent + index;
        }
        return element(step.array->tensor, offset);
      }
      case TermOp::kSelect:
        return arg(0).integer != 0 ? arg(1) : arg(2);
      case TermOp::kLikely:
        return arg(0);
      case TermOp::kCast:
        return converted(arg(0), term.args[0].dtype(), term.dtype);
      default:
        break;
    }
    const bool real = is_float(term.args[0].dtype());
    const Value& a = arg(0);
    const Value& b = term.args.size() > 1 ? arg(1) : a;
    if (term.dtype == DType::kBool) {
      const auto truth = [](bool holds) { return Value{0, holds ? 1 : 0}; };
      switch (term.op) {
        case TermOp::kEqual:
          return truth(real ? a.real == b.real : a.integer == b.integer);
        case TermOp::kNotEqual:
          return truth(real ? a.real != b.real : a.integer != b.integer);
        case TermOp::kLess:
          return truth(real ? a.real < b.real : a.integer < b.integer);
        case TermOp::kLessEqual:
          return truth(real ? a.real <= b.real : a.integer <= b.integer);
        case TermOp::kGreater:
          return truth(real ? a.real > b.real : a.integer > b.integer);
        case TermOp::kGreaterEqual:
          return truth(real ? a.real >= b.real : a.integer >= b.integer);
        case TermOp::kAnd:
          return truth(a.integer != 0 && b.integer != 0);
        case TermOp::kOr:
          return truth(a.integer != 0 || b.integer != 0);
        case TermOp::kIsNan:
          return truth(std::isnan(a.real));
        default:
          return truth(a.integer == 0);
      }
    }
    Value result;
    if (real) {
      result.real = rounded(real_operation(term.op, a.real, b.real), term.dtype);
      return result;
    }
    return converted({0, integer_operation(term.op, a.integer, b.integer)}, DType::kInt64,
                     term.dtype);
  }

  static double real_operation(TermOp op, double a, double b) {
    switch (op) {
      case TermOp::kAdd:
        return a + b;
      case TermOp::kSubtract:
        return a - b;
      case TermOp::kMultiply:
        return a * b;
      case TermOp::kDivide:
      case TermOp::kQuotient:
        return a / b;
      case TermOp::kMin:
        return std::min(a, b);
      case TermOp::kMax:
        return std::max(a, b);
      case TermOp::kNegate:
        return -a;
      case TermOp::kPower:
        return std::pow(a, b);
      default:
        return real_function(op, a);
    }
  }

  static int64_t integer_operation(TermOp op, int64_t a, int64_t b) {
    switch (op) {
      case TermOp::kAdd:
      case TermOp::kSubtract:
      case TermOp::kMultiply:
        return wrapping(op, a, b);
      case TermOp::kNegate:
        return wrapping(TermOp::kSubtract, 0, a);
      case TermOp::kAbs:
        return a < 0 ? wrapping(TermOp::kSubtract, 0, a) : a;
      case TermOp::kMin:
        return std::min(a, b);
      case TermOp::kMax:
        return std::max(a, b);
      case TermOp::kDivide:
        if (b == 0) return 0;
        return b == -1 ? wrapping(TermOp::kSubtract, 0, a) : floor_div(a, b);
      case TermOp::kModulo:
        return b == 0 || b == -1 ? 0 : floor_mod(a, b);
      default:
        return a;
    }
  }

  static Value converted(const Value& value, DType from, DType to) {
    if (is_float(to)) {
      const double real = is_float(from) ? value.real : static_cast<double>(value.integer);
      return {rounded(real, to), 0};
    }
    const int64_t integer = is_float(from) ? integer_of(value.real, to) : value.integer;
    if (to == DType::kBool) return {0, integer != 0};
    return {0, wrapped(integer, to)};
  }

  const Arrays& arrays_;
  std::vector<std::string> variables_;
  std::vector<Step> steps_;
  std::vector<Value> values_;
  std::unordered_map<const TermNode*, size_t> registers_;
  Status failed_;  // of a load
};

/// Calls body(indices) for every point, the last axis running fastest; of the first one, from
/// `first` to before `last`.
Status for_each_point(const std::vector<int64_t>& extents, int64_t first, int64_t last,
                      const std::function<Status(const std::vector<int64_t>&)>& body) {
  std::vector<int64_t> at(extents.size(), 0);
  if (!at.empty()) at[0] = first;
  for (;;) {
    TRY(body(at));
    size_t d = extents.size();
    while (d > 0 && ++at[d - 1] == (d == 1 ? last : extents[d - 1])) at[--d] = 0;
    if (d == 0) return {};
  }
}

/// What is there, combined with one more value.
Value combined_value(Combine combine, DType dtype, const Value& old, const Value& next) {
  const bool less = is_float(dtype) ? next.real < old.real : next.integer < old.integer;
  switch (combine) {
    case Combine::kSet:
      return next;
    case Combine::kSum:
      return {old.real + next.real, wrapping(TermOp::kAdd, old.integer, next.integer)};
    case Combine::kProduct:
      return {old.real * next.real, wrapping(TermOp::kMultiply, old.integer, next.integer)};
    case Combine::kMax:
      return less ? old : next;
    case Combine::kMin:
      return less ? next : old;
  }
  return next;
}

constexpr int64_t kFewPoints = 4096;  // not worth a team of threads
constexpr int64_t kParts = 64;

/// Runs an update of the stage; or sets its value, an update of every point.
Status run_update(const Arrays& arrays, const Stage& stage, const Update& update, Tensor& to) {
  std::vector<std::string> names;
  std::vector<int64_t> extents;
  int64_t points = 1;
  for (const Axis& axis : walked_axes(stage, update)) {
    names.push_back(axis.name);
    extents.push_back(axis.extent);
    points *= axis.extent;
  }
  const Shape shape = stage.shape();
  const auto run = [&](int64_t first, int64_t last) -> Status {
    Code code(arrays, names);
    std::vector<size_t> at;
    for (const Term& term : update.at) at.push_back(code.add(term));
    const size_t result = code.add(update.value);
    return for_each_point(extents, first, last, [&](const std::vector<int64_t>& point) -> Status {
      TRY(code.run(point));
      int64_t offset = 0;
      for (size_t d = 0; d < at.size(); ++d) {
        const int64_t i = code.value(at[d]).integer;
        if (i < 0 || i >= shape[d])
          return internal_error("tensor program: {} is written at {} of {}", stage.name, i,
                                shape[d]);
        offset = offset * shape[d] + i;
      }
      const Value& next = code.value(result);
      if (update.combine == Combine::kSet) return store(to, offset, next);
      const Value old = element(to, offset);
      return store(to, offset, combined_value(update.combine, to.dtype(), old, next));
    });
  };
  const int64_t rows = extents.empty() ? 1 : extents[0];
  // Rows write elements of their own, and of its own stage an update reads what it writes alone.
  const bool apart = !update.at.empty() && same(update.at[0], var(stage.axes[0].name));
  if (!apart || points < kFewPoints) return run(0, rows);
  const int64_t parts = std::min(rows, kParts);
  Status failed;
#pragma omp parallel for schedule(dynamic)
  for (int64_t part = 0; part < parts; ++part) {
    Status done = run(part * rows / parts, (part + 1) * rows / parts);
#pragma omp critical(collage_evaluate)
    if (!done.ok()) failed = std::move(done);
  }
  return failed;
}

Status run_external(const Arrays& arrays, const Stage& stage, Tensor& to) {
  const ExternalFunction* function = find_external(stage.external.label);
  if (function == nullptr)
    return error(ErrorCode::kUnavailable, "tensor program: no external function '{}'",
                 stage.external.label);
  std::vector<TensorType> types;
  std::vector<DLTensor> inputs;
  for (const std::string& name : stage.external.inputs) {
    const Array& array = arrays.at(name);
    types.push_back({array.shape, array.tensor.dtype()});
    inputs.push_back(
        dl_tensor(array.tensor.dtype(), array.shape, const_cast<void*>(array.tensor.raw())));
  }
  const TensorType type = TRY(result_type(*function, types));
  if (type.shape != to.shape() || type.dtype != to.dtype())
    return bad_model("tensor program: {} gives a {}, not a {}", stage.external.label,
                     type.to_string(), TensorType{to.shape(), to.dtype()}.to_string());
  const DLTensor result = dl_tensor(to.dtype(), to.shape(), to.raw());
  return call_external(*function, inputs, {&result, 1});
}

Status run_stage(const Arrays& arrays, const Stage& stage, Tensor& to) {
  if (!stage.external.label.empty()) {
    TRY(run_external(arrays, stage, to));
  } else if (stage.value.defined() || stage.updates[0].combine != Combine::kSet) {
    const Term first =
        stage.value.defined() ? stage.value : neutral(stage.updates[0].combine, stage.dtype);
    TRY(run_update(arrays, stage, {stage.indices(), {}, Combine::kSet, first}, to));
  } else {
    std::memset(to.raw(), 0, to.bytes());
  }
  for (const Update& update : stage.updates) TRY(run_update(arrays, stage, update, to));
  return {};
}

}  // namespace

Result<std::vector<Tensor>> evaluate(const Program& program, std::span<const Tensor> params) {
  TRY(verify(program));
  if (!program.symbols.empty()) return evaluate(without_symbols(program), params);
  Arrays arrays;
  size_t next = 0;
  for (const Buffer& buffer : program.buffers) {
    Tensor value = buffer.value;
    if (!buffer.is_constant) {
      if (next >= params.size()) return usage_error("tensor program: no value for {}", buffer.name);
      value = params[next++];
    }
    if (!value.defined() || value.size() != num_elements(buffer.type.shape) ||
        value.dtype() != buffer.type.dtype)
      return usage_error("tensor program: no {} for {}", buffer.type.to_string(), buffer.name);
    arrays[buffer.name] = {value, buffer.type.shape};
  }
  std::vector<Tensor> results;
  for (const Stage& stage : program.stages) {
    Tensor to = TRY(Tensor::allocate(stage.dtype, stage.shape()));
    arrays[stage.name] = {to, stage.shape()};  // updates may read it
    TRY(run_stage(arrays, stage, to).with_context("stage " + stage.name));
    if (stage.is_result) results.push_back(to);
  }
  return results;
}

}  // namespace collage::tensor_program
