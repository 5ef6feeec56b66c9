# Kernels: one library a folder src/backend/NAME/kernels/, the code that a backend's compiled kernels are run by. What an artifact
# loads needs these and no backend. Those that use a vendor's library are left out where it was not found.

set(COLLAGE_KERNELS_NEED_native Halide::Runtime)
set(COLLAGE_KERNELS_NEED_opencl Halide::Runtime collage_opencl)
set(COLLAGE_KERNELS_NEED_onednn collage_dnnl)
set(COLLAGE_KERNELS_NEED_openvino openvino::runtime)
set(COLLAGE_KERNELS_NEED_blas collage_openblas)

# Folders that hold what kernels of several backends share, by those who do.
set(COLLAGE_KERNELS_SHARE_opencl native gemm)
set(COLLAGE_KERNELS_SHARE_blas gemm)
set(COLLAGE_KERNELS_SHARE_amx contraction)

# Compiler options of a backend's sources and its kernels'. Contractions: what is fused is written as such, so that
# every compiler, and the software model of the instructions, rounds alike.
foreach(name contraction amx)
  set(COLLAGE_BACKEND_OPTIONS_${name} -ffp-contract=off)
endforeach()

collage_room(backend/gemm/kernels DEPENDS tensor_program)
collage_room(backend/contraction/kernels DEPENDS tensor_program)
target_compile_options(collage_backend_contraction_kernels PRIVATE ${COLLAGE_BACKEND_OPTIONS_contraction})

# Those that were built.
set(COLLAGE_KERNELS "")
foreach(name memory reference native opencl onednn openvino blas amx recurrent)
  set(missing "")
  foreach(library IN LISTS COLLAGE_KERNELS_NEED_${name})
    if(NOT TARGET ${library})
      list(APPEND missing ${library})
    endif()
  endforeach()
  if(NOT missing)
    set(shared ${COLLAGE_KERNELS_SHARE_${name}})
    list(TRANSFORM shared REPLACE "(.+)" "backend_\\1_kernels")
    collage_room(backend/${name}/kernels DEPENDS tensor_program ${shared} LIBS ${COLLAGE_KERNELS_NEED_${name}})
    target_compile_options(collage_backend_${name}_kernels PRIVATE ${COLLAGE_BACKEND_OPTIONS_${name}})
    list(APPEND COLLAGE_KERNELS ${name})
  endif()
endforeach()
