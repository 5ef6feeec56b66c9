#include "fuzz/files/library_plans.h"

#include <gtest/gtest.h>

#include "artifact/manifest.h"
#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "base/integers.h"
#include "ir/text_parser.h"
#include "runtime/thread_team.h"

namespace collage::fuzz {
namespace {

constexpr int kThreads = 1;

struct KernelCase {
  const char* target;
  const char* function;  // with weights of (8, 4, 3, 3), (8, 16) and (8)
};

constexpr KernelCase kCases[] = {
    {"onednn", R"((%x: Tensor[(1, 4, 6, 6), float32]) {
  %0 = nn.conv2d(%x, meta[relay.Constant][0], padding=[1, 1, 1, 1]);
  nn.relu(nn.bias_add(%0, meta[relay.Constant][2]))
})"},
    {"onednn", R"((%x: Tensor[(5, 16), float32]) {
  %0 = nn.dense(%x, meta[relay.Constant][1]);
  sigmoid(add(%0, meta[relay.Constant][2]))
})"},
    {"onednn", R"((%x: Tensor[(1, 4, 6, 6), float32]) {
  nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])
})"},
    {"onednn", "(%x: Tensor[(5, 16), float32]) { nn.softmax(%x) }"},
    {"blas", R"((%x: Tensor[(5, 16), float32]) {
  add(nn.dense(%x, meta[relay.Constant][1]), meta[relay.Constant][2])
})"},
    {"blas", R"((%x: Tensor[(2, 5, 16), float32], %y: Tensor[(2, 7, 16), float32]) {
  nn.batch_matmul(%x, %y)
})"},
    {"openvino", R"((%x: Tensor[(5, 16), float32]) {
  nn.relu(nn.dense(%x, meta[relay.Constant][1]))
})"},
};

Function parse(const char* text) {
  std::vector<Tensor> side;
  for (const Shape& shape : {Shape{8, 4, 3, 3}, Shape{8, 16}, Shape{8}})
    side.push_back(Tensor::zeros(DType::kFloat32, shape));
  ParseOptions options;
  options.side_tensors = &side;
  const Result<Function> function =
      parse_function("#[version = \"0.0.5\"]\nfn " + std::string(text) +
                         "\n#[metadata]\n{\"relay.Constant\": [{\"side\": 0}, {\"side\": 1}, "
                         "{\"side\": 2}], \"side_file\": \"weights\"}\n",
                     options);
  EXPECT_TRUE(function.ok()) << text << ": " << function.status().to_string();
  return function.value();
}

Plan plan_of(const Function& function, const char* target, std::shared_ptr<Kernel> kernel) {
  Plan plan;
  Step step{"kernel", target, std::move(kernel), {}, {}};
  const auto add = [&](const TensorType& type, Buffer::Place place, size_t index) {
    Buffer buffer;
    buffer.place = place;
    buffer.index = index;
    buffer.type = type;
    buffer.encoding = plain_encoding(type);
    buffer.bytes = type.bytes();
    plan.buffers.push_back(std::move(buffer));
    return plan.buffers.size() - 1;
  };
  for (const Expr& param : function->params) {
    step.inputs.push_back(add(param->tensor_type(), Buffer::Place::kInput, plan.inputs.size()));
    plan.inputs.push_back({"x" + std::to_string(plan.inputs.size()), param->tensor_type()});
  }
  for (const TensorType& type : function->result_type().leaves()) {
    step.outputs.push_back(add(type, Buffer::Place::kOutput, plan.outputs.size()));
    plan.outputs.push_back({"y" + std::to_string(plan.outputs.size()), type});
  }
  plan.arena_bytes = round_up(step.kernel->workspace_bytes(), kArenaAlignment);
  plan.steps.push_back(std::move(step));
  return plan;
}

bool all_plain(const Function& function, const Variant& variant) {
  const std::vector<TensorType> results = function->result_type().leaves();
  for (size_t i = 0; i < variant.inputs.size(); ++i)
    if (variant.inputs[i] != plain_encoding(function->params[i]->tensor_type())) return false;
  for (size_t i = 0; i < variant.outputs.size(); ++i)
    if (variant.outputs[i] != plain_encoding(results[i])) return false;
  return true;
}

}  // namespace

std::vector<SavedPlans> saved_library_plans() {
  register_all();
  const TeamScope team(kThreads);
  std::vector<SavedPlans> result;
  for (const KernelCase& one : kCases) {
    const Backend* backend = find_backend(one.target);
    if (backend == nullptr || !backend->available().ok()) continue;
    const Function function = parse(one.function);
    const Target target{one.target, {}, {}};
    const CompileOptions options{kThreads, ""};
    const auto variants = backend->variants(function, target, options);
    EXPECT_TRUE(variants.ok()) << one.function << ": " << variants.status().to_string();
    for (const Variant& variant : *variants) {
      if (!all_plain(function, variant)) continue;
      auto kernel = backend->compile(function, variant, target, options);
      EXPECT_TRUE(kernel.ok()) << one.function << ": " << kernel.status().to_string();
      PlanSaver saver(kThreads);
      const Status added = saver.add(kPlanEntry, plan_of(function, one.target, std::move(*kernel)));
      EXPECT_TRUE(added.ok()) << one.function << ": " << added.to_string();
      result.push_back(saver.finish().value());
    }
  }
  return result;
}

}  // namespace collage::fuzz
