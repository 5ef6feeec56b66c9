# Compiler options for the project's own code. The instruction set is a question for run time: no -march=native here.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_ENABLE_EXPORTS ON)
# No source is a C++ module: GCC 14 and later would read each one twice.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(COLLAGE_TESTS "Build the tests" ON)
option(COLLAGE_LONG_TESTS "Build the long tests too" OFF)
option(COLLAGE_PYTHON "Build the Python package where nanobind is there" ON)
option(COLLAGE_WERROR "Warnings are errors; on where the project is developed, off for its users" OFF)
set(COLLAGE_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize=")
set(COLLAGE_ENV ${PROJECT_SOURCE_DIR}/build/env CACHE PATH "Python environment that holds the wheels")

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(COLLAGE_CCACHE ccache)
  if(COLLAGE_CCACHE)
    # Paths below the project are hashed as relative ones, so that checkouts in different folders share objects. What is
    # not known yet is compiled at once: its dependencies are read from the compiler's list (.d), not by preprocessing.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                    CCACHE_DEPEND=1 ${COLLAGE_CCACHE})
  endif()
endif()

# collage_options: linked by every target of our own, never by generated code.
add_library(collage_options INTERFACE)
target_compile_options(collage_options INTERFACE -Wall -Wextra)
if(COLLAGE_WERROR)
  target_compile_options(collage_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 reports overlapping copies inside std::string's own operator+ (GCC bug 105651).
  target_compile_options(collage_options INTERFACE -Wno-restrict)
  # g++ 14 takes arguments that live as long as the call for dangling ones, in calls within TRY.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(collage_options INTERFACE -Wno-dangling-pointer -Wno-dangling-reference)
  endif()
  # In unity builds, where sources are included once each, it takes them for headers.
  target_compile_options(collage_options INTERFACE $<$<BOOL:${CMAKE_UNITY_BUILD}>:-Wno-subobject-linkage>)
endif()
if(COLLAGE_SANITIZE)
  add_compile_options(-fsanitize=${COLLAGE_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${COLLAGE_SANITIZE})
endif()
