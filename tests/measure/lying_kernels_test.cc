// Kernels that lie are refused, of every operator, by the check of kernels and by that of whole
// models; alone, and beside the fill of a mask, which is larger than all results by orders of
// magnitude.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "backend/reference/kernels/interpreted_kernel.h"
#include "ir/op.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "lies.h"
#include "measure/trial.h"
#include "networks.h"
#include "ops/cases.h"
#include "ops/interpreter.h"
#include "planted_kernel.h"
#include "verify/reference_check.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

using testing::Lie;

// The smallest case of each operator that has one result of float32.
std::map<std::string, Function> smallest_cases() {
  testing::register_host();
  std::map<std::string, Function> smallest;
  std::map<std::string, int64_t> sizes;
  for (const OpCase& op_case : op_cases()) {
    const Function function = build_case(op_case, 3).value().function;
    if (!function->result_type().is_tensor()) continue;
    const TensorType result = function->result_type().leaves()[0];
    const int64_t size = num_elements(result.shape);
    if (result.dtype != DType::kFloat32 || size < 16 || function->params.empty()) continue;
    if (sizes.count(op_case.op) != 0 && size >= sizes[op_case.op]) continue;
    sizes[op_case.op] = size;
    smallest[op_case.op] = function;
  }
  return smallest;
}

// What the function computes where a mask holds, and a large number elsewhere.
Function masked(const Function& function, float fill) {
  const TensorType type = function->result_type().leaves()[0];
  Tensor mask = Tensor::zeros(DType::kBool, type.shape);
  for (int64_t i = 0; i < mask.size(); ++i)
    static_cast<uint8_t*>(mask.raw())[i] = static_cast<uint8_t>(i % 3 != 0);
  Tensor fills = Tensor::empty(DType::kFloat32, type.shape);
  for (int64_t i = 0; i < fills.size(); ++i) fills.data<float>()[i] = fill;
  return make_function(
      function->params,
      make_call("where", {make_constant(mask), function->body, make_constant(fills)}).value());
}

// The smallest case of each other operator: of several results, of integers, of bools.
std::map<std::string, Function> smallest_other_cases() {
  testing::register_host();
  std::map<std::string, Function> smallest;
  std::map<std::string, int64_t> sizes;
  for (const OpCase& op_case : op_cases()) {
    const Function function = build_case(op_case, 3).value().function;
    const std::vector<TensorType> results = function->result_type().leaves();
    if (function->params.empty() || results.empty()) continue;
    const bool real = results.size() == 1 && is_float(results[0].dtype);
    int64_t size = num_elements(results[0].shape);
    for (const TensorType& result : results) size = std::min(size, num_elements(result.shape));
    if (real || size < 8) continue;
    if (sizes.count(op_case.op) != 0 && size >= sizes[op_case.op]) continue;
    sizes[op_case.op] = size;
    smallest[op_case.op] = function;
  }
  return smallest;
}

class LyingKernel : public Kernel {
 public:
  LyingKernel(std::unique_ptr<Kernel> right, TensorType type, size_t output, Lie lie)
      : right_(std::move(right)), type_(std::move(type)), output_(output), lie_(std::move(lie)) {}
  Status run(const KernelArgs& args) override {
    TRY(right_->run(args));
    Tensor result = Tensor::borrow(type_.dtype, type_.shape, args.outputs[output_]);
    lie_.tell(result, runs_++);
    return {};
  }
  size_t workspace_bytes() const override { return right_->workspace_bytes(); }

 private:
  std::unique_ptr<Kernel> right_;
  TensorType type_;  // of the output that it lies about
  size_t output_;
  Lie lie_;
  int runs_ = 0;
};

// What trials of this process judge the function by.
const RoundingErrors& as_tried(const Function& function) {
  return ReferenceCache::instance().results_of(canonical_text(function)).value()->errors;
}

