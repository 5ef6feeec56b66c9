# Libraries from Debian packages (required) and from the wheels in COLLAGE_ENV (each backend's own, optional).

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(SQLite3 REQUIRED)
find_package(Protobuf REQUIRED)
# collage_re2: Debian ships no CMake package for it.
find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
find_library(RE2_LIBRARY re2 REQUIRED)
add_library(collage_re2 INTERFACE)
target_include_directories(collage_re2 SYSTEM INTERFACE ${RE2_INCLUDE_DIR})
target_link_libraries(collage_re2 INTERFACE ${RE2_LIBRARY})

find_path(DLPACK_INCLUDE_DIR dlpack/dlpack.h REQUIRED)

# collage_zip: Debian's CMake package wants libzip's tools, too.
find_path(ZIP_INCLUDE_DIR zip.h REQUIRED)
find_library(ZIP_LIBRARY zip REQUIRED)
add_library(collage_zip INTERFACE)
target_include_directories(collage_zip SYSTEM INTERFACE ${ZIP_INCLUDE_DIR})
target_link_libraries(collage_zip INTERFACE ${ZIP_LIBRARY})

file(GLOB COLLAGE_SITE_PACKAGES ${COLLAGE_ENV}/lib/python3*/site-packages)
if(NOT COLLAGE_SITE_PACKAGES)
  message(FATAL_ERROR "no Python environment in ${COLLAGE_ENV}: run `make setup` first")
endif()
list(GET COLLAGE_SITE_PACKAGES 0 COLLAGE_SITE_PACKAGES)

# collage_onnx_proto: the ONNX format's classes, generated from the description that the onnx wheel carries.
# Include as <onnx/onnx-ml.pb.h>.
find_file(ONNX_PROTO onnx/onnx-ml.proto PATHS ${COLLAGE_SITE_PACKAGES} NO_DEFAULT_PATH REQUIRED)
set(generated ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated}/onnx)
add_custom_command(
  OUTPUT ${generated}/onnx/onnx-ml.pb.cc ${generated}/onnx/onnx-ml.pb.h
  COMMAND protobuf::protoc -I ${COLLAGE_SITE_PACKAGES} --cpp_out ${generated} onnx/onnx-ml.proto
  DEPENDS ${ONNX_PROTO}
  COMMENT "Generating onnx-ml.pb.cc")
add_library(collage_onnx_proto STATIC ${generated}/onnx/onnx-ml.pb.cc ${generated}/onnx/onnx-ml.pb.h)
target_compile_options(collage_onnx_proto PRIVATE -w)
target_include_directories(collage_onnx_proto SYSTEM PUBLIC ${generated} ${generated}/onnx)
target_link_libraries(collage_onnx_proto PUBLIC protobuf::libprotobuf)
add_custom_target(collage_generated DEPENDS ${generated}/onnx/onnx-ml.pb.h)

configure_file(cmake/version.h.in ${generated}/include/collage/version.h @ONLY)

# collage_vendor_library(NAME LIBRARY...): libcollage_vendor_NAME.so, which holds nothing and needs the libraries. Loading it
# loads them (src/base/library_beside.h), wherever the installation keeps them.
set(COLLAGE_VENDOR_MODULES "")
function(collage_vendor_library name)
  set(source ${generated}/collage_vendor_${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Needs what it is linked with.\n")
  add_library(collage_vendor_${name} SHARED ${source})
  target_link_options(collage_vendor_${name} PRIVATE -Wl,--no-as-needed)
  target_link_libraries(collage_vendor_${name} PRIVATE ${ARGN})
  set_target_properties(collage_vendor_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  set(COLLAGE_VENDOR_MODULES ${COLLAGE_VENDOR_MODULES} collage_vendor_${name} PARENT_SCOPE)
endfunction()

# collage_cbc: the solvers of linear (Clp) and integer programs (Cbc); Debian ships no CMake package for them.
find_path(COIN_INCLUDE_DIR Cbc_C_Interface.h PATH_SUFFIXES coin REQUIRED)
find_library(CLP_LIBRARY Clp REQUIRED)
find_library(CBC_LIBRARY Cbc REQUIRED)
find_library(CBC_SOLVER_LIBRARY CbcSolver REQUIRED)
collage_vendor_library(cbc ${CBC_SOLVER_LIBRARY} ${CBC_LIBRARY} ${CLP_LIBRARY})
add_library(collage_cbc INTERFACE)
target_include_directories(collage_cbc SYSTEM INTERFACE ${COIN_INCLUDE_DIR})
add_dependencies(collage_cbc collage_vendor_cbc)

# Vendor libraries. Each one found becomes a target; a backend that asks for a missing one is left out of the build.
set(HalideHelpers_DIR ${COLLAGE_SITE_PACKAGES}/halide/lib64/cmake/HalideHelpers)
find_package(Halide 21 CONFIG QUIET PATHS ${COLLAGE_SITE_PACKAGES}/halide/lib64/cmake/Halide NO_DEFAULT_PATH)
find_package(OpenCL QUIET)
find_package(CLBlast QUIET)
if(TARGET OpenCL::OpenCL AND TARGET clblast)
  collage_vendor_library(opencl OpenCL::OpenCL)
  collage_vendor_library(clblast clblast)
  add_library(collage_opencl INTERFACE)
  target_include_directories(collage_opencl SYSTEM INTERFACE ${OpenCL_INCLUDE_DIRS} $<TARGET_PROPERTY:clblast,INTERFACE_INCLUDE_DIRECTORIES>)
  add_dependencies(collage_opencl collage_vendor_opencl collage_vendor_clblast)
endif()
find_package(OpenVINO CONFIG QUIET PATHS ${COLLAGE_SITE_PACKAGES}/openvino/cmake NO_DEFAULT_PATH)

find_library(DNNL_LIBRARY dnnl PATHS ${COLLAGE_ENV}/lib NO_DEFAULT_PATH)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp PATHS ${COLLAGE_ENV}/include NO_DEFAULT_PATH)
if(DNNL_LIBRARY AND DNNL_INCLUDE_DIR)
  add_library(collage_dnnl INTERFACE)
  target_include_directories(collage_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
  target_link_libraries(collage_dnnl INTERFACE ${DNNL_LIBRARY})
endif()

# Only the OpenMP build of OpenBLAS shares our threads; the others bring their own.
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-openmp NO_CACHE)
find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-openmp NO_CACHE)
if(OPENBLAS_LIBRARY MATCHES openblas-openmp AND OPENBLAS_INCLUDE_DIR)
  collage_vendor_library(blas ${OPENBLAS_LIBRARY})
  # Its functions are found once it is loaded.
  add_library(collage_openblas INTERFACE)
  target_include_directories(collage_openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
  add_dependencies(collage_openblas collage_vendor_blas)
endif()
