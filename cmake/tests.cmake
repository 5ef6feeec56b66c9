# Tests, found by looking. tests/<room>/*_test.cc become one program <room>_test; long_*_test.cc in the same folder become
# <room>_long_test with the label `long`, which COLLAGE_LONG_TESTS asks for (`make test-long`). Other .cc files of the folder, and of those around it,
# are helpers of both.
# Any folder may hold *_test.py, run by the environment's Python with COLLAGE_BIN set; long_*_test.py are long likewise.

if(NOT COLLAGE_TESTS)
  return()
endif()
enable_testing()
include(GoogleTest)
find_package(GTest REQUIRED)
find_package(rapidcheck QUIET)
find_path(RAPIDCHECK_INCLUDE_DIR rapidcheck.h REQUIRED)
find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)

# What the tests of one room need beside, as collage_test_<room>.
add_library(collage_test_compiler INTERFACE)
target_include_directories(collage_test_compiler SYSTEM INTERFACE ${COIN_INCLUDE_DIR})
# Programs are saved with their reports; dynamic ones are made of models built as for the importer.
target_sources(collage_test_compiler INTERFACE ${PROJECT_SOURCE_DIR}/tests/frontend/onnx/model_builder.cc)
target_link_libraries(collage_test_compiler INTERFACE collage_report collage_dynamic ${CBC_SOLVER_LIBRARY} ${CBC_LIBRARY})

