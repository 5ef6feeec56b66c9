# `make install`: bin/collage, lib/libcollage.so, include/collage/, and a CMake package for find_package(collage). The vendor
# libraries stay where the build found them; the installed files remember those places.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(collage collage_lib PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}"
                                                     INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS collage RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS collage_lib EXPORT collageTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(EXISTS ${PROJECT_SOURCE_DIR}/include/collage)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/collage DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(FILES ${PROJECT_BINARY_DIR}/generated/include/collage/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/collage)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/collage)
install(EXPORT collageTargets NAMESPACE collage:: DESTINATION ${package_dir})
configure_package_config_file(cmake/collageConfig.cmake.in ${PROJECT_BINARY_DIR}/collageConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/collageConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/collageConfig.cmake ${PROJECT_BINARY_DIR}/collageConfigVersion.cmake
        DESTINATION ${package_dir})
