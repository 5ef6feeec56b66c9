// Kernels made from a lambda, and functions to try them on.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "backend/reference/reference.h"
#include "ir/text_printer.h"
#include "measure/subject.h"
#include "ops/registry.h"
#include "runtime/kernel.h"

namespace collage::testing {

class PlantedKernel : public Kernel {
 public:
  using Body = std::function<Status(const float* in, float* out, char* workspace)>;
  PlantedKernel(Body body, size_t workspace) : body_(std::move(body)), workspace_(workspace) {}
  Status run(const KernelArgs& args) override {
    return body_(static_cast<const float*>(args.inputs[0]), static_cast<float*>(args.outputs[0]),
                 static_cast<char*>(args.workspace));
  }
  size_t workspace_bytes() const override { return workspace_; }

 private:
  Body body_;
  size_t workspace_;
};

inline std::unique_ptr<Kernel> planted(PlantedKernel::Body body, size_t workspace = 0) {
  return std::make_unique<PlantedKernel>(std::move(body), workspace);
}

// The operators and the host's conversions, registered once a process.
inline void register_host() {
  register_all_ops();
  if (find_backend("reference") == nullptr) register_backend(make_reference_backend());
}

// A call of an operator on one parameter, as a subject to try kernels on.
inline Function unary(const std::string& op, Shape shape, Attrs attrs = {}) {
  register_host();
  Expr x = make_var("x", TensorType{std::move(shape), DType::kFloat32});
  return make_function({x}, make_call(op, {x}, std::move(attrs)).value());
}

inline Subject subject_of(const Function& function) {
  register_host();
  Result<Subject> subject = Subject::of_function(canonical_text(function));
  if (!subject) {
    ADD_FAILURE() << subject.status().to_string();
    std::abort();
  }
  return std::move(subject).value();
}

}  // namespace collage::testing
