# How our own code is compiled and linked. Everything here is either a speed-up of the build that may be
# absent (ccache, mold, lld) or a property of the target `fb_flags`, which every target of ours links.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

# ccache. NOHASHDIR and BASEDIR let build/dev, build/ci and a second clone share results; the recorded
# paths are made relative by -ffile-prefix-map below, so a shared object is also a correct one. SLOPPINESS is what
# ccache asks for before it stores objects made with precompiled headers; none of ours looks at __TIME__.
find_program(FB_CCACHE ccache)
if(FB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND};-E;env;CCACHE_NOHASHDIR=1;CCACHE_BASEDIR=${PROJECT_SOURCE_DIR};CCACHE_ABSSTDERR=1;CCACHE_SLOPPINESS=pch_defines,time_macros;${FB_CCACHE}")
endif()
file(RELATIVE_PATH build_to_source "${CMAKE_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")

# Linker: mold, else lld, else the compiler's default.
include(CheckLinkerFlag)
foreach(linker mold lld)
  find_program(FB_LINKER_${linker} NAMES ${linker} ld.${linker})
  if(FB_LINKER_${linker})
    check_linker_flag(CXX -fuse-ld=${linker} FB_USE_${linker})
    if(FB_USE_${linker})
      add_link_options(-fuse-ld=${linker})
      break()
    endif()
  endif()
endforeach()

# Kept plans are told apart by it (fullbore/base/build_id.h); not every compiler asks for one by default.
add_link_options(LINKER:--build-id)

add_library(fb_flags INTERFACE)
target_include_directories(fb_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(fb_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion
  # Paths in messages and debug info start at the repository root: "one/model.cpp:141". The second form is
  # what ccache makes of the first.
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${build_to_source}="
  # Clang counts -Wsign-conversion under -Wconversion, GCC does not: hold both to the same rule.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>
  # Nobody interposes our functions: let libfullbore inline across its own exported symbols.
  -fno-semantic-interposition
  # So that ccache, which asks for the preprocessed text, sees which precompiled header went into it.
  $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
  $<$<CONFIG:Debug>:-fno-omit-frame-pointer>)
target_compile_definitions(fb_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

if(FB_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "FB_FUZZ needs clang (libFuzzer); use `cmake --preset fuzz`.")
  endif()
  target_compile_options(fb_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
