# One library a folder of src/backend/, found by looking: a new backend needs no line here unless it uses a library
# that only it knows. collage_backends stands for all that were built and defines COLLAGE_WITH_<NAME> as 0 or 1.

# What a backend links besides the rooms above it.
set(COLLAGE_BACKEND_NEEDS_native Halide::Halide)
set(COLLAGE_BACKEND_NEEDS_onednn collage_dnnl)
set(COLLAGE_BACKEND_NEEDS_openvino openvino::runtime)
set(COLLAGE_BACKEND_NEEDS_blas collage_openblas)

add_library(collage_backends INTERFACE)
target_link_libraries(collage_backends INTERFACE collage_backend)

file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE ${PROJECT_SOURCE_DIR}/src/backend
     ${PROJECT_SOURCE_DIR}/src/backend/*)
set(names reference native onednn openvino blas ${folders})
list(FILTER names EXCLUDE REGEX "[.]")
list(REMOVE_DUPLICATES names)
foreach(name IN LISTS names)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/${name}/*.cc)
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
    collage_room(backend/${name} DEPENDS backend LIBS ${COLLAGE_BACKEND_NEEDS_${name}})
    target_link_libraries(collage_backends INTERFACE collage_backend_${name})
    set(built 1)
  endif()
  string(TOUPPER ${name} upper)
  target_compile_definitions(collage_backends INTERFACE COLLAGE_WITH_${upper}=${built})
endforeach()
