#include "backend/blas/kernels/openblas.h"

#include <openblas_config.h>

#include "base/library_beside.h"
#include "runtime/openmp_calls.h"

namespace collage::blas {
namespace {

/// "0.3.21" of "OpenBLAS 0.3.21 NO_LAPACKE …".
std::string version_in(const std::string& text) {
  const size_t name = text.find("OpenBLAS ");
  if (name == std::string::npos) return "";
  const size_t begin = text.find(' ', name) + 1;
  return text.substr(begin, text.find(' ', begin) - begin);
}

Result<OpenBlas> load() {
  void* library = TRY(load_library_beside("libcollage_vendor_blas.so", kLinearAlgebraRoom));
  OpenBlas found{};
  decltype(&openblas_get_config) config = nullptr;
  decltype(&openblas_get_parallel) parallel = nullptr;
  TRY(find_function(library, "cblas_sgemm", found.sgemm));
  TRY(find_function(library, "cblas_sgemv", found.sgemv));
  TRY(find_function(library, "openblas_get_config", config));
  TRY(find_function(library, "openblas_get_parallel", parallel));
  if (parallel() != OPENBLAS_OPENMP)
    return error(
        ErrorCode::kUnavailable,
        "this OpenBLAS has threads of its own: install libopenblas-openmp-dev and make it the "
        "default (update-alternatives)");
  if (const std::string version = version_in(config()); version != openblas_version())
    return error(ErrorCode::kUnavailable, "OpenBLAS is of version {}, this build for {}", version,
                 openblas_version());
  // It keeps threads of its own where its calls cannot be led: slower, not wrong.
  (void)lead_openmp_calls(reinterpret_cast<const void*>(found.sgemm)).ok();
  return found;
}

}  // namespace

std::string openblas_version() { return version_in(OPENBLAS_VERSION); }

Result<const OpenBlas*> openblas() {
  static const auto* loaded = new Result<OpenBlas>(load());
  if (!*loaded) return loaded->status();
  return &loaded->value();
}

}  // namespace collage::blas
