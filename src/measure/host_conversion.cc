#include "measure/host_conversion.h"

namespace collage {

Result<Tensor> convert_on_host(const void* data, const TensorType& type, const Encoding& from,
                               const Encoding& to, const CompileOptions& options) {
  if (!is_host_memory(from.device) || !is_host_memory(to.device)) {
    Encoding here = from, there = to;
    here.device = there.device = VirtualDevice();
    return convert_on_host(data, type, here, there, options);
  }
  for (Backend* backend : all_backends()) {
    if (!backend->traits().is_host) continue;
    std::unique_ptr<Kernel> kernel = TRY(backend->compile_conversion(type, from, to, options));
    size_t bytes = to.layout.physical_bytes(type.shape, to.dtype);
    Tensor result = TRY(Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(bytes)}));
    Tensor workspace =
        TRY(Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(kernel->workspace_bytes())}));
    void* input = const_cast<void*>(data);
    void* output = result.raw();
    TRY(kernel->run({&input, &output, workspace.raw()}));
    return result;
  }
  return internal_error("no host backend is registered");
}

}  // namespace collage