# The kernels of amx are compiled a second time, as namespaces collage::contraction_in_software and so on, against a
# software model of the instructions: tests run these where the processor lacks some. They take turns with those of oneDNN
# where it was built (collage_backend_targets).
file(GLOB sources CONFIGURE_DEPENDS src/backend/contraction/kernels/*.cc src/backend/amx/kernels/*.cc
     src/backend/contraction/*.cc src/backend/amx/*.cc tests/backend/contraction/software/*.cc)
list(FILTER sources EXCLUDE REGEX "src/backend/contraction/kernels/processor[.]cc$")
add_library(collage_contraction_in_software STATIC EXCLUDE_FROM_ALL ${sources})
target_include_directories(collage_contraction_in_software BEFORE PRIVATE tests/backend/contraction/software)
target_include_directories(collage_contraction_in_software PUBLIC tests)
target_compile_definitions(collage_contraction_in_software PRIVATE
  contraction=contraction_in_software amx=amx_in_software make_amx_backend=make_amx_in_software)
# Only inline functions pass vectors that are wider than the processor's.
target_compile_options(collage_contraction_in_software PUBLIC -Wno-psabi PRIVATE ${COLLAGE_BACKEND_OPTIONS_contraction})
target_link_libraries(collage_contraction_in_software PRIVATE collage_options PUBLIC collage_backend)
foreach(folder contraction amx)
  add_library(collage_test_backend_${folder} INTERFACE)
  target_link_libraries(collage_test_backend_${folder} INTERFACE collage_contraction_in_software collage_backend_targets)
endforeach()
# Kernels of devices are tried as those of the host, by what measuring does so with.
add_library(collage_test_backend_opencl INTERFACE)
target_link_libraries(collage_test_backend_opencl INTERFACE collage_measure)
# tests/backend/contraction finds its helper itself.
target_sources(collage_test_backend_amx INTERFACE ${PROJECT_SOURCE_DIR}/tests/backend/contraction/check.cc)

# Models for the dynamic room are built as for the importer.
add_library(collage_test_dynamic INTERFACE)
target_sources(collage_test_dynamic INTERFACE ${PROJECT_SOURCE_DIR}/tests/frontend/onnx/model_builder.cc)
target_link_libraries(collage_test_dynamic INTERFACE collage_backend_targets)

# Kernels to estimate and to measure.
foreach(room cost measure)
  add_library(collage_test_${room} INTERFACE)
  target_link_libraries(collage_test_${room} INTERFACE collage_backends)
endforeach()

# What device planning gives is verified as between passes; tensor programs state memory scopes.
# What passes leave of calls with effects is printed as script too.
add_library(collage_test_passes INTERFACE)
target_link_libraries(collage_test_passes INTERFACE collage_frontend_script)

add_library(collage_passes_devices INTERFACE)
target_link_libraries(collage_passes_devices INTERFACE collage_passes)

# A simulated accelerator for the command's --plugin.
add_library(collage_simulated MODULE tests/simulated/backend.cc tests/simulated/memory.cc)
target_include_directories(collage_simulated PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(collage_simulated PRIVATE collage_options collage_lib $<COMPILE_ONLY:collage_compiler>)
set_target_properties(collage_simulated PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

# Operators and functions of a user's own, by the public headers alone.
foreach(name operators functions)
  add_library(collage_${name} MODULE tests/operators/${name}.cc)
  target_link_libraries(collage_${name} PRIVATE collage_options collage_lib)
  set_target_properties(collage_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()

# Every backend's kernels are run as those of the host.
add_library(collage_test_backend_targets INTERFACE)
target_link_libraries(collage_test_backend_targets INTERFACE collage_measure)

# tests/backend/plugin tries the backend of a plugin that is named when it runs.
add_library(collage_backend_plugin INTERFACE)
target_link_libraries(collage_backend_plugin INTERFACE collage_backend_targets)

# The runtime's tests use its memory.
add_library(collage_test_runtime INTERFACE)
target_sources(collage_test_runtime INTERFACE ${PROJECT_SOURCE_DIR}/tests/simulated/memory.cc)

set(COLLAGE_TEST_ENVIRONMENT COLLAGE_BIN=$<TARGET_FILE:collage> COLLAGE_SOURCE_DIR=${PROJECT_SOURCE_DIR} ORT_DISABLE_TELEMETRY=1)
# Libraries of backends keep memory until the process ends, in ways that no list of their functions catches; the rooms below
# them leak nothing. Rooms are linked whole into several programs' libraries: no violation of the one-definition rule. TBB,
# OpenVINO's, loads libraries in a way (RTLD_DEEPBIND) that sanitizers refuse, unless it is told of them.
if(COLLAGE_SANITIZE)
  list(APPEND COLLAGE_TEST_ENVIRONMENT UBSAN_OPTIONS=print_stacktrace=1 TBB_ENABLE_SANITIZERS=1)
endif()
set(COLLAGE_LEAKFREE_ROOMS base runtime ir ops tensor_program frontend_onnx frontend_script passes passes_devices partition dynamic_host fuzz_models)

# Absolute paths stay off the command lines of compilers, which ccache hashes: only those who include this header depend on them.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/tests/test_paths.h CONTENT
[[#pragma once
#define COLLAGE_TESTS_DIR "@PROJECT_SOURCE_DIR@/tests"
#define COLLAGE_PYTHON "@COLLAGE_ENV@/bin/python"
#define COLLAGE_ONNX_DESCRIPTION "@PROJECT_BINARY_DIR@/generated/onnx/onnx-ml.desc"
]] @ONLY)

# The environment of a room's tests.
function(collage_test_environment variable room)
  set(environment "${COLLAGE_TEST_ENVIRONMENT}")
  if(COLLAGE_SANITIZE)
    set(leaks 0)
    if(room IN_LIST COLLAGE_LEAKFREE_ROOMS)
      set(leaks 1)
    endif()
    list(APPEND environment ASAN_OPTIONS=detect_leaks=${leaks}:detect_odr_violation=0)
  endif()
  set(${variable} "${environment}" PARENT_SCOPE)
endfunction()

# Sanitizers make programs some ten times slower.
function(collage_test_timeout variable seconds)
  if(COLLAGE_SANITIZE)
    math(EXPR seconds "10 * ${seconds}")
  endif()
  set(${variable} ${seconds} PARENT_SCOPE)
endfunction()

# Where programs of tests, which hold the library's code themselves, look for what is loaded when asked for.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
file(CREATE_LINK .. ${PROJECT_BINARY_DIR}/tests/collage SYMBOLIC)

function(collage_test_program name room label timeout sources)
  collage_test_timeout(timeout ${timeout})
  add_executable(${name} ${sources})
  collage_link_whole(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_BINARY_DIR}/generated/tests)
  target_include_directories(${name} SYSTEM PRIVATE ${RAPIDCHECK_INCLUDE_DIR})
  target_link_libraries(${name} PRIVATE collage_options collage_${room} GTest::gmock GTest::gtest GTest::gtest_main
                                        ${RAPIDCHECK_LIBRARY} $<TARGET_NAME_IF_EXISTS:collage_test_${room}>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  # Nothing in a test is timed: quicker to compile than the product's -O2. Where it inlines more, g++ 12 warns of members of
  # std::variant that are never read (GCC bug 80635).
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>
                         $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
  # gtest_discover_tests takes a list inside a property only with its separators escaped.
  collage_test_environment(environment ${room})
  string(REPLACE ";" "\\;" environment "${environment}")
  gtest_discover_tests(
    ${name}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${room}."
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    PROPERTIES TIMEOUT ${timeout} LABELS "${label}" ENVIRONMENT "${environment}")
endfunction()

# tests/conformance has no room of its own: it runs the ONNX test suite through all of them.
add_library(collage_conformance INTERFACE)
target_link_libraries(collage_conformance INTERFACE collage_compiler collage_dynamic)

# Nor has tests/modules: modules of graph functions, tensor programs and functions of libraries, compiled and run.
add_library(collage_modules INTERFACE)
target_link_libraries(collage_modules INTERFACE collage_compiler)
# Nor have tests/random_modules, on the simulated accelerator among others.
add_library(collage_random_modules INTERFACE)
target_link_libraries(collage_random_modules INTERFACE collage_compiler)
target_sources(collage_random_modules INTERFACE ${PROJECT_SOURCE_DIR}/tests/simulated/backend.cc
                                                ${PROJECT_SOURCE_DIR}/tests/simulated/memory.cc)

# Nor has tests/fuzz, whose folders give readers of files what these do not expect. It changes models by the description of
# the ONNX format, which the importer's classes leave out.
add_custom_command(
  OUTPUT ${generated}/onnx/onnx-ml.desc
  COMMAND protobuf::protoc -I ${COLLAGE_SITE_PACKAGES} --descriptor_set_out ${generated}/onnx/onnx-ml.desc onnx/onnx-ml.proto
  DEPENDS ${ONNX_PROTO}
  COMMENT "Generating onnx-ml.desc")
add_custom_target(collage_onnx_description DEPENDS ${generated}/onnx/onnx-ml.desc)
add_library(collage_fuzz_models INTERFACE)
add_dependencies(collage_fuzz_models collage_onnx_description)
target_link_libraries(collage_fuzz_models INTERFACE collage_artifact collage_frontend_onnx collage_passes)
add_library(collage_fuzz_programs INTERFACE)
add_dependencies(collage_fuzz_programs collage_onnx_description)
target_link_libraries(collage_fuzz_programs INTERFACE collage_compiler collage_dynamic)
target_sources(collage_fuzz_programs INTERFACE ${PROJECT_SOURCE_DIR}/tests/frontend/onnx/model_builder.cc)
add_library(collage_fuzz_files INTERFACE)
target_link_libraries(collage_fuzz_files INTERFACE collage_report)
target_sources(collage_fuzz_files INTERFACE ${PROJECT_SOURCE_DIR}/tests/report/sample_report.cc
                                            ${PROJECT_SOURCE_DIR}/tests/artifact/tiny_plan.cc)

file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
set(folders "")
foreach(source IN LISTS sources)
  get_filename_component(folder ${source} DIRECTORY)
  list(APPEND folders ${folder})
endforeach()
list(REMOVE_DUPLICATES folders)
foreach(folder IN LISTS folders)
  string(REPLACE "/" "_" room ${folder})
  if(NOT TARGET collage_${room})
    message(STATUS "tests/${folder}: left out, its room is not built")
    continue()
  endif()
  set(helpers "")
  set(around ${folder})
  while(around)
    file(GLOB found CONFIGURE_DEPENDS tests/${around}/*.cc)
    list(FILTER found EXCLUDE REGEX "_test[.]cc$")
    list(APPEND helpers ${found})
    get_filename_component(around ${around} DIRECTORY)
  endwhile()
  file(GLOB short CONFIGURE_DEPENDS tests/${folder}/*_test.cc)
  file(GLOB long CONFIGURE_DEPENDS tests/${folder}/long_*_test.cc)
  if(long)
    list(REMOVE_ITEM short ${long})
  endif()
  if(long AND COLLAGE_LONG_TESTS)
    collage_test_program(${room}_long_test ${room} long 1800 "${long};${helpers}")
  endif()
  if(short)
    set(timeout 120)
    if(room STREQUAL conformance)
      set(timeout 600) # a compilation for each of a thousand models
    endif()
    collage_test_program(${room}_test ${room} ${room} ${timeout} "${short};${helpers}")
  endif()
endforeach()

# What tests/ops/independent compares with other implementations.
add_executable(write_cases tests/ops/independent/write_cases.cc)
collage_link_whole(write_cases)
target_link_libraries(write_cases PRIVATE collage_options collage_ops)
set_target_properties(write_cases PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

# Alone, since what they assert follows from times: how many turns bench takes in a given time, and whether contexts run beside
# each other, or a page opens soon.
set(COLLAGE_TIMED_SCRIPTS cli/cli_bench_test.py cli/cli_compare_test.py cli/cli_throughput_test.py cli/long_view_test.py
                          python/runs_test.py)
cmake_host_system_information(RESULT COLLAGE_CORES QUERY NUMBER_OF_LOGICAL_CORES)
file(GLOB_RECURSE scripts CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tests/*_test.py)
foreach(script IN LISTS scripts)
  if(COLLAGE_SANITIZE AND script MATCHES "^(api/|python/|cli/workloads)")
    continue() # a program built without sanitizers cannot use a library built with them; whole models would take hours
  endif()
  string(REGEX REPLACE "[.]py$" "" name ${script})
  string(REPLACE "/" "." name ${name})
  if(script MATCHES "^torch_compile/")
    continue() # below: they have an environment of their own
  endif()
  add_test(NAME ${name} COMMAND ${COLLAGE_ENV}/bin/python ${PROJECT_SOURCE_DIR}/tests/${script}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set(timeout 300)
  set(label script)
  set(alone OFF)
  set(cores 1)
  if(script MATCHES "^(cli|api|python)/")
    set(timeout 1200)
  endif()
  if(script IN_LIST COLLAGE_TIMED_SCRIPTS)
    set(alone ON)
  endif()
  if(script MATCHES "workloads_test[.]py$") # whole models: teams of threads that share cores wait for each other
    set(cores ${COLLAGE_CORES})
  endif()
  if(script MATCHES "^conformance/newest")
    set(timeout 1200)
  endif()
  if(script MATCHES "(^|/)long_")
    set(timeout 3600)
    set(label long)
  endif()
  collage_test_timeout(timeout ${timeout})
  collage_test_environment(environment scripts)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS ${label} RUN_SERIAL ${alone} PROCESSORS ${cores}
                                          ENVIRONMENT "${environment};PYTHONDONTWRITEBYTECODE=1")
endforeach()

# What needs PyTorch: `make test-torch` makes its environment and runs these.
function(collage_torch_test name env script)
  add_test(NAME torch.${name} COMMAND ${env}/bin/python ${PROJECT_SOURCE_DIR}/tests/${script} ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  collage_test_timeout(timeout 3600)
  collage_test_environment(environment scripts)
  set_tests_properties(torch.${name} PROPERTIES TIMEOUT ${timeout} LABELS torch ENVIRONMENT
                                     "${environment};PYTHONDONTWRITEBYTECODE=1;COLLAGE_TORCH=${packages}")
endfunction()

if(NOT COLLAGE_SANITIZE)
  set(COLLAGE_TORCH_ENV ${PROJECT_SOURCE_DIR}/build/torch-env)
  string(REPLACE ${COLLAGE_ENV} ${COLLAGE_TORCH_ENV} packages ${COLLAGE_SITE_PACKAGES})
  foreach(script labels memory modes models)
    collage_torch_test(${script} ${COLLAGE_TORCH_ENV} torch_compile/${script}_test.py)
  endforeach()
  foreach(shard RANGE 3)
    collage_torch_test(operators_${shard} ${COLLAGE_TORCH_ENV} torch_compile/opinfo_test.py --shard ${shard}/4 --samples 1)
  endforeach()
  collage_torch_test(package ${COLLAGE_TORCH_ENV} python/package_test.py check_torch)
  collage_torch_test(functions ${COLLAGE_TORCH_ENV} python/functions_test.py check_torch)
  collage_torch_test(plugin ${COLLAGE_ENV} api/torch_plugin_test.py)
endif()
