# How a room of src/ becomes a library, and how rooms become programs.
#
# A room's library is linked whole wherever it is linked at all: operators and backends register themselves from static
# objects that nothing else refers to, and plugins resolve their symbols against the program that loads them.

set_property(GLOBAL PROPERTY COLLAGE_ROOMS "")

# collage_room(PATH [DEPENDS room...] [LIBS target...])
# Makes collage_<room> (slashes become underscores) from src/PATH/*.cc and the folders below it that are no rooms of
# their own; an interface library where there are no sources yet.
function(collage_room path)
  cmake_parse_arguments(arg "" "" "DEPENDS;LIBS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  set(target collage_${name})
  set(dir ${PROJECT_SOURCE_DIR}/src/${path})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  if(NOT path MATCHES "^(backend|dynamic)$")
    file(GLOB nested CONFIGURE_DEPENDS ${dir}/*/*.cc)
    list(FILTER nested EXCLUDE REGEX "/kernels/[^/]*$") # a room of its own
    list(APPEND sources ${nested})
  endif()
  set(scope INTERFACE)
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE collage_options)
    set_property(GLOBAL APPEND PROPERTY COLLAGE_ROOMS ${target})
  else()
    add_library(${target} INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                                ${PROJECT_BINARY_DIR}/generated/include)
  target_include_directories(${target} SYSTEM ${scope} ${DLPACK_INCLUDE_DIR})
  list(TRANSFORM arg_DEPENDS PREPEND collage_)
  target_link_libraries(${target} ${scope} ${arg_DEPENDS} ${arg_LIBS})
endfunction()

# collage_link_whole(TARGET): every room that ends up in TARGET, directly or not, goes in whole.
function(collage_link_whole target)
  get_property(rooms GLOBAL PROPERTY COLLAGE_ROOMS)
  if(rooms)
    list(JOIN rooms "," rooms)
    set_property(TARGET ${target} PROPERTY LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${rooms}")
  endif()
endfunction()

# libcollage.so: all rooms, what the command, other programs and (through them) plugins share.
function(collage_library)
  file(WRITE ${PROJECT_BINARY_DIR}/generated/collage_library.cc "// Holds the rooms together.\n")
  add_library(collage_lib SHARED ${PROJECT_BINARY_DIR}/generated/collage_library.cc)
  add_library(collage::collage ALIAS collage_lib)
  collage_link_whole(collage_lib)
  target_link_libraries(collage_lib PRIVATE collage_report collage_dynamic)
  target_include_directories(
    collage_lib PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                       $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated/include> $<INSTALL_INTERFACE:include>)
  target_compile_features(collage_lib INTERFACE cxx_std_20)
  set_target_properties(
    collage_lib
    PROPERTIES OUTPUT_NAME collage
               EXPORT_NAME collage
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}
               LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()

# libcollage_runtime.so: what artifacts need to run, and no compiler; and a library beside it for the kernels of each
# vendor's library, and for those of native and amx, which it loads when an artifact asks for them (src/artifact/kernel_libraries.h).
# They take what they share with it from it: their own objects are all that they hold.
function(collage_runtime_libraries)
  file(WRITE ${PROJECT_BINARY_DIR}/generated/collage_runtime_library.cc "// Holds the rooms together.\n")
  add_library(collage_runtime_lib SHARED ${PROJECT_BINARY_DIR}/generated/collage_runtime_library.cc)
  add_library(collage::runtime ALIAS collage_runtime_lib)
  collage_link_whole(collage_runtime_lib)
  target_link_libraries(collage_runtime_lib PRIVATE collage_artifact)
  target_include_directories(collage_runtime_lib PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                        $<INSTALL_INTERFACE:include>)
  target_compile_features(collage_runtime_lib INTERFACE cxx_std_20)
  set_target_properties(
    collage_runtime_lib
    PROPERTIES OUTPUT_NAME collage_runtime
               EXPORT_NAME runtime
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}
               LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  set(kernels ${COLLAGE_KERNELS})
  list(REMOVE_ITEM kernels memory reference)
  foreach(name IN LISTS kernels)
    set(source ${PROJECT_BINARY_DIR}/generated/collage_kernels_${name}.cc)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
[[namespace collage::@name@ {
void register_loaders();
}
extern "C" __attribute__((visibility("default"))) void collage_register_kernels() {
  collage::@name@::register_loaders();
}
]])
    set(objects $<TARGET_OBJECTS:collage_backend_${name}_kernels>)
    foreach(shared IN LISTS COLLAGE_KERNELS_SHARE_${name})
      list(APPEND objects $<TARGET_OBJECTS:collage_backend_${shared}_kernels>)
    endforeach()
    add_library(collage_kernels_${name}_lib SHARED ${source} ${objects})
    target_link_libraries(collage_kernels_${name}_lib PRIVATE collage_runtime_lib ${COLLAGE_KERNELS_NEED_${name}} fmt::fmt
                                                              OpenMP::OpenMP_CXX)
    set_target_properties(collage_kernels_${name}_lib PROPERTIES OUTPUT_NAME collage_kernels_${name}
                                                                 LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  endforeach()
  set(COLLAGE_KERNEL_LIBRARIES ${kernels} PARENT_SCOPE)
endfunction()

# The command: sees the rooms' headers, takes their code from libcollage.so.
function(collage_tool)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/collage/*.cc)
  add_executable(collage ${sources})
  # Whoever has the command can also run what it compiles without it; `make install` installs these.
  add_dependencies(collage collage_runtime_lib)
  foreach(name IN LISTS COLLAGE_KERNEL_LIBRARIES)
    add_dependencies(collage collage_kernels_${name}_lib)
  endforeach()
  set_target_properties(collage PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(collage PRIVATE collage_options collage_lib $<COMPILE_ONLY:collage_report> CLI11::CLI11
                                        fmt::fmt spdlog::spdlog OpenMP::OpenMP_CXX)
  target_include_directories(collage PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tools)
endfunction()
