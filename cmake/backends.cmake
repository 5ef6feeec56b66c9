# One library a folder of src/backend/, found by looking: a new backend needs no line here unless it uses a library
# that only it knows. collage_backends stands for all that were built and defines COLLAGE_WITH_<NAME> as 0 or 1.

# What a backend links besides the rooms above it.
set(COLLAGE_BACKEND_NEEDS_native Halide::Halide)
set(COLLAGE_BACKEND_NEEDS_opencl Halide::Halide collage_opencl)
set(COLLAGE_BACKEND_NEEDS_onednn collage_dnnl)
set(COLLAGE_BACKEND_NEEDS_openvino openvino::runtime)
set(COLLAGE_BACKEND_NEEDS_blas collage_openblas)

# Folders that are no backends, but hold what several backends share.
set(COLLAGE_BACKEND_SHARED contraction gemm)

# Rooms and shared folders whose code becomes a part of a backend's kernels: it links them, and they are hashed with it.
set(COLLAGE_BACKEND_ROOMS_native tensor_program)
# opencl compiles by what native has.
set(COLLAGE_BACKEND_ROOMS_opencl tensor_program backend/native backend/native/kernels backend/gemm backend/gemm/kernels)
set(COLLAGE_BACKEND_ROOMS_blas backend/gemm backend/gemm/kernels)
set(COLLAGE_BACKEND_ROOMS_amx backend/contraction backend/contraction/kernels)

list(JOIN COLLAGE_KERNELS "|" COLLAGE_KERNEL_NAMES)

# Hashes of sources (cmake/fingerprints.cmake). Of each backend's, those of its kernels among them: a part of its version,
# hence of the keys of measured costs and of cached objects. Of all that measures and judges kernels, and of all that makes,
# runs and judges programs: parts of the keys of what they find (src/cost/cost_keys.h).
set(COLLAGE_JUDGES base runtime ir ops tensor_program partition backend/memory/kernels backend/reference/kernels verify cost measure)
set(fingerprints "")
set(fingerprinted "")

# collage_fingerprint(NAME SOURCE...)
function(collage_fingerprint name)
  # The compiler and its flags decide how a source rounds.
  set(also "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE} ${COLLAGE_SANITIZE}")
  list(JOIN ARGN "|" sources)
  string(APPEND fingerprints "${name}|${also}|${sources}\n")
  set(fingerprints "${fingerprints}" PARENT_SCOPE)
  set(fingerprinted ${fingerprinted} ${ARGN} PARENT_SCOPE)
endfunction()

foreach(name IN LISTS COLLAGE_BACKEND_SHARED)
  collage_room(backend/${name} DEPENDS backend backend_${name}_kernels)
  target_compile_options(collage_backend_${name} PRIVATE ${COLLAGE_BACKEND_OPTIONS_${name}})
endforeach()

add_library(collage_backends INTERFACE)
target_link_libraries(collage_backends INTERFACE collage_backend)

file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE ${PROJECT_SOURCE_DIR}/src/backend
     ${PROJECT_SOURCE_DIR}/src/backend/*)
set(names reference native opencl onednn openvino amx blas memory ${folders})
list(FILTER names EXCLUDE REGEX "[.]")
list(REMOVE_DUPLICATES names)
list(REMOVE_ITEM names targets ${COLLAGE_BACKEND_SHARED})
foreach(name IN LISTS names)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/${name}/*.cc)
  file(GLOB_RECURSE hashed CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/${name}/*)
  foreach(room IN LISTS COLLAGE_BACKEND_ROOMS_${name})
    file(GLOB_RECURSE shared CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*)
    list(APPEND hashed ${shared})
  endforeach()
  collage_fingerprint(${name} ${hashed})
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
    list(TRANSFORM kernels REPLACE "(.+)" "backend_\\1_kernels")
    collage_room(backend/${name} DEPENDS backend ${rooms} ${kernels} LIBS ${COLLAGE_BACKEND_NEEDS_${name}})
    target_compile_options(collage_backend_${name} PRIVATE ${COLLAGE_BACKEND_OPTIONS_${name}})
    target_link_libraries(collage_backends INTERFACE collage_backend_${name})
    set(built 1)
  endif()
  string(TOUPPER ${name} upper)
  target_compile_definitions(collage_backends INTERFACE COLLAGE_WITH_${upper}=${built})
endforeach()
set(judges "")
foreach(room IN LISTS COLLAGE_JUDGES)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*)
  list(APPEND judges ${sources})
endforeach()
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/*.h ${PROJECT_SOURCE_DIR}/src/backend/*.cc)
collage_fingerprint(judges ${judges} ${sources})
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h ${PROJECT_SOURCE_DIR}/src/*.cc)
# Those of backends are in their own.
list(FILTER sources EXCLUDE REGEX "/src/backend/[^/]*/")
file(GLOB targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/targets/*)
collage_fingerprint(programs ${judges} ${targets} ${sources})

set(lists ${PROJECT_BINARY_DIR}/generated/fingerprints.txt)
file(CONFIGURE OUTPUT ${lists} @ONLY CONTENT "@fingerprints@")
list(REMOVE_DUPLICATES fingerprinted)
add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/generated/fingerprints.h
  COMMAND ${CMAKE_COMMAND} -D LISTS=${lists} -D HEADER=${PROJECT_BINARY_DIR}/generated/fingerprints.h -P
          ${PROJECT_SOURCE_DIR}/cmake/fingerprints.cmake
  DEPENDS ${fingerprinted} ${lists} ${PROJECT_SOURCE_DIR}/cmake/fingerprints.cmake
  COMMENT "Hashing sources")
target_sources(collage_backend PRIVATE ${PROJECT_BINARY_DIR}/generated/fingerprints.h)
target_include_directories(collage_backend PRIVATE ${PROJECT_BINARY_DIR}/generated)