// Whether it changes anything that is not lost in rounding.
bool tells(const Lie& lie, const Tensor& right) {
  // Where the guarded page begins at once behind it, the process ends, as a worker would.
  constexpr size_t kAligned = 64;
  if (lie.of_memory) return right.bytes() % kAligned != 0;
  Tensor told = right.clone();
  lie.tell(told, 1);
  // What is quantised may be some steps off.
  if (!is_float(right.dtype())) return !compare_tensors(told, right, {.steps = 10}).within;
  // Of products of many, some lie next to the least normal number, where denormals may be 0.
  return !compare_tensors(told, right, {.of_scale = 1e-3, .relative = 1e-3, .absolute = 0x1p-96})
              .within;
}

Status try_lying(const Function& function, const Lie& lie, Subject& subject, ThreadTeam& team,
                 size_t output = 0) {
  auto kernel =
      std::make_unique<LyingKernel>(TRY(make_interpreted_kernel(subject.function())),
                                    function->result_type().leaves()[output], output, lie);
  return try_kernel(std::move(kernel), Variant::plain("lying", function), subject, team).status();
}

void check_kernels(const std::function<Function(const Function&)>& around) {
  ThreadTeam team(1);
  std::map<std::string, int> refused;
  for (const auto& [op, op_function] : smallest_cases()) {
    const Function function = around(op_function);
    Subject subject = testing::subject_of(function);
    const Tensor right = as_tried(function).expected()[0];
    const Lie honest{"nothing", [](Tensor&, int) {}};
    const Status accepted = try_lying(function, honest, subject, team);
    EXPECT_TRUE(accepted.ok()) << op << ": " << accepted.to_string();
    for (const Lie& lie : testing::all_lies()) {
      if (!tells(lie, right)) continue;
      const Status status = try_lying(function, lie, subject, team);
      EXPECT_EQ(status.code(), ErrorCode::kVerification) << op << ": " << lie.name;
      ++refused[lie.name];
    }
  }
  for (const auto& [lie, count] : refused) EXPECT_GT(count, 40) << lie;
  EXPECT_EQ(refused.size(), testing::all_lies().size());
}

TEST(LyingKernels, AreRefused) {
  check_kernels([](const Function& function) { return function; });
}

TEST(LyingKernels, AreRefusedBesideAMask) {
  check_kernels([](const Function& function) { return masked(function, -1e4f); });
}

const std::vector<Lie>& lies_about(const Tensor& result) {
  static const std::vector<Lie> of_reals = testing::all_lies(),
                                of_integers = testing::lies_of_integers(), none;
  if (!is_float(result.dtype())) return of_integers;
  return result.dtype() == DType::kFloat32 ? of_reals : none;
}

// By kernels and by whole models.
TEST(LyingKernels, OfOtherResultsAreRefused) {
  ThreadTeam team(1);
  std::map<std::string, int> refused;  // by operator
  for (const auto& [op, function] : smallest_other_cases()) {
    Subject subject = testing::subject_of(function);
    const Lie honest{"nothing", [](Tensor&, int) {}};
    const Status accepted = try_lying(function, honest, subject, team);
    EXPECT_TRUE(accepted.ok()) << op << ": " << accepted.to_string();
    const std::vector<Tensor> results = as_tried(function).expected();
    ReferenceCheck reference(function);
    const ReferenceInputs& asked = reference.seeded().value()[0];
    for (size_t o = 0; o < results.size(); ++o)
      for (const Lie& lie : lies_about(results[o])) {
        SCOPED_TRACE(fmt::format("{}, result {}: {}", op, o, lie.name));
        if (tells(lie, results[o])) {
          const Status status = try_lying(function, lie, subject, team, o);
          EXPECT_EQ(status.code(), ErrorCode::kVerification);
          ++refused[op];
        }
        if (lie.of_memory || !tells(lie, asked.expected[o])) continue;
        Tensor told = asked.expected[o].clone();
        lie.tell(told, 1);
        EXPECT_FALSE(reference.compare(asked, o, told, model_tolerance()).value().within);
      }
  }
  for (const char* op : {"topk", "split", "argmax", "less", "cast", "qnn.quantize"})
    EXPECT_GT(refused[op], 3) << op;
}

