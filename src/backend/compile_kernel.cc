#include "backend/compile_kernel.h"

namespace collage {

Status check_fit(const Variant& variant, const std::vector<TensorType>& inputs,
                 const std::vector<TensorType>& outputs) {
  auto check = [](const char* what, const std::vector<Encoding>& encodings,
                  const std::vector<TensorType>& types) -> Status {
    if (encodings.size() != types.size())
      return internal_error("the variant has {} {}s, the function {}", encodings.size(), what,
                            types.size());
    for (size_t i = 0; i < types.size(); ++i)
      if (!encodings[i].layout.fits(static_cast<int64_t>(types[i].shape.size())))
        return internal_error("the variant's {} {} is {}, the function's has rank {}", what, i,
                              encodings[i].to_string(), types[i].shape.size());
    return {};
  };
  TRY(check("input", variant.inputs, inputs));
  return check("output", variant.outputs, outputs);
}

Result<std::unique_ptr<Kernel>> compile_kernel(const Backend& backend, const Function& function,
                                               const Variant& variant, const Target& target,
                                               const CompileOptions& options) {
  Function updated = TRY(backend.update_constants(function, target));
  if (!(updated->type() == function->type()))
    return internal_error("{}: its constant update makes a {} of a {}", backend.name(),
                          updated->type().to_string(), function->type().to_string());
  return backend.compile(updated, variant, target, options);
}

}  // namespace collage
