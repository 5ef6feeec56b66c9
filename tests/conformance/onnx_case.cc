#include "conformance/onnx_case.h"

#include <onnx/onnx-ml.pb.h>

#include <cmath>
#include <fstream>
#include <set>
#include <vector>

#include "conformance/staged_case.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor_data.h"
#include "ops/interpreter.h"
#include "passes/passes.h"

namespace collage {

namespace {

struct Near {
  double relative, absolute;
};

// As imported, node by node. Half precision: four roundings.
Near as_imported(DType dtype) {
  if (dtype == DType::kBFloat16) return {4.0 / 256, 1e-5};
  return {dtype == DType::kFloat16 ? 4.0 / 2048 : 1e-3, 1e-5};
}

// As it is run, simplified: what the suite itself asks for, but for bfloat16, which it computes in
// other steps.
Near as_run(DType dtype) {
  return dtype == DType::kBFloat16 ? as_imported(dtype) : Near{1e-3, 1e-7};
}

Result<Tensor> read_tensor(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  ::onnx::TensorProto proto;
  if (!proto.ParseFromIstream(&stream)) return bad_model("{} is no tensor", file.string());
  frontend::TensorData data(file.parent_path());
  return data.take(proto);
}

Result<std::vector<Tensor>> read_tensors(const std::filesystem::path& folder, const char* stem) {
  std::vector<Tensor> tensors;
  for (int i = 0;; ++i) {
    std::filesystem::path file = folder / fmt::format("{}_{}.pb", stem, i);
    if (!std::filesystem::exists(file)) return tensors;
    tensors.push_back(TRY(read_tensor(file)));
  }
}

Tensor as_bfloat16(const Tensor& tensor) {
  if (tensor.dtype() != DType::kUInt16) return tensor;
  auto owner = std::make_shared<Tensor>(tensor);
  void* data = owner->raw();
  return Tensor::share(DType::kBFloat16, tensor.shape(), std::move(owner), data);
}

bool near(double value, double expected, Near tolerance) {
  if (std::isnan(value) || std::isnan(expected)) return std::isnan(value) && std::isnan(expected);
  if (value == expected) return true;
  if (!std::isfinite(expected)) return false;
  return std::abs(value - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

// Empty when they agree.
std::string difference(const Tensor& value, const Tensor& expected, Near tolerance) {
  if (value.dtype() != expected.dtype())
    return fmt::format("{} instead of {}", dtype_name(value.dtype()), dtype_name(expected.dtype()));
  if (value.shape() != expected.shape())
    return fmt::format("shape {} instead of {}", shape_to_string(value.shape()),
                       shape_to_string(expected.shape()));
  for (int64_t i = 0; i < value.size(); ++i) {
    const double got = value.element_as_double(i), want = expected.element_as_double(i);
    const bool same = is_float(value.dtype())
                          ? near(got, want, tolerance)
                          : value.element_as_int64(i) == expected.element_as_int64(i);
    if (!same) return fmt::format("element {} is {} instead of {}", i, got, want);
  }
  return "";
}

// What is wrong with these outputs; empty when nothing is.
std::string compare(const Result<std::vector<Tensor>>& outputs, const std::vector<Tensor>& expected,
                    Near (*tolerance)(DType)) {
  if (!outputs) return outputs.status().to_string();
  if (outputs->size() != expected.size())
    return fmt::format("{} outputs instead of {}", outputs->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const DType dtype = (*outputs)[i].dtype();
    const Tensor want = dtype == DType::kBFloat16 ? as_bfloat16(expected[i]) : expected[i];
    std::string problem = difference((*outputs)[i], want, tolerance(dtype));
    if (!problem.empty()) return fmt::format("output {}: {}", i, problem);
  }
  return "";
}

// What is wrong with an imported module; empty when nothing is. It may change the module.
using Check = std::function<std::string(Module& module, const std::vector<Tensor>& arguments,
                                        const std::vector<Tensor>& expected)>;

std::string check_by_interpreter(Module& module, const std::vector<Tensor>& arguments,
                                 const std::vector<Tensor>& expected) {
  std::string problem = compare(interpret(module.main(), arguments), expected, as_imported);
  if (!problem.empty()) return problem;
  if (const auto simplified = simplification_pipeline().run(module); !simplified)
    return "simplifying: " + simplified.status().to_string();
  problem = compare(interpret(module.main(), arguments), expected, as_run);
  return problem.empty() ? "" : "simplified: " + problem;
}

// Imports with the inputs from number `first_constant` on fixed, and checks.
CaseResult attempt(const std::filesystem::path& folder, const std::vector<std::string>& names,
                   const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected,
                   size_t first_constant, const Check& check) {
  ImportOptions options;
  std::vector<Tensor> arguments;
  for (size_t i = 0; i < inputs.size() && i < names.size(); ++i) {
    if (i >= first_constant) {
      options.constants[names[i]] = inputs[i];
    } else {
      options.shapes[names[i]] = inputs[i].shape();
      arguments.push_back(inputs[i]);
    }
  }
  std::vector<UnsupportedNode> refused;
  Result<ImportedModel> model = import_onnx(folder / "model.onnx", options, &refused);
  if (!model) {
    if (model.status().code() != ErrorCode::kUnsupported)
      return {Outcome::kFail, model.status().message()};
    if (refused.empty()) return {Outcome::kUnsupported, model.status().message()};
    std::set<std::string> reasons;
    for (const UnsupportedNode& node : refused) reasons.insert(node.op + ": " + node.reason);
    std::string text;
    for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
    return {Outcome::kUnsupported, text};
  }
  std::string problem = check(model->module, arguments, expected);
  if (!problem.empty()) return {Outcome::kFail, std::move(problem)};
  return {first_constant < inputs.size() ? Outcome::kConstant : Outcome::kPass, ""};
}

// The same in stages; unsupported where that does not help either.
CaseResult attempt_in_stages(const std::filesystem::path& folder, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& expected, const Compute& compute,
                             const std::string& reason) {
  Result<std::vector<Tensor>> outputs = run_in_stages(folder / "model.onnx", inputs, compute);
  if (!outputs && outputs.status().code() == ErrorCode::kUnsupported)
    return {Outcome::kUnsupported, reason};
  std::string problem = compare(std::move(outputs), expected, as_imported);
  if (!problem.empty()) return {Outcome::kFail, "in stages: " + problem};
  return {Outcome::kStages, ""};
}

CaseResult run_case(const std::filesystem::path& folder, const Check& check,
                    const Compute& compute_stage) {
  Result<ModelSummary> summary = inspect_onnx(folder / "model.onnx");
  if (!summary)
    return {
        summary.status().code() == ErrorCode::kUnsupported ? Outcome::kUnsupported : Outcome::kFail,
        summary.status().message()};
  std::vector<std::string> names;
  std::vector<DType> dtypes;
  for (const ModelInput& input : summary->inputs) {
    names.push_back(input.name);
    dtypes.push_back(input.dtype);
  }
  CaseResult result{Outcome::kFail, "no test data"};
  for (int set = 0;; ++set) {
    const std::filesystem::path data = folder / fmt::format("test_data_set_{}", set);
    if (!std::filesystem::exists(data)) return result;
    Result<std::vector<Tensor>> inputs = read_tensors(data, "input");
    Result<std::vector<Tensor>> outputs = read_tensors(data, "output");
    const bool readable = inputs.ok() && outputs.ok();
    // The suite keeps bfloat16 data as uint16 tensors.
    for (size_t i = 0; readable && i < inputs->size() && i < dtypes.size(); ++i)
      if (dtypes[i] == DType::kBFloat16) (*inputs)[i] = as_bfloat16((*inputs)[i]);
    const std::vector<Tensor> none;
    result = attempt(folder, names, readable ? *inputs : none, readable ? *outputs : none,
                     readable ? inputs->size() : 0, check);
    if (!readable && result.outcome != Outcome::kUnsupported)
      return {Outcome::kFail, (inputs.ok() ? outputs.status() : inputs.status()).message()};
    // Inputs that decide shapes must be known: all but the first, then all.
    const std::string reason = result.reason;
    for (size_t first : {size_t{1}, size_t{0}})
      if (readable && result.outcome == Outcome::kUnsupported && first < inputs->size())
        result = attempt(folder, names, *inputs, *outputs, first, check);
    if (readable && result.outcome == Outcome::kUnsupported)
      result = attempt_in_stages(folder, *inputs, *outputs, compute_stage, reason);
    if (result.outcome == Outcome::kFail || result.outcome == Outcome::kUnsupported) return result;
  }
}

}  // namespace

const char* outcome_name(Outcome outcome) {
  static constexpr const char* kNames[] = {"pass", "constant", "stages", "unsupported", "fail"};
  return kNames[static_cast<size_t>(outcome)];
}

CaseResult run_onnx_case(const std::filesystem::path& folder) {
  return run_case(folder, check_by_interpreter,
                  [](const Module& stage, const std::vector<Tensor>& inputs) {
                    return interpret(stage.main(), inputs);
                  });
}

CaseResult run_onnx_case(const std::filesystem::path& folder, const Compute& compute) {
  return run_case(
      folder,
      [&](Module& module, const std::vector<Tensor>& arguments,
          const std::vector<Tensor>& expected) -> std::string {
        if (const auto simplified = simplification_pipeline().run(module); !simplified)
          return "simplifying: " + simplified.status().to_string();
        return compare(compute(module, arguments), expected, as_run);
      },
      [&](const Module& stage, const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
        Module simplified = stage;
        TRY(simplification_pipeline().run(simplified));
        return compute(simplified, inputs);
      });
}

}  // namespace collage
