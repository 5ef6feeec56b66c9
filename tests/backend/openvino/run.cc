#include "backend/openvino/run.h"

#include <cmath>
#include <cstring>

#include "backend/openvino/openvino_backend.h"
#include "runtime/thread_team.h"
#include "saved_layouts.h"

namespace collage::test {

namespace {

constexpr int kThreads = 2;

// Inside a parked team.
Result<std::vector<Tensor>> run_once(Kernel& kernel, const Function& function,
                                     std::span<const Tensor> inputs) {
  std::vector<void*> in, out;
  for (const Tensor& tensor : inputs) in.push_back(const_cast<void*>(tensor.raw()));
  std::vector<Tensor> outputs;
  for (const TensorType& leaf : function->result_type().leaves()) {
    outputs.push_back(TRY(Tensor::allocate(leaf.dtype, leaf.shape)));
    out.push_back(outputs.back().raw());
  }
  ThreadTeam team(kThreads);
  Status status;
  team.park([&] { status = kernel.run({in.data(), out.data(), nullptr}); });
  TRY(status);
  return outputs;
}

Result<std::shared_ptr<Kernel>> saved_and_loaded(const Kernel& kernel,
                                                 std::span<const Tensor> inputs,
                                                 std::span<const Tensor> outputs) {
  SavedKernel saved = TRY(kernel.save());
  for (const Tensor& tensor : inputs) saved.buffers.inputs.push_back(tensor.bytes());
  for (const Tensor& tensor : outputs) saved.buffers.outputs.push_back(tensor.bytes());
  const KernelLoader* loader = find_kernel_loader(saved.loader);
  if (loader == nullptr) return internal_error("there is no loader '{}'", saved.loader);
  testing::SavedLayouts::all().expect_known_kernel(saved.loader, saved.description);
  return loader->load(saved, kThreads);
}

Status check_same_bits(Kernel& kernel, const char* what, const Function& function,
                       std::span<const Tensor> inputs, std::span<const Tensor> expected) {
  const std::vector<Tensor> got = TRY(run_once(kernel, function, inputs));
  for (size_t i = 0; i < got.size(); ++i)
    if (std::memcmp(got[i].raw(), expected[i].raw(), got[i].bytes()) != 0)
      return internal_error("{}: result {} has other bits", what, i);
  return {};
}

}  // namespace

Backend& openvino_backend() {
  static Backend* backend = make_openvino_backend().release();
  return *backend;
}

Result<std::vector<Tensor>> run_openvino(const Function& function, std::span<const Tensor> inputs) {
  Target target = TRY(Target::parse("openvino"));
  CompileOptions options{kThreads, ""};
  auto variants = TRY(openvino_backend().variants(function, target, options));
  auto kernel = TRY(openvino_backend().compile(function, variants.at(0), target, options));
  std::vector<Tensor> outputs = TRY(run_once(*kernel, function, inputs));
  const std::shared_ptr<Kernel> twin = TRY(kernel->twin());
  TRY(check_same_bits(*twin, "a twin", function, inputs, outputs));
  const std::shared_ptr<Kernel> loaded = TRY(saved_and_loaded(*kernel, inputs, outputs));
  TRY(check_same_bits(*loaded, "saved and loaded", function, inputs, outputs));
  return outputs;
}

std::string difference(const Tensor& actual, const Tensor& expected) {
  if (actual.shape() != expected.shape() || actual.dtype() != expected.dtype())
    return fmt::format("{} {} instead of {} {}", dtype_name(actual.dtype()),
                       shape_to_string(actual.shape()), dtype_name(expected.dtype()),
                       shape_to_string(expected.shape()));
  if (expected.dtype() == DType::kInt8 || expected.dtype() == DType::kUInt8) {
    int64_t neighbours = 0;
    for (int64_t i = 0; i < expected.size(); ++i) {
      const int64_t a = actual.element_as_int64(i), b = expected.element_as_int64(i);
      if (std::abs(a - b) > 1) return fmt::format("[{}] is {} instead of {}", i, a, b);
      neighbours += a != b;
    }
    if (neighbours > 1 + expected.size() / 64) return fmt::format("{} are off by one", neighbours);
    return "";
  }
  if (!is_float(expected.dtype())) {
    for (int64_t i = 0; i < expected.size(); ++i)
      if (actual.element_as_int64(i) != expected.element_as_int64(i))
        return fmt::format("[{}] is {} instead of {}", i, actual.element_as_int64(i),
                           expected.element_as_int64(i));
    return "";
  }
  double largest = 0;
  for (int64_t i = 0; i < expected.size(); ++i)
    if (double x = std::abs(expected.element_as_double(i)); std::isfinite(x))
      largest = std::max(largest, x);
  for (int64_t i = 0; i < expected.size(); ++i) {
    double a = actual.element_as_double(i), b = expected.element_as_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(b) || !(std::abs(a - b) <= 2e-5 * largest + 1e-5 * std::abs(b)))
      return fmt::format("[{}] is {} instead of {} (largest {})", i, a, b, largest);
  }
  return "";
}

}  // namespace collage::test
