# `cmake --install build/release --prefix DIR`, and `cpack --config build/release/CPackConfig.cmake`: a package
# `fullbore` with the command, the libraries, completions and the manual page, and `fullbore-dev` with headers and
# what find_package(fullbore) and pkg-config read, and examples/, which build against either.
include(CMakePackageConfigHelpers)
set(fb_cmake_folder "${CMAKE_INSTALL_LIBDIR}/cmake/fullbore")

install(TARGETS fullbore
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT fullbore NAMELINK_COMPONENT dev)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/fullbore" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
  FILES_MATCHING PATTERN "*.h"
  # Of a device its public extension header alone: the others' insides, LLVM's headers are its own business.
  REGEX "fullbore/device/[a-z_]+/.+\\.h$" EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/fullbore/device/cpu/kernel.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/fullbore/device/cpu" COMPONENT dev)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/fullbore" COMPONENT dev)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/fullboreConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/fullboreConfig.cmake"
  INSTALL_DESTINATION ${fb_cmake_folder} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
# Before 1.0 a minor version may break interfaces.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/fullboreConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/fullboreConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/fullboreConfigVersion.cmake"
  DESTINATION ${fb_cmake_folder} COMPONENT dev)
file(RELATIVE_PATH pkgconfig_to_prefix
  "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")  # a prefix may be moved
configure_file("${PROJECT_SOURCE_DIR}/cmake/fullbore.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/fullbore.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/fullbore.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)

set_target_properties(fullbore_workloads PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS fullbore_workloads
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT fullbore NAMELINK_COMPONENT dev)

if(TARGET fullbore_cli)
  file(RELATIVE_PATH bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_target_properties(fullbore_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS fullbore_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT fullbore)
  file(GLOB configs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/workloads/*/configs/*.yaml")  # configs/ links to them
  install(FILES ${configs} DESTINATION ${CMAKE_INSTALL_DATADIR}/fullbore/configs COMPONENT fullbore)

  # The command writes its own manual page and completions, so they are never older than it is.
  set(pages "${CMAKE_CURRENT_BINARY_DIR}/pages")
  add_custom_command(TARGET fullbore_cli POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E make_directory "${pages}"
    COMMAND fullbore_cli manual > "${pages}/fullbore.1"
    COMMAND fullbore_cli completion bash > "${pages}/fullbore"
    COMMAND fullbore_cli completion zsh > "${pages}/_fullbore"
    COMMAND fullbore_cli completion fish > "${pages}/fullbore.fish"
    VERBATIM)
  foreach(file_and_folder fullbore.1:${CMAKE_INSTALL_MANDIR}/man1
      fullbore:${CMAKE_INSTALL_DATADIR}/bash-completion/completions
      _fullbore:${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
      fullbore.fish:${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
    string(REPLACE ":" ";" pair ${file_and_folder})
    list(GET pair 0 file)
    list(GET pair 1 folder)
    install(FILES "${pages}/${file}" DESTINATION ${folder} COMPONENT fullbore)
  endforeach()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The Fullbore authors")
set(CPACK_PACKAGE_CONTACT "The Fullbore authors <maintainers@fullbore.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL fullbore dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}/lib")
set(CPACK_DEBIAN_FULLBORE_PACKAGE_NAME fullbore)
set(CPACK_DEBIAN_FULLBORE_PACKAGE_SUGGESTS stockfish)  # a process of its own that ranks moves
set(CPACK_DEBIAN_FULLBORE_DESCRIPTION "trains neural networks as one compiled program
 A training step is traced once, differentiated, compiled whole, planned to the
 byte and replayed. This package holds the command and its library.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME fullbore-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "fullbore (= ${PROJECT_VERSION}), libfmt-dev, libspdlog-dev, nlohmann-json3-dev")
set(CPACK_DEBIAN_DEV_DESCRIPTION "headers of Fullbore
 What a program needs that brings a model of its own.")
include(CPack)
