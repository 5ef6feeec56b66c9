# The Python package (python/): the extension collage._core over libcollage.so, beside a copy of the package's sources in
# build/<preset>/python/collage, where tests import it from; and, as install component `python`, what a wheel holds (pyproject.toml).

# A library built with sanitizers cannot be loaded by a Python without them.
if(NOT COLLAGE_PYTHON OR COLLAGE_SANITIZE)
  return()
endif()
set(Python_EXECUTABLE ${COLLAGE_ENV}/bin/python CACHE FILEPATH "the Python that the extension is built for")
find_package(Python 3.10 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
find_package(nanobind CONFIG QUIET PATHS ${COLLAGE_SITE_PACKAGES}/nanobind/cmake NO_DEFAULT_PATH)
if(NOT nanobind_FOUND OR NOT Python_Development.Module_FOUND)
  message(STATUS "python: left out, not found: nanobind (requirements.txt) or Python's headers (python3-dev)")
  return()
endif()

set(package ${PROJECT_BINARY_DIR}/python/collage)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/bindings/*.cc)
# From Python 3.12 on nanobind has the stable interface: one extension for that version and later ones.
nanobind_add_module(collage_python NB_STATIC STABLE_ABI ${sources})
target_link_libraries(collage_python PRIVATE collage_lib)
target_compile_options(collage_python PRIVATE -Wall -Wextra $<$<BOOL:${COLLAGE_WERROR}>:-Werror>)
set_target_properties(collage_python PROPERTIES OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY ${package} INSTALL_RPATH "$ORIGIN/lib")
nanobind_add_stub(collage_python_stub MODULE _core OUTPUT ${package}/_core.pyi PYTHON_PATH ${package} DEPENDS collage_python)

# Links, not copies: what is edited is what is tested.
file(MAKE_DIRECTORY ${package}/bin ${package}/aten)
file(GLOB modules CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python/collage ${PROJECT_SOURCE_DIR}/python/collage/*.py
  ${PROJECT_SOURCE_DIR}/python/collage/aten/*.py ${PROJECT_SOURCE_DIR}/python/collage/py.typed)
foreach(name IN LISTS modules)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/collage/${name} ${package}/${name} SYMBOLIC)
endforeach()
file(CREATE_LINK ${PROJECT_BINARY_DIR}/collage ${package}/bin/collage SYMBOLIC)

# The model of `python -m collage demo`.
file(GLOB model CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/*.py)
add_custom_command(
  OUTPUT ${package}/mnist.onnx
  COMMAND ${COLLAGE_ENV}/bin/python ${PROJECT_SOURCE_DIR}/models/generate.py mnist -o ${package}
  DEPENDS ${model}
  COMMENT "Generating mnist.onnx")
add_custom_target(collage_python_demo ALL DEPENDS ${package}/mnist.onnx)

# A wheel: the command and its libraries as `make install` lays them out, below the package, and the header of the one that
# other programs may load. Wheels hold no links, so libraries bear the names that programs ask for. libHalide, half of all, is left to
# the package halide (pyproject.toml).
install(TARGETS collage_python LIBRARY DESTINATION collage COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${package}/_core.pyi ${package}/mnist.onnx DESTINATION collage COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS collage RUNTIME DESTINATION collage/bin COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS collage_lib collage_runtime_lib LIBRARY DESTINATION collage/lib COMPONENT python NAMELINK_SKIP EXCLUDE_FROM_ALL)
install(CODE [[
  file(GLOB links "${CMAKE_INSTALL_PREFIX}/collage/lib/libcollage*.so*")
  foreach(link IN LISTS links)
    if(IS_SYMLINK ${link})
      file(REAL_PATH ${link} library)
      file(RENAME ${library} ${link})
    endif()
  endforeach()
]] COMPONENT python EXCLUDE_FROM_ALL)
set(libraries ${COLLAGE_VENDOR_LIBRARIES})
list(FILTER libraries EXCLUDE REGEX "/libHalide[.]so$")
install(FILES ${libraries} DESTINATION collage/lib/collage COMPONENT python EXCLUDE_FROM_ALL)
foreach(name IN LISTS COLLAGE_KERNEL_LIBRARIES)
  install(TARGETS collage_kernels_${name}_lib LIBRARY DESTINATION collage/lib/collage COMPONENT python EXCLUDE_FROM_ALL)
endforeach()
foreach(module IN LISTS COLLAGE_VENDOR_MODULES)
  install(TARGETS ${module} LIBRARY DESTINATION collage/lib/collage COMPONENT python EXCLUDE_FROM_ALL)
endforeach()
install(FILES include/collage/runtime.h DESTINATION collage/include/collage COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${COLLAGE_PEERS} DESTINATION collage/share/collage/peers COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${COLLAGE_COSTS} DESTINATION collage/share/collage/costs COMPONENT python EXCLUDE_FROM_ALL)
# Last, of all that is there by then.
install(CODE "execute_process(COMMAND ${COLLAGE_ENV}/bin/python ${PROJECT_SOURCE_DIR}/tools/setup/portable_libraries.py
    \${CMAKE_INSTALL_PREFIX}/collage COMMAND_ERROR_IS_FATAL ANY)" COMPONENT python EXCLUDE_FROM_ALL)
