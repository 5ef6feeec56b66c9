#include "backend/targets/backends.h"

#include <mutex>

#include "artifact/kernel_libraries.h"
#include "artifact/portable_kernels.h"
#include "backend/backend.h"
#include "backend/targets/external_mods.h"
#if COLLAGE_WITH_REFERENCE
#include "backend/reference/reference.h"
#endif
#if COLLAGE_WITH_ONEDNN
#include "backend/onednn/onednn_backend.h"
#endif
#if COLLAGE_WITH_NATIVE
#include "backend/native/native_backend.h"
#endif
#if COLLAGE_WITH_OPENCL
#include "backend/opencl/opencl_backend.h"
#endif
#if COLLAGE_WITH_OPENVINO
#include "backend/openvino/openvino_backend.h"
#endif
#if COLLAGE_WITH_AMX
#include "backend/amx/amx_backend.h"
#endif
#if COLLAGE_WITH_BLAS
#include "backend/blas/blas_backend.h"
#endif
#if COLLAGE_WITH_RECURRENT
#include "backend/recurrent/recurrent_backend.h"
#endif
#if COLLAGE_WITH_MEMORY
#include "backend/memory/memory_backend.h"
#endif

namespace collage {

void register_all() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_portable_kernels();
    register_external_mods();
#if COLLAGE_WITH_ONEDNN
    register_backend(make_onednn_backend());
#endif
#if COLLAGE_WITH_NATIVE
    register_backend(make_native_backend(), KernelOrigin::kOwn);
#endif
#if COLLAGE_WITH_OPENCL
    register_backend(make_opencl_backend(), KernelOrigin::kOwn);
#endif
#if COLLAGE_WITH_OPENVINO
    register_backend(make_openvino_backend());
#endif
#if COLLAGE_WITH_AMX
    register_backend(make_amx_backend(), KernelOrigin::kOwn);
#endif
#if COLLAGE_WITH_BLAS
    register_backend(make_blas_backend());
#endif
#if COLLAGE_WITH_RECURRENT
    register_backend(make_recurrent_backend(), KernelOrigin::kOwn);
#endif
#if COLLAGE_WITH_MEMORY
    register_backend(make_memory_backend(), KernelOrigin::kOwn);
#endif
#if COLLAGE_WITH_REFERENCE
    register_backend(make_reference_backend(), KernelOrigin::kOwn);
#endif
  });
}

namespace {

// Artifacts are loaded with the backends' own kernels in programs that hold these.
[[maybe_unused]] const bool own_loaders_are_known = [] {
  set_own_loaders(register_all);
  return true;
}();

}  // namespace

std::vector<MissingBackend> missing_backends() {
  std::vector<MissingBackend> missing;
#if !COLLAGE_WITH_ONEDNN
  missing.push_back(
      {"onednn", "wheels onednn-cpu-gomp and onednn-devel-cpu-gomp 2023.1.0, then build again"});
#endif
#if !COLLAGE_WITH_NATIVE
  missing.push_back({"native", "wheel halide 21.0.0, then build again"});
#endif
#if !COLLAGE_WITH_OPENCL
  missing.push_back(
      {"opencl",
       "Debian packages ocl-icd-opencl-dev and opencl-c-headers, wheel halide 21.0.0, "
       "then build again"});
#endif
#if !COLLAGE_WITH_OPENVINO
  missing.push_back({"openvino", "wheel openvino 2026.4.1, then build again"});
#endif
#if !COLLAGE_WITH_BLAS
  missing.push_back({"blas", "Debian package libopenblas-openmp-dev, then build again"});
#endif
  return missing;
}

}  // namespace collage
