# One library a folder of src/backend/, found by looking: a new backend needs no line here unless it uses a library
# that only it knows. collage_backends stands for all that were built and defines COLLAGE_WITH_<NAME> as 0 or 1.

# What a backend links besides the rooms above it.
set(COLLAGE_BACKEND_NEEDS_native Halide::Halide)
set(COLLAGE_BACKEND_NEEDS_opencl Halide::Halide OpenCL::OpenCL clblast)
set(COLLAGE_BACKEND_NEEDS_onednn collage_dnnl)
set(COLLAGE_BACKEND_NEEDS_openvino openvino::runtime)
set(COLLAGE_BACKEND_NEEDS_blas collage_openblas)

# Folders that are no backends, but hold what several backends share.
set(COLLAGE_BACKEND_SHARED contraction gemm)

# Rooms and shared folders whose code becomes a part of a backend's kernels: it links them, and they are hashed with it.
set(COLLAGE_BACKEND_ROOMS_native tensor_program)
# opencl compiles by what native has.
set(COLLAGE_BACKEND_ROOMS_opencl tensor_program backend/native kernels/native backend/gemm kernels/gemm)
set(COLLAGE_BACKEND_ROOMS_blas backend/gemm kernels/gemm)
set(COLLAGE_BACKEND_ROOMS_amx backend/contraction kernels/contraction)
set(COLLAGE_BACKEND_ROOMS_vnni backend/contraction kernels/contraction)

list(JOIN COLLAGE_KERNELS "|" COLLAGE_KERNEL_NAMES)

# A hash of each backend's sources, those of its kernels among them, is part of its version, hence of the keys of measured costs and of cached objects.
set(COLLAGE_FINGERPRINTS "")

foreach(name IN LISTS COLLAGE_BACKEND_SHARED)
  collage_room(backend/${name} DEPENDS backend kernels_${name})
  target_compile_options(collage_backend_${name} PRIVATE ${COLLAGE_BACKEND_OPTIONS_${name}})
endforeach()

add_library(collage_backends INTERFACE)
target_link_libraries(collage_backends INTERFACE collage_backend)

file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE ${PROJECT_SOURCE_DIR}/src/backend
     ${PROJECT_SOURCE_DIR}/src/backend/*)
set(names reference native opencl onednn openvino amx vnni blas memory ${folders})
list(FILTER names EXCLUDE REGEX "[.]")
list(REMOVE_DUPLICATES names)
list(REMOVE_ITEM names ${COLLAGE_BACKEND_SHARED})
foreach(name IN LISTS names)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/${name}/*.cc)
  file(GLOB_RECURSE hashed CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/${name}/*)
  foreach(room IN LISTS COLLAGE_BACKEND_ROOMS_${name} ITEMS kernels/${name})
    file(GLOB_RECURSE shared CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*)
    list(APPEND hashed ${shared})
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${hashed})
  set(hashes "")
  foreach(source IN LISTS hashed)
    file(SHA256 ${source} hash)
    string(APPEND hashes ${hash})
  endforeach()
  string(SHA256 hash "${hashes}")
  string(SUBSTRING ${hash} 0 12 hash)
  string(APPEND COLLAGE_FINGERPRINTS "    {\"${name}\", \"${hash}\"},\n")
  set(missing "")
  foreach(library IN LISTS COLLAGE_BACKEND_NEEDS_${name})
    if(NOT TARGET ${library})
      list(APPEND missing ${library})
    endif()
  endforeach()
  set(built 0)
  if(NOT sources)
    message(STATUS "backend ${name}: no sources")
  elseif(missing)
    message(STATUS "backend ${name}: left out, not found: ${missing}")
  else()
    message(STATUS "backend ${name}: ${COLLAGE_BACKEND_NEEDS_${name}}")
    string(REPLACE "/" "_" rooms "${COLLAGE_BACKEND_ROOMS_${name}}")
    set(kernels ${name})
    list(FILTER kernels INCLUDE REGEX "^(${COLLAGE_KERNEL_NAMES})$")
    list(TRANSFORM kernels PREPEND kernels_)
    collage_room(backend/${name} DEPENDS backend ${rooms} ${kernels} LIBS ${COLLAGE_BACKEND_NEEDS_${name}})
    target_compile_options(collage_backend_${name} PRIVATE ${COLLAGE_BACKEND_OPTIONS_${name}})
    target_link_libraries(collage_backends INTERFACE collage_backend_${name})
    set(built 1)
  endif()
  string(TOUPPER ${name} upper)
  target_compile_definitions(collage_backends INTERFACE COLLAGE_WITH_${upper}=${built})
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/fingerprints.h.in ${PROJECT_BINARY_DIR}/generated/backend_fingerprints.h @ONLY)
target_include_directories(collage_backend PRIVATE ${PROJECT_BINARY_DIR}/generated)
