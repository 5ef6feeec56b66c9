# `make deb`: what `make install` installs as a Debian package, by CPack, for /usr. Libraries of Debian become
# dependencies, found by dpkg-shlibdeps; those of wheels travel along in lib/collage (install.cmake).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME collage)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Collage authors <collage@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs trained models with the backends measured fastest for each part")
set(CPACK_PACKAGE_DESCRIPTION
    "Collage compiles an ONNX model to a program whose parts each run on the backend that was measured fastest for them on this machine: the command, its library, headers and a CMake package.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    ${PROJECT_BINARY_DIR} ${COLLAGE_ENV}/lib ${COLLAGE_SITE_PACKAGES}/halide/lib64 ${COLLAGE_SITE_PACKAGES}/openvino/libs)
set(CPACK_DEBIAN_PACKAGE_DEPENDS binutils) # native assembles and links its kernels where the program runs
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, libpq5") # for bench --compare; for --db postgresql://
include(CPack)
