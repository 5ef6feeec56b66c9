# Kernels: one library a folder of src/kernels/, the code that a backend's compiled kernels are run by. What an artifact
# loads needs these and no backend. Those that use a vendor's library are left out where it was not found.

set(COLLAGE_KERNELS_NEED_native Halide::Runtime)
set(COLLAGE_KERNELS_NEED_onednn collage_dnnl)
set(COLLAGE_KERNELS_NEED_openvino openvino::runtime)
set(COLLAGE_KERNELS_NEED_blas collage_openblas)

# Those that were built.
set(COLLAGE_KERNELS "")
foreach(name memory reference native onednn openvino blas)
  set(missing "")
  foreach(library IN LISTS COLLAGE_KERNELS_NEED_${name})
    if(NOT TARGET ${library})
      list(APPEND missing ${library})
    endif()
  endforeach()
  if(NOT missing)
    collage_room(kernels/${name} DEPENDS tensor_program LIBS ${COLLAGE_KERNELS_NEED_${name}})
    list(APPEND COLLAGE_KERNELS ${name})
  endif()
endforeach()
