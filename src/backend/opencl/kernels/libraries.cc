#include "backend/opencl/kernels/libraries.h"

#include "base/library_beside.h"

namespace collage::opencl {
namespace {

Result<OpenCl> load_opencl() {
  void* library = TRY(load_library_beside("libcollage_vendor_opencl.so"));
  OpenCl found{};
#define COLLAGE_CALL(name) TRY(find_function(library, "cl" #name, found.name));
  COLLAGE_OPENCL_CALLS(COLLAGE_CALL)
#undef COLLAGE_CALL
  return found;
}

Result<ClBlast> load_clblast() {
  void* library = TRY(load_library_beside("libcollage_vendor_clblast.so"));
  ClBlast found{};
  TRY(find_function(library, "CLBlastSgemm", found.gemm));
  TRY(find_function(library, "CLBlastSgemmBatched", found.gemm_batched));
  return found;
}

}  // namespace

Result<const OpenCl*> opencl() {
  static const auto* loaded = new Result<OpenCl>(load_opencl());
  if (!*loaded) return loaded->status();
  return &loaded->value();
}

const OpenCl& cl() { return *opencl().value(); }

Result<const ClBlast*> clblast() {
  static const auto* loaded = new Result<ClBlast>(load_clblast());
  if (!*loaded) return loaded->status();
  return &loaded->value();
}

}  // namespace collage::opencl
