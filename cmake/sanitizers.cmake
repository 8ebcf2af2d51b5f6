# Sanitizers: what FB_SANITIZE names, for all of our code or, with FB_SANITIZED_SOURCES, for some sources of it.

# All of our code. Checks of undefined behaviour double what a source costs to compile. Those of our code are wanted; a
# test's own lines have done their work when its expectations are evaluated.
function(fb_sanitize_all)
  string(REPLACE "," ";" sanitizers "${FB_SANITIZE}")
  list(REMOVE_ITEM sanitizers undefined)
  list(JOIN sanitizers "," in_tests)
  set(is_test $<BOOL:$<TARGET_PROPERTY:FB_TEST_CODE>>)
  string(REPLACE "," "$<COMMA>" all "${FB_SANITIZE}")
  string(REPLACE "," "$<COMMA>" in_tests "${in_tests}")
  if(in_tests)
    target_compile_options(fb_flags INTERFACE $<IF:${is_test},-fsanitize=${in_tests},-fsanitize=${all}>)
  else()
    target_compile_options(fb_flags INTERFACE $<$<NOT:${is_test}>:-fsanitize=${all}>)
  endif()
  target_compile_options(fb_flags INTERFACE -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 loses track of which alternative of a variant is alive among the instrumentation. Builds without it have the
    # warning.
    target_compile_options(fb_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endfunction()

if(FB_SANITIZE)
  target_link_options(fb_flags INTERFACE "-fsanitize=${FB_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(NOT FB_SANITIZED_SOURCES)
    fb_sanitize_all()
  endif()
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY TEST_INCLUDE_FILES
    "${CMAKE_CURRENT_LIST_DIR}/sanitizer_options.cmake")
endif()

# FB_SANITIZED_SOURCES is a file of sources of the library, one a line from the repository's root. These alone are
# instrumented, with the library's assertions; all the rest is compiled as it is without sanitizers, and so comes out of
# ccache where that was built before. The program is linked with the sanitizers' library all the same: the heap, the
# copies of memory and the leaks of every source are watched. It also compiles them without precompiled headers.
if(FB_SANITIZE AND FB_SANITIZED_SOURCES)
  file(STRINGS "${FB_SANITIZED_SOURCES}" sanitized)
  list(TRANSFORM sanitized PREPEND "${PROJECT_SOURCE_DIR}/")
  foreach(source ${sanitized})
    if(NOT EXISTS "${source}")
      message(FATAL_ERROR "${FB_SANITIZED_SOURCES}: there is no ${source}")
    endif()
  endforeach()
  list(LENGTH sanitized count)
  if(count EQUAL 0)
    message(FATAL_ERROR "${FB_SANITIZED_SOURCES} names no source")
  endif()
  message(NOTICE "-- ${FB_SANITIZE}: ${count} sources of the library are instrumented")
  set_property(GLOBAL PROPERTY FB_SANITIZED "${sanitized}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${FB_SANITIZED_SOURCES}")
endif()

# fb_sanitize(<source>...): instruments those of a target's sources that FB_SANITIZED_SOURCES names.
function(fb_sanitize)
  get_property(sanitized GLOBAL PROPERTY FB_SANITIZED)
  if(NOT sanitized)
    return()
  endif()
  set(quiet "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(quiet ";-Wno-maybe-uninitialized")  # see above
  endif()
  foreach(source ${ARGN})
    if(source IN_LIST sanitized)
      set_source_files_properties("${source}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON
        COMPILE_OPTIONS "-O1;-fsanitize=${FB_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer;-D_GLIBCXX_ASSERTIONS${quiet}")
    endif()
  endforeach()
endfunction()

# fb_sanitize_tests(<source>...): instruments the tests' sources that ask whether there are sanitizers.
function(fb_sanitize_tests)
  get_property(sanitized GLOBAL PROPERTY FB_SANITIZED)
  if(NOT sanitized)
    return()
  endif()
  string(REGEX REPLACE ",?undefined" "" sanitizer "${FB_SANITIZE}")
  foreach(source ${ARGN})
    file(STRINGS "${source}" asks REGEX "__SANITIZE_|FB_SANITIZED" LIMIT_COUNT 1)
    if(asks)
      set_source_files_properties("${source}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON
        COMPILE_OPTIONS "-fsanitize=${sanitizer};-Wno-maybe-uninitialized")
    endif()
  endforeach()
endfunction()
