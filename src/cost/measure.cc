#include "cost/measure.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "cost/comparison.h"
#include "cost/synthetic.h"
#include "cost/timing.h"
#include "ir/text_parser.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"

namespace collage {

namespace {

// Plain data re-encoded for a kernel's inputs, and back for comparison, by the reference backend's
// conversions.
Result<Tensor> convert(const Tensor& from_tensor, const TensorType& type, const Encoding& from,
                       const Encoding& to, const CompileOptions& options) {
  for (Backend* backend : all_backends()) {
    if (!backend->is_host()) continue;
    std::unique_ptr<Kernel> kernel = TRY(backend->compile_conversion(type, from, to, options));
    Tensor result = TRY(Tensor::allocate(
        DType::kUInt8, {static_cast<int64_t>(to.layout.physical_bytes(type.shape, to.dtype))}));
    Tensor workspace =
        TRY(Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(kernel->workspace_bytes())}));
    void* input = const_cast<void*>(from_tensor.raw());
    void* output = result.raw();
    TRY(kernel->run({&input, &output, workspace.raw()}));
    return result;
  }
  return internal_error("no host backend is registered");
}

Encoding plain(const TensorType& type) { return {type.dtype, Layout(), VirtualDevice()}; }

// The inputs and reference outputs of one function, and the inputs in every encoding asked for so
// far.
class Subject {
 public:
  static Result<Subject> create(const MeasureTask& task) {
    uint64_t seed = 1;
    ParseOptions options;
    options.constant = [&seed](const TensorType& type, size_t) {
      return synthetic_constant(type, seed++);
    };
    Subject subject;
    subject.function_ = TRY(parse_function(task.function_text, options));
    subject.options_ = task.options;
    subject.inputs_ = TRY(synthetic_inputs(subject.function_, 7));
    Function flat = TRY(inline_calls(subject.function_));
    subject.expected_ = TRY(interpret(flat, subject.inputs_));
    subject.leaves_ = subject.function_->result_type().leaves();
    return subject;
  }
  const Function& function() const { return function_; }

  Result<Tensor> input(size_t index, const Encoding& encoding) {
    auto [it, inserted] = encoded_.try_emplace({index, encoding.to_string()});
    if (inserted) {
      const TensorType& type = function_->params[index]->tensor_type();
      it->second = encoding == plain(type)
                       ? inputs_[index]
                       : TRY(convert(inputs_[index], type, plain(type), encoding, options_));
    }
    return it->second;
  }

  // Whether the kernel's raw outputs agree with the reference; the reason when not.
  Status check_outputs(const Variant& variant, const std::vector<Tensor>& outputs) const {
    Tolerance tolerance = candidate_tolerance(function_, variant.relaxed);
    for (size_t i = 0; i < leaves_.size(); ++i) {
      Encoding own = plain(leaves_[i]);
      Tensor actual = variant.outputs[i] == own
                          ? outputs[i]
                          : TRY(convert(outputs[i], leaves_[i], variant.outputs[i], own, options_));
      Tensor typed = Tensor::borrow(leaves_[i].dtype, leaves_[i].shape, actual.raw());
      Difference difference = compare_tensors(typed, expected_[i], tolerance);
      if (!difference.within)
        return error(ErrorCode::kVerification, "wrong result: output {} {}", i, difference.reason);
    }
    return {};
  }
  const std::vector<TensorType>& leaves() const { return leaves_; }

 private:
  Function function_;
  CompileOptions options_;
  std::vector<Tensor> inputs_, expected_;
  std::vector<TensorType> leaves_;
  std::map<std::pair<size_t, std::string>, Tensor> encoded_;
};

struct Candidate {
  std::unique_ptr<Kernel> kernel;
  std::vector<Tensor> inputs, outputs;
  Tensor workspace;
  MeasuredVariant* result;  // where its cost goes
};

Status run_parked(Kernel& kernel, const KernelArgs& args, ThreadTeam& team) {
  if (kernel.thread_use() != ThreadUse::kOwnPool) return kernel.run(args);
  Status status;
  team.park([&] { status = kernel.run(args); });
  return status;
}

// Compiles, runs once and verifies one variant. A failure is the variant's, with its reason.
Result<Candidate> prepare(Subject& subject, Backend& backend, const Target& target,
                          MeasuredVariant& row, const CompileOptions& options, ThreadTeam& team) {
  const Variant& variant = row.variant;
  if (variant.inputs.size() != subject.function()->params.size() ||
      variant.outputs.size() != subject.leaves().size())
    return internal_error("variant has {} inputs and {} outputs", variant.inputs.size(),
                          variant.outputs.size());
  Candidate candidate;
  candidate.result = &row;
  candidate.kernel = TRY(backend.compile(subject.function(), variant, target, options));
  std::vector<void*> inputs, outputs;
  for (size_t i = 0; i < variant.inputs.size(); ++i) {
    candidate.inputs.push_back(TRY(subject.input(i, variant.inputs[i])));
    inputs.push_back(candidate.inputs.back().raw());
  }
  for (size_t i = 0; i < variant.outputs.size(); ++i) {
    const Encoding& e = variant.outputs[i];
    size_t bytes = e.layout.physical_bytes(subject.leaves()[i].shape, e.dtype);
    candidate.outputs.push_back(
        TRY(Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(bytes)})));
    std::memset(candidate.outputs.back().raw(), 0x7f, bytes);  // not a plausible result
    outputs.push_back(candidate.outputs.back().raw());
  }
  candidate.workspace = TRY(
      Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(candidate.kernel->workspace_bytes())}));
  TRY(run_parked(*candidate.kernel, {inputs.data(), outputs.data(), candidate.workspace.raw()},
                 team));
  TRY(subject.check_outputs(variant, candidate.outputs));
  return candidate;
}

