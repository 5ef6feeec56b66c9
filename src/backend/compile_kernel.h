// A kernel of a backend, its own constant updates first: how everybody compiles one.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

inline Result<std::unique_ptr<Kernel>> compile_kernel(const Backend& backend,
                                                      const Function& function,
                                                      const Variant& variant, const Target& target,
                                                      const CompileOptions& options) {
  Function updated = TRY(backend.update_constants(function, target));
  if (!(updated->type() == function->type()))
    return internal_error("{}: its constant update makes a {} of a {}", backend.name(),
                          updated->type().to_string(), function->type().to_string());
  return backend.compile(updated, variant, target, options);
}

}  // namespace collage
