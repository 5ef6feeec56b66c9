# `make install`: bin/collage, lib/libcollage.so, include/collage/, a CMake package for find_package(collage), and in
# lib/collage/ the vendor libraries of the backends that were built, so that nothing refers to the source tree afterwards.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(vendor_dir ${CMAKE_INSTALL_LIBDIR}/collage)
set_target_properties(collage PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set_target_properties(collage_lib PROPERTIES INSTALL_RPATH "$ORIGIN/collage")
set(COLLAGE_VENDOR_LIBRARIES "")
if(TARGET collage_backend_native)
  list(APPEND COLLAGE_VENDOR_LIBRARIES ${COLLAGE_SITE_PACKAGES}/halide/lib64/libHalide.so)
endif()
if(TARGET collage_backend_onednn)
  list(APPEND COLLAGE_VENDOR_LIBRARIES ${COLLAGE_ENV}/lib/libdnnl.so.3)
endif()
if(TARGET collage_backend_openvino)
  # OpenVINO finds its plugins beside its main library.
  file(GLOB libraries ${COLLAGE_SITE_PACKAGES}/openvino/libs/libopenvino.so.* ${COLLAGE_SITE_PACKAGES}/openvino/libs/libtbb*.so.*
       ${COLLAGE_SITE_PACKAGES}/openvino/libs/libhwloc.so.*
       ${COLLAGE_SITE_PACKAGES}/openvino/libs/libopenvino_intel_cpu_plugin.so
       ${COLLAGE_SITE_PACKAGES}/openvino/libs/libopenvino_onnx_frontend.so.*
       ${COLLAGE_SITE_PACKAGES}/openvino/libs/libopenvino_ir_frontend.so.*)
  list(APPEND COLLAGE_VENDOR_LIBRARIES ${libraries})
endif()
install(FILES ${COLLAGE_VENDOR_LIBRARIES} DESTINATION ${vendor_dir})

# What `bench --compare` runs other runtimes with, by a Python of the user's that has them.
set(COLLAGE_PEERS bench/peers/peer.py bench/peers/onnxruntime_peer.py bench/peers/openvino_peer.py bench/peers/tensor_files.py
                  bench/peers/throughput.py bench/peers/no_telemetry.py)
install(FILES ${COLLAGE_PEERS} DESTINATION ${CMAKE_INSTALL_DATADIR}/collage/peers)

# What kernels took on processors that were measured (src/cost/shipped_costs.h), which the build finds beside its library.
file(GLOB COLLAGE_COSTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/costs/*.costs)
install(FILES ${COLLAGE_COSTS} DESTINATION ${CMAKE_INSTALL_DATADIR}/collage/costs)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/costs ${PROJECT_BINARY_DIR}/costs SYMBOLIC)

install(FILES tools/collage/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME collage)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/collage RENAME copyright)

install(TARGETS collage RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS collage_lib collage_runtime_lib EXPORT collageTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(module IN LISTS COLLAGE_VENDOR_MODULES)
  install(TARGETS ${module} LIBRARY DESTINATION ${vendor_dir})
endforeach()
# Beside the vendors' libraries that they use.
foreach(name IN LISTS COLLAGE_KERNEL_LIBRARIES)
  set_target_properties(collage_kernels_${name}_lib PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/..")
  install(TARGETS collage_kernels_${name}_lib LIBRARY DESTINATION ${vendor_dir})
endforeach()
if(EXISTS ${PROJECT_SOURCE_DIR}/include/collage)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/collage DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(FILES ${PROJECT_BINARY_DIR}/generated/include/collage/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/collage)

# For backends out of tree (collage::plugin): the headers that src/backend/plugin.h leads to.
set(plugin_include ${CMAKE_INSTALL_INCLUDEDIR}/collage/plugin)
foreach(room base runtime ir ops tensor_program passes partition)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/${room} DESTINATION ${plugin_include} FILES_MATCHING PATTERN "*.h")
endforeach()
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/*.h)
install(FILES ${headers} DESTINATION ${plugin_include}/backend)
add_library(collage_plugin INTERFACE)
set_target_properties(collage_plugin PROPERTIES EXPORT_NAME plugin)
target_include_directories(collage_plugin INTERFACE $<INSTALL_INTERFACE:${plugin_include}>)
target_link_libraries(collage_plugin INTERFACE collage_lib)
target_compile_definitions(collage_plugin INTERFACE FMT_SHARED)
install(TARGETS collage_plugin EXPORT collageTargets)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/collage)
install(EXPORT collageTargets NAMESPACE collage:: DESTINATION ${package_dir})
configure_package_config_file(cmake/collageConfig.cmake.in ${PROJECT_BINARY_DIR}/collageConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/collageConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/collageConfig.cmake ${PROJECT_BINARY_DIR}/collageConfigVersion.cmake
        DESTINATION ${package_dir})
