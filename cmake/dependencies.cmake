# Every third-party package, found once, here. docs/ARCHITECTURE.md gives the reason for each.
# On Debian, tools/setup.sh installs them all.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(fmt REQUIRED CONFIG)
find_package(spdlog REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(yaml-cpp REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET GLOBAL libzstd)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET GLOBAL libxxhash)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET GLOBAL zlib)
pkg_check_modules(expat REQUIRED IMPORTED_TARGET GLOBAL expat)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET GLOBAL libutf8proc)

# Its flags define macros for all headers (_XOPEN_SOURCE), which the one file that includes it does not need.
pkg_check_modules(ncurses REQUIRED ncursesw)
add_library(fb_ncurses INTERFACE)
target_link_libraries(fb_ncurses INTERFACE ${ncurses_LINK_LIBRARIES})

add_library(fb_yaml INTERFACE)  # yaml-cpp renamed its target in 0.8
target_link_libraries(fb_yaml INTERFACE
  $<IF:$<TARGET_EXISTS:yaml-cpp::yaml-cpp>,yaml-cpp::yaml-cpp,yaml-cpp>)

# fb_import(<target> <header> NAMES <library>... [HINTS <prefix>...]): a library found by header and file.
# For LLVM, whose own package files demand more development packages (libedit, zlib, curl, ...) than linking its shared
# library does.
function(fb_import target header)
  cmake_parse_arguments(import "" "" "NAMES;HINTS" ${ARGN})
  find_path(${target}_INCLUDE_DIR ${header} HINTS ${import_HINTS} PATH_SUFFIXES include)
  find_library(${target}_LIBRARY NAMES ${import_NAMES} HINTS ${import_HINTS} PATH_SUFFIXES lib)
  mark_as_advanced(${target}_INCLUDE_DIR ${target}_LIBRARY)
  if(${target}_INCLUDE_DIR AND ${target}_LIBRARY)
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE "${${target}_LIBRARY}")
    if(NOT ${target}_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      target_include_directories(${target} SYSTEM INTERFACE "${${target}_INCLUDE_DIR}")
    endif()
  endif()
endfunction()

# LLVM: 19 is what we test always, 22 was tested too; others are accepted. Only the one shared library is linked (the component
# archives would add minutes of linking), and only device/cpu sees the headers.
foreach(version 19 22 21 20 18 17 16 15)
  if(NOT TARGET fb_llvm)
    fb_import(fb_llvm llvm/Config/llvm-config.h NAMES LLVM-${version} HINTS /usr/lib/llvm-${version})
  endif()
endforeach()
# For one archive that brings all it needs (tools/pack): LLVM's archives, of which the linker takes what is used, a
# fifth of the shared library, and none of the libraries that the rest of LLVM needs.
option(FB_STATIC_LLVM "Link LLVM's archives in place of its shared library" OFF)
if(FB_STATIC_LLVM AND TARGET fb_llvm)
  find_program(FB_LLVM_CONFIG NAMES llvm-config-19 llvm-config HINTS /usr/lib/llvm-19/bin REQUIRED)
  execute_process(COMMAND "${FB_LLVM_CONFIG}" --link-static --libfiles native nvptx orcjit passes
    OUTPUT_VARIABLE archives OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(archives)
  set_target_properties(fb_llvm PROPERTIES INTERFACE_LINK_LIBRARIES "")
  target_link_libraries(fb_llvm INTERFACE -Wl,--start-group ${archives} -Wl,--end-group z zstd)
  target_link_options(fb_llvm INTERFACE LINKER:--gc-sections LINKER:--as-needed LINKER:--exclude-libs,ALL)
  # device/cuda asks for them by weak names, which take nothing out of an archive.
  foreach(part TargetInfo Target TargetMC AsmPrinter)
    target_link_options(fb_llvm INTERFACE "LINKER:-u,LLVMInitializeNVPTX${part}")
  endforeach()
endif()
if(TARGET fb_llvm)
  file(STRINGS "${fb_llvm_INCLUDE_DIR}/llvm/Config/llvm-config.h" version REGEX "define LLVM_VERSION_STRING")
endif()
if(NOT version MATCHES "\"(1[5-9]|2[0-2])\\.[^\"]*\"")
  message(FATAL_ERROR "LLVM 15 to 22 with its shared library was not found (Debian: llvm-19-dev).")
endif()
message(STATUS "LLVM ${CMAKE_MATCH_0}: ${fb_llvm_LIBRARY}")

if(FB_TESTS)
  find_package(GTest REQUIRED CONFIG)
endif()
if(FB_BENCH)
  find_package(benchmark REQUIRED CONFIG)
endif()
