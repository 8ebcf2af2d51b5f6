# `cmake --install build/release --prefix DIR`: the command, the libraries and the headers.
install(TARGETS fullbore LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/fullbore" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
if(TARGET fullbore_models)
  install(TARGETS fullbore_models LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET fullbore_cli)
  file(RELATIVE_PATH bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_target_properties(fullbore_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS fullbore_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
