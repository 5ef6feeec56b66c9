#include "artifact/portable_kernels.h"

#include <mutex>

#include "backend/memory/kernels/loaders.h"
#include "backend/reference/kernels/loaders.h"
#include "ops/placement.h"
#include "ops/registry.h"
#include "tensor_program/call.h"

namespace collage {

void register_portable_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_all_ops();
    register_placement_ops();
    tensor_program::register_call_ops();
    memory::register_loaders();
    reference::register_loaders();
  });
}

}  // namespace collage
