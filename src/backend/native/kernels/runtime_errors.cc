// What kernels call where one of Halide's assertions fails; only those of programs that users wrote
// have any (BuiltPipeline::checked). Each says its own name and gives a code, with which the kernel
// then returns. The arguments, of which every function has others, are left unread.
#include "backend/native/kernels/runtime_hooks.h"

namespace collage::native {

std::vector<Hook> assertion_hooks() {
  std::vector<Hook> hooks;
#define COLLAGE_KERNEL_ERROR(name)                                             \
  hooks.push_back({"halide_error_" #name, reinterpret_cast<void*>(+[](void*) { \
                     set_kernel_error("assertion failed: " #name);             \
                     return -1;                                                \
                   })});
  COLLAGE_KERNEL_ERROR(access_out_of_bounds)
  COLLAGE_KERNEL_ERROR(bad_dimensions)
  COLLAGE_KERNEL_ERROR(bad_extern_fold)
  COLLAGE_KERNEL_ERROR(bad_fold)
  COLLAGE_KERNEL_ERROR(bad_type)
  COLLAGE_KERNEL_ERROR(bounds_inference_call_failed)
  COLLAGE_KERNEL_ERROR(buffer_allocation_too_large)
  COLLAGE_KERNEL_ERROR(buffer_argument_is_null)
  COLLAGE_KERNEL_ERROR(buffer_extents_negative)
  COLLAGE_KERNEL_ERROR(buffer_extents_too_large)
  COLLAGE_KERNEL_ERROR(buffer_is_null)
  COLLAGE_KERNEL_ERROR(constraint_violated)
  COLLAGE_KERNEL_ERROR(constraints_make_required_region_smaller)
  COLLAGE_KERNEL_ERROR(device_dirty_with_no_device_support)
  COLLAGE_KERNEL_ERROR(device_interface_no_device)
  COLLAGE_KERNEL_ERROR(explicit_bounds_too_small)
  // The function has said what is wrong (runtime_hooks.cc).
  hooks.push_back(
      {"halide_error_extern_stage_failed", reinterpret_cast<void*>(+[](void*) { return -1; })});
  COLLAGE_KERNEL_ERROR(fold_factor_too_small)
  COLLAGE_KERNEL_ERROR(host_and_device_dirty)
  COLLAGE_KERNEL_ERROR(host_is_null)
  COLLAGE_KERNEL_ERROR(no_device_interface)
  COLLAGE_KERNEL_ERROR(requirement_failed)
  COLLAGE_KERNEL_ERROR(specialize_fail)
  COLLAGE_KERNEL_ERROR(split_factor_not_positive)
  COLLAGE_KERNEL_ERROR(storage_bound_too_small)
  COLLAGE_KERNEL_ERROR(unaligned_host_ptr)
  COLLAGE_KERNEL_ERROR(vscale_invalid)
#undef COLLAGE_KERNEL_ERROR
  return hooks;
}

}  // namespace collage::native