// Right on inputs that it knows, and half of that on others.
class KnowingKernel : public Kernel {
 public:
  KnowingKernel(std::unique_ptr<Kernel> right, Shape shape, std::vector<std::vector<Tensor>> known)
      : right_(std::move(right)), shape_(std::move(shape)), known_(std::move(known)) {}
  Status run(const KernelArgs& args) override {
    TRY(right_->run(args));
    const auto is_given = [&](const std::vector<Tensor>& inputs) {
      for (size_t i = 0; i < inputs.size(); ++i)
        if (std::memcmp(inputs[i].raw(), args.inputs[i], inputs[i].bytes()) != 0) return false;
      return true;
    };
    if (std::any_of(known_.begin(), known_.end(), is_given)) return {};
    auto* result = static_cast<float*>(args.outputs[0]);
    for (int64_t i = 0; i < num_elements(shape_); ++i) result[i] *= 0.5f;
    return {};
  }
  size_t workspace_bytes() const override { return right_->workspace_bytes(); }

 private:
  std::unique_ptr<Kernel> right_;
  Shape shape_;
  std::vector<std::vector<Tensor>> known_;
};

TEST(LyingKernels, ThatAreRightOnInputsKnownBeforehandAreRefused) {
  ThreadTeam team(1);
  int refused = 0;
  for (const auto& [op, function] : smallest_cases()) {
    Subject subject = testing::subject_of(function);
    std::vector<std::vector<Tensor>> known;
    for (uint64_t seed = 0; seed < 50; ++seed)
      for (const SyntheticRange& range :
           {SyntheticRange{-1, 1}, SyntheticRange{0.1f, 1}, SyntheticRange{-4, 4}})
        known.push_back(synthetic_inputs(subject.function(), seed, range).value());
    const bool reals = std::any_of(known[0].begin(), known[0].end(), [](const Tensor& input) {
      return is_float(input.dtype()) && input.size() > 0;
    });
    if (!reals) continue;
    auto kernel = std::make_unique<KnowingKernel>(
        make_interpreted_kernel(subject.function()).value(),
        function->result_type().leaves()[0].shape, std::move(known));
    const Status status =
        try_kernel(std::move(kernel), Variant::plain("knowing", function), subject, team).status();
    EXPECT_EQ(status.code(), ErrorCode::kVerification) << op;
    ++refused;
  }
  EXPECT_GT(refused, 60);
}

TEST(LyingPrograms, AreRefused) {
  std::map<std::string, int> refused;
  for (const auto& [op, op_function] : smallest_cases())
    for (const float fill : {0.0f, -3.4e38f}) {
      const Function function = fill == 0 ? op_function : masked(op_function, fill);
      ReferenceCheck reference(function);
      const ReferenceInputs& asked = reference.seeded().value()[0];
      const Tensor& right = asked.expected[0];
      const auto accepted = [&](const Tensor& result) {
        return reference.compare(asked, 0, result, model_tolerance()).value().within;
      };
      EXPECT_TRUE(accepted(right)) << op;
      for (const Lie& lie : testing::all_lies()) {
        if (lie.of_memory || !tells(lie, right)) continue;
        Tensor told = right.clone();
        lie.tell(told, 1);
        EXPECT_FALSE(accepted(told)) << op << " beside " << fill << ": " << lie.name;
        ++refused[lie.name];
      }
      for (const testing::Fault& fault : testing::faults_of(function)) {
        const std::vector<Tensor> told =
            interpret(inline_calls(fault.function).value(), asked.inputs).value();
        const Tolerance little{.of_scale = 2e-3, .relative = 2e-3, .absolute = 0x1p-120};
        if (compare_tensors(told[0], right, little).within) continue;
        EXPECT_FALSE(accepted(told[0])) << op << " beside " << fill << ": " << fault.name;
        ++refused["a tap"];
      }
    }
  for (const auto& [lie, count] : refused) EXPECT_GT(count, 120) << lie;
}

}  // namespace
}  // namespace collage
