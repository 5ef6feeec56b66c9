#include "tensor_program/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "ops/counter_random.h"
#include "tensor_program/external.h"
#include "tensor_program/symbols.h"
#include "tensor_program/value.h"

namespace collage::tensor_program {
namespace {

struct Array {
  Tensor tensor;
  Shape shape;
};
using Arrays = std::unordered_map<std::string, Array>;

/// Draws the changes that OperationNoise asks for, one after the other.
class Disturber {
 public:
  Disturber(const OperationNoise& noise, uint64_t stream)
      : noise_(noise), random_(noise.seed ^ mix_bits(stream)) {}

  /// How far an operation's result may move, relative to it.
  double largest(TermOp op, DType dtype) const {
    // Evenly distributed, the largest change is sqrt(3) times the root mean square.
    return noise_.relative && is_float(dtype) ? noise_.relative(op, dtype) * std::sqrt(3.0) : 0;
  }
  double operator()(double value, double largest) {
    return largest == 0 ? value : value + value * largest * (2 * random_.uniform(drawn_++) - 1);
  }

 private:
  const OperationNoise& noise_;
  RandomStream random_;
  uint64_t drawn_ = 0;
};

/// The terms of one definition as a list of steps, each computed once a point.
class Code {
 public:
  Code(const Arrays& arrays, std::vector<std::string> variables, Disturber& disturbed)
      : arrays_(arrays), variables_(std::move(variables)), disturbed_(disturbed) {}

  /// The register that will hold the term.
  size_t add(const Term& term) {
    if (auto found = registers_.find(term.get()); found != registers_.end()) return found->second;
    Step step{term, {}, nullptr, 0, disturbed_.largest(term->op, term.dtype())};
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
    double noise;  // of the result, at most, relative to it
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
    if (term.op == TermOp::kBits) return {0, std::bit_cast<int32_t>(static_cast<float>(a.real))};
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
      const double exact = real_operation(term.op, a.real, b.real);
      result.real = rounded(disturbed_(exact, step.noise), term.dtype);
      return result;
    }
    return converted({0, integer_operation(term.op, a.integer, b.integer)}, DType::kInt64,
                     term.dtype);
  }

  const Arrays& arrays_;
  std::vector<std::string> variables_;
  Disturber& disturbed_;
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

constexpr int64_t kFewPoints = 4096;  // not worth a team of threads
constexpr int64_t kParts = 64;

/// Runs an update of the stage; or sets its value, an update of every point.
Status run_update(const Arrays& arrays, const Stage& stage, const Update& update, Tensor& to,
                  const OperationNoise& noise, uint64_t stream) {
  std::vector<std::string> names;
  std::vector<int64_t> extents;
  int64_t points = 1;
  for (const Axis& axis : walked_axes(stage, update)) {
    names.push_back(axis.name);
    extents.push_back(axis.extent);
    points *= axis.extent;
  }
  const Shape shape = stage.shape();
  const TermOp combining = update.combine == Combine::kProduct ? TermOp::kMultiply : TermOp::kAdd;
  const bool adds = update.combine == Combine::kSum || update.combine == Combine::kProduct;
  const auto run = [&](int64_t first, int64_t last) -> Status {
    Disturber disturbed(noise, stream + static_cast<uint64_t>(first));
    const double moves = adds ? disturbed.largest(combining, to.dtype()) : 0;
    Code code(arrays, names, disturbed);
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
      Value combined = combined_value(update.combine, old, next);
      combined.real = disturbed(combined.real, moves);
      return store(to, offset, combined);
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
  const ExternalFunction* function = TRY(require_external(stage.external.label));
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

/// `stream`: of random numbers; those after it, of the next 2^56, are the stage's too.
Status run_stage(const Arrays& arrays, const Stage& stage, Tensor& to, const OperationNoise& noise,
                 uint64_t stream) {
  constexpr uint64_t kOfUpdate = uint64_t{1} << 40;
  if (!stage.external.label.empty()) {
    TRY(run_external(arrays, stage, to));
  } else if (stage.value.defined() || stage.updates[0].combine != Combine::kSet) {
    const Term first =
        stage.value.defined() ? stage.value : neutral(stage.updates[0].combine, stage.dtype);
    TRY(run_update(arrays, stage, {stage.indices(), {}, Combine::kSet, first}, to, noise, stream));
  } else {
    std::memset(to.raw(), 0, to.bytes());
  }
  for (const Update& update : stage.updates)
    TRY(run_update(arrays, stage, update, to, noise, stream += kOfUpdate));
  return {};
}

}  // namespace

Result<std::vector<Tensor>> evaluate(const Program& program, std::span<const Tensor> params) {
  return evaluate(program, params, OperationNoise());
}

Result<std::vector<Tensor>> evaluate(const Program& program, std::span<const Tensor> params,
                                     const OperationNoise& noise) {
  constexpr uint64_t kOfStage = uint64_t{1} << 56;
  TRY(verify(program));
  if (!program.symbols.empty()) return evaluate(without_symbols(program), params, noise);
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
  uint64_t stream = 0;
  for (const Stage& stage : program.stages) {
    Tensor to = TRY(Tensor::allocate(stage.dtype, stage.shape()));
    arrays[stage.name] = {to, stage.shape()};  // updates may read it
    TRY(run_stage(arrays, stage, to, noise, stream).with_context("stage " + stage.name));
    stream += kOfStage;
    if (stage.is_result) results.push_back(to);
  }
  return results;
}

}  // namespace collage::tensor_program
