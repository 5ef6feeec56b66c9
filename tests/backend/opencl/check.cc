#include "check.h"

#include "backend/opencl/opencl_backend.h"
#include "measure/staged_kernel.h"
#include "ops/registry.h"

namespace collage::opencl {
namespace {

// A kernel that only this object holds.
class Staged : public Kernel {
 public:
  explicit Staged(std::shared_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  Status run(const KernelArgs& args) override {
    TRY(kernel_->run(args));
    return kernel_->finish();
  }
  size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }

 private:
  std::shared_ptr<Kernel> kernel_;
};

class StagedBackend : public Backend {
 public:
  StagedBackend() : Backend(device_backend().name(), [] { return device_backend().traits(); }) {}
  Status available() const override { return own_.available(); }
  PartitionRulePtr partition_rule(const Target& target) const override {
    return own_.partition_rule(target);
  }
  Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                        const CompileOptions& options) const override {
    return own_.variants(function, target, options);
  }
  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target& target,
                                          const CompileOptions& options) const override {
    std::shared_ptr<Kernel> kernel = TRY(own_.compile(function, variant, target, options));
    std::vector<TensorType> inputs;
    for (const Expr& param : function->params) inputs.push_back(param->tensor_type());
    std::unique_ptr<Kernel> staged = std::make_unique<Staged>(TRY(StagedKernel::around(
        std::move(kernel), variant, inputs, function->result_type().leaves(), target.device)));
    return staged;
  }

 private:
  const Backend& own_ = device_backend();
};

}  // namespace

const Backend& device_backend() {
  static const Backend* backend = make_opencl_backend().release();
  return *backend;
}

const Backend& staged_backend() {
  static const Backend* backend = [] {
    register_all_ops();
    return new StagedBackend;
  }();
  return *backend;
}

Target first_device() { return {"opencl", {}, staged_backend().traits().devices.at(0)}; }

void check_with_inputs(const Function& function, const std::vector<Tensor>& inputs,
                       const testing::Tolerance& tolerance) {
  const CompileOptions options{2, ""};
  const std::vector<Tensor> expected = testing::evaluate(function, inputs);
  const auto variants = staged_backend().variants(function, first_device(), options);
  ASSERT_TRUE(variants.ok()) << variants.status().to_string();
  for (const Variant& variant : *variants) {
    for (const auto* encodings : {&variant.inputs, &variant.outputs})
      for (const Encoding& encoding : *encodings) EXPECT_EQ(encoding.device, first_device().device);
    testing::check_variant(staged_backend(), first_device(), options, function, variant, inputs,
                           expected, tolerance);
  }
}

void check_function(const Function& function, const testing::Tolerance& tolerance) {
  check_with_inputs(function, testing::random_inputs(function), tolerance);
}

}  // namespace collage::opencl