Status time_candidates(std::vector<Candidate>& candidates, ThreadTeam& team) {
  std::vector<TimedKernel> timed;
  for (Candidate& candidate : candidates) {
    TimedKernel t;
    t.kernel = candidate.kernel.get();
    for (Tensor& tensor : candidate.inputs) {
      t.inputs.push_back(tensor.raw());
      t.input_bytes.push_back(tensor.bytes());
    }
    for (Tensor& tensor : candidate.outputs) t.outputs.push_back(tensor.raw());
    t.workspace = candidate.workspace.raw();
    timed.push_back(std::move(t));
  }
  std::vector<Measured> results = TRY(time_kernels(timed, team, TimingOptions()));
  for (size_t i = 0; i < candidates.size(); ++i) candidates[i].result->cost = results[i];
  return {};
}

}  // namespace

Result<std::vector<TargetCosts>> measure_function(const MeasureTask& task,
                                                  const Announce& announce) {
  announce("preparing");
  ThreadTeam team(task.options.threads);
  Subject subject = TRY(Subject::create(task));
  std::vector<TargetCosts> results;
  for (const std::string& text : task.targets) {
    TargetCosts& entry = results.emplace_back();
    entry.target = text;
    if (task.skip.count(text) != 0) {
      entry.refusal = "crashed while enumerating variants";
      continue;
    }
    Target target = TRY(Target::parse(text));
    Backend* backend = find_backend(target.kind);
    if (backend == nullptr) {
      entry.refusal = "backend is not available";
      continue;
    }
    announce(text);
    Result<std::vector<Variant>> variants =
        backend->variants(subject.function(), target, task.options);
    if (!variants) {
      entry.refusal = variants.status().to_string();
      continue;
    }
    if (variants->empty()) entry.refusal = "no variants";
    for (Variant& variant : *variants) entry.variants.push_back({std::move(variant), Unknown{}});
  }
  std::vector<Candidate> candidates;
  for (TargetCosts& entry : results) {
    Target target = TRY(Target::parse(entry.target));
    for (MeasuredVariant& row : entry.variants) {
      std::string name = entry.target + "|" + row.variant.to_string();
      if (task.skip.count(name) != 0) {
        row.cost = Invalid{"crashed or hung"};
        continue;
      }
      announce(name);
      Result<Candidate> candidate =
          prepare(subject, *find_backend(target.kind), target, row, task.options, team);
      if (candidate) {
        candidates.push_back(std::move(candidate).value());
      } else {
        row.cost = Invalid{candidate.status().to_string()};
      }
    }
  }
  announce("timing");
  TRY(time_candidates(candidates, team));
  return results;
}

Result<std::vector<TargetCosts>> measure_conversion(const MeasureTask& task,
                                                    const Announce& announce) {
  announce("preparing");
  ThreadTeam team(task.options.threads);
  Tensor source = TRY(synthetic_constant(task.type, 3));
  Tensor input = TRY(convert(source, task.type, plain(task.type), task.from, task.options));
  std::vector<TargetCosts> results;
  std::vector<Candidate> candidates;
  results.reserve(task.targets.size());
  for (const std::string& name : task.targets) {
    TargetCosts& entry = results.emplace_back();
    entry.target = name;
    entry.variants.push_back({{"convert", {task.from}, {task.to}, false}, Unknown{}});
    Backend* backend = find_backend(name);
    if (backend == nullptr || task.skip.count(name) != 0) {
      entry.refusal = backend == nullptr ? "backend is not available" : "crashed or hung";
      continue;
    }
    announce(name);
    Candidate candidate;
    Result<std::unique_ptr<Kernel>> kernel =
        backend->compile_conversion(task.type, task.from, task.to, task.options);
    if (!kernel) {
      entry.refusal = kernel.status().to_string();
      continue;
    }
    candidate.kernel = std::move(kernel).value();
    candidate.result = &entry.variants[0];
    candidate.inputs = {input};
    size_t bytes = task.to.layout.physical_bytes(task.type.shape, task.to.dtype);
    candidate.outputs = {TRY(Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(bytes)}))};
    candidate.workspace = TRY(Tensor::allocate(
        DType::kUInt8, {static_cast<int64_t>(candidate.kernel->workspace_bytes())}));
    void* in = input.raw();
    void* out = candidate.outputs[0].raw();
    Status status = run_parked(*candidate.kernel, {&in, &out, candidate.workspace.raw()}, team);
    if (status.ok()) {
      Tensor back =
          TRY(convert(candidate.outputs[0], task.type, task.to, plain(task.type), task.options));
      bool same = std::memcmp(back.raw(), source.raw(), source.bytes()) == 0;
      if (!same && task.from.dtype == task.to.dtype)
        status = error(ErrorCode::kVerification, "wrong result");
    }
    if (!status.ok()) {
      entry.variants[0].cost = Invalid{status.to_string()};
      continue;
    }
    candidates.push_back(std::move(candidate));
  }
  TRY(time_candidates(candidates, team));
  return results;
}

}  // namespace collage
