# The build's vocabulary. A folder becomes a target by one call; sources are globbed, so adding a file
# needs no edit here (CONFIGURE_DEPENDS re-checks the folders at the start of each build).

# fb_sources(OUT_SOURCES OUT_HEADERS folder): the .cpp and .h files below a folder; empty if it is absent.
function(fb_sources out_sources out_headers folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${folder}/*.h")
  set(${out_sources} "${sources}" PARENT_SCOPE)
  set(${out_headers} "${headers}" PARENT_SCOPE)
endfunction()

# Declares headers of a target, so that the target all_verify_interface_header_sets compiles each alone.
# That target is not part of `all`: `tools/check alone` takes from it how a header is compiled.
function(fb_declare_headers target scope)
  if(ARGN)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${ARGN})
  endif()
endfunction()

# The target fb_room_headers: what most sources of the rooms include, parsed once. (Not JSON: inline code of a header
# costs every source that has it, parsed or not.) A source includes what it uses all the same: `tools/check alone`
# compiles without any precompiled header.
function(fb_room_headers)
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/headers.cpp" CONTENT "")
  add_library(fb_room_headers OBJECT "${CMAKE_CURRENT_BINARY_DIR}/headers.cpp")
  target_link_libraries(fb_room_headers PRIVATE fb_flags fmt::fmt)
  target_precompile_headers(fb_room_headers PRIVATE
    <fmt/format.h> <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory>
    <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
endfunction()

# fb_room(<name> [COLD] [LIBRARIES <lib>...]): fullbore/<name>, without the subfolders that have a CMakeLists.txt and call
# fb_room() themselves, becomes the OBJECT library fullbore_<name>, which libfullbore.so collects. OBJECT,
# not STATIC: a static library loses the registrars nobody refers to. A room that has no .cpp yet is an
# INTERFACE library, so its headers are checked all the same. COLD: no step of a training waits for its code, most of which
# is made of templates (JSON, command lines). A quarter to a third of the time that they take to compile is -O2's.
function(fb_room name)
  cmake_parse_arguments(room "COLD" "" "LIBRARIES" ${ARGN})
  string(REPLACE "/" "_" target fullbore_${name})
  set(folder "${PROJECT_SOURCE_DIR}/fullbore/${name}")
  fb_sources(sources headers "${folder}")
  file(GLOB inner CONFIGURE_DEPENDS "${folder}/*/CMakeLists.txt")
  list(TRANSFORM inner REPLACE "/CMakeLists\\.txt$" "")
  foreach(subfolder ${inner})
    list(FILTER sources EXCLUDE REGEX "^${subfolder}/")
    list(FILTER headers EXCLUDE REGEX "^${subfolder}/")
    add_subdirectory("${subfolder}")
  endforeach()
  # Code of a GPU is compiled by cmake/ptx.cmake.
  list(FILTER sources EXCLUDE REGEX "/device/cuda/kernels/")
  list(FILTER headers EXCLUDE REGEX "/device/cuda/kernels/")
  # Hand-written vector loops of x86-64 are files of their own; each has a baseline sibling for all processors.
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(FILTER sources EXCLUDE REGEX "_avx[0-9a-z_]*\\.cpp$")
  endif()
  if(sources)
    add_library(${target} OBJECT ${sources})
    fb_sanitize(${sources})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} fb_flags ${room_LIBRARIES})
  if(sources)
    target_precompile_headers(${target} REUSE_FROM fb_room_headers)
    if(room_COLD)
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
  endif()
  fb_declare_headers(${target} ${scope} ${headers})
  set_property(GLOBAL APPEND PROPERTY FB_ROOMS ${target})
endfunction()

# Collects the rooms declared so far into the shared library `fullbore`.
function(fb_library)
  get_property(rooms GLOBAL PROPERTY FB_ROOMS)
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/empty.cpp" CONTENT "")  # lets it link with no room filled
  add_library(fullbore SHARED "${CMAKE_CURRENT_BINARY_DIR}/empty.cpp")
  target_link_libraries(fullbore
    PUBLIC fb_flags Threads::Threads fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json
    PRIVATE ${rooms})
  set_target_properties(fullbore PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  # A forgotten source fails here and not in a caller. (Clang leaves its sanitizers' symbols to the executable.)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(fullbore PRIVATE LINKER:--no-undefined)
  endif()
  target_link_options(fullbore INTERFACE LINKER:--allow-shlib-undefined)
endfunction()

# fb_workload([LIBRARIES <lib>...]), called by workloads/<name>/CMakeLists.txt: the folder, without its tests, becomes the
# OBJECT library fullbore_<name>, which libfullbore_workloads.so collects.
function(fb_workload)
  cmake_parse_arguments(workload "" "" "LIBRARIES" ${ARGN})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME name)
  set(target fullbore_${name})
  fb_sources(sources headers "${CMAKE_CURRENT_SOURCE_DIR}")
  list(FILTER sources EXCLUDE REGEX "/${name}/(tests|bench)/")
  list(FILTER headers EXCLUDE REGEX "/${name}/(tests|bench)/")
  add_library(${target} OBJECT ${sources})
  fb_sanitize(${sources})
  target_link_libraries(${target} PUBLIC fullbore PRIVATE ${workload_LIBRARIES})
  target_precompile_headers(${target} REUSE_FROM fb_room_headers)
  fb_declare_headers(${target} PUBLIC ${headers})
  set_property(GLOBAL APPEND PROPERTY FB_WORKLOADS ${target})
endfunction()

# The folders of workloads/ -> libfullbore_workloads.so, which is there even with none of them.
function(fb_workloads)
  file(GLOB folders CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/workloads/*/CMakeLists.txt")
  foreach(folder ${folders})
    cmake_path(GET folder PARENT_PATH folder)
    add_subdirectory("${folder}")
  endforeach()
  get_property(workloads GLOBAL PROPERTY FB_WORKLOADS)
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/no_workload.cpp" CONTENT "")
  add_library(fullbore_workloads SHARED "${CMAKE_CURRENT_BINARY_DIR}/no_workload.cpp")
  target_link_libraries(fullbore_workloads PUBLIC fullbore PRIVATE ${workloads})
  target_link_options(fullbore_workloads INTERFACE LINKER:--no-as-needed)  # its registrars are its only users
  set_target_properties(fullbore_workloads PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endfunction()

# What --version tells, for one source alone: a new commit recompiles nothing else. It is the commit when CMake
# last ran, "+" with uncommitted changes; a source archive has none.
function(fb_version_facts source)
  execute_process(COMMAND git -c "safe.directory=${PROJECT_SOURCE_DIR}" describe --always --dirty=+ --abbrev=12 --exclude *
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT commit)
    set(commit "unknown")
  endif()
  set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS
    "FB_VERSION=\"${PROJECT_VERSION}\";FB_COMMIT=\"${commit}\";FB_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\"")
endfunction()

# apps/*.cpp -> bin/fullbore: the commands of fullbore/app, with all workloads.
function(fb_cli)
  fb_sources(sources headers "${PROJECT_SOURCE_DIR}/apps")
  if(sources)
    add_executable(fullbore_cli ${sources})
    set_target_properties(fullbore_cli PROPERTIES OUTPUT_NAME fullbore)
    target_link_libraries(fullbore_cli PRIVATE fullbore fullbore_workloads)
  endif()
endfunction()

# tests/<room>/*.cpp -> bin/test_<room>, one ctest entry each: starting one process per case would cost
# more than the cases do. Rooms of minutes are dealt out to SHARDS entries, bin/test_<room> being the same, so that
# two processors have them done together. fb_tests(<room> [FOLDER <folder>] [EXCEPT <subfolder>...] [SHARDS <n>]
# [AT_LEVELS] [LIBRARIES <lib>...]);
# an absent or empty folder is skipped. AT_LEVELS adds entries test_<room>@<level> that run it as on lesser processors
# (base/processor.h); ctest lists as skipped what this machine lacks. Not with sanitizers, where it would take too long.
# Every one of them begins with the same precompiled headers, those of the target fb_test_headers.
function(fb_tests room)
  cmake_parse_arguments(tests "AT_LEVELS" "FOLDER;SHARDS" "EXCEPT;LIBRARIES" ${ARGN})
  if(NOT tests_FOLDER)
    set(tests_FOLDER "${CMAKE_CURRENT_SOURCE_DIR}/${room}")
  endif()
  fb_sources(sources headers "${tests_FOLDER}")
  foreach(subfolder ${tests_EXCEPT})
    list(FILTER sources EXCLUDE REGEX "^${tests_FOLDER}/${subfolder}/")
  endforeach()
  if(NOT sources)
    return()
  endif()
  set(target test_${room})
  add_executable(${target} ${sources})
  fb_sanitize_tests(${sources})
  target_link_libraries(${target} PRIVATE
    fullbore $<TARGET_NAME_IF_EXISTS:fb_test_support>
    ${tests_LIBRARIES} GTest::gmock GTest::gtest_main)
  fb_fast_to_compile(${target})
  target_precompile_headers(${target} REUSE_FROM fb_test_headers)
  if(TARGET fullbore_cli AND NOT CMAKE_CROSSCOMPILING)
    add_dependencies(${target} fullbore_cli fullbore_tiny)
  endif()
  set(levels "")
  if(tests_AT_LEVELS AND NOT FB_SANITIZE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(levels x86-64-v2 avx2 avx512 avx512-bf16)
  endif()
  fb_test_entries(${target} "" "${tests_SHARDS}" ${target})
  foreach(level ${levels})
    fb_test_entries(${target} "@${level}" "${tests_SHARDS}" at_level ${level} $<TARGET_FILE:${target}>)
  endforeach()
endfunction()

# fb_workload_tests([SHARDS <n>] [COMMAND_SHARDS <n>] [AT_LEVELS] [LIBRARIES <lib>...]), called by
# workloads/<name>/tests/CMakeLists.txt: the folder becomes bin/test_<name>, but for commands/, which runs the real
# command and becomes bin/test_<name>_commands, and fuzz/ (tests/CMakeLists.txt).
function(fb_workload_tests)
  cmake_parse_arguments(tests "AT_LEVELS" "SHARDS;COMMAND_SHARDS" "LIBRARIES" ${ARGN})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR PARENT_PATH folder)
  cmake_path(GET folder FILENAME name)
  set(options "")
  if(tests_AT_LEVELS)
    list(APPEND options AT_LEVELS)
  endif()
  if(tests_SHARDS)
    list(APPEND options SHARDS ${tests_SHARDS})
  endif()
  fb_tests(${name} FOLDER "${CMAKE_CURRENT_SOURCE_DIR}" EXCEPT commands fuzz ${options}
    LIBRARIES fullbore_workloads ${tests_LIBRARIES})
  set(options "")
  if(tests_COMMAND_SHARDS)
    list(APPEND options SHARDS ${tests_COMMAND_SHARDS})
  endif()
  fb_tests(${name}_commands FOLDER "${CMAKE_CURRENT_SOURCE_DIR}/commands" ${options}
    LIBRARIES fullbore_workloads ${tests_LIBRARIES})
endfunction()

# Entries of ctest, <target><suffix> or one a shard, for a command (and its arguments) that runs tests of GoogleTest.
# Each has a folder of its own as ::testing::TempDir(): the same tests run at other levels at the same time.
function(fb_test_entries target suffix shards)
  set(indices NONE)
  set(properties TIMEOUT 1200 SKIP_RETURN_CODE 77)
  if(shards)
    math(EXPR last "${shards} - 1")
    set(indices RANGE ${last})
    list(APPEND properties COST ${shards})  # the longest begin first
  endif()
  foreach(index ${indices})
    set(name "${target}${suffix}")
    unset(environment)
    if(shards)
      math(EXPR number "${index} + 1")
      set(name "${target}_${number}${suffix}")
      set(environment "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index};")
    endif()
    set(scratch "${CMAKE_BINARY_DIR}/scratch/${name}")
    file(MAKE_DIRECTORY "${scratch}")
    add_test(NAME ${name} COMMAND ${ARGN} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES ${properties} ENVIRONMENT "${environment}TEST_TMPDIR=${scratch}")
  endforeach()
endfunction()

# Tests spend their time in the library, so nobody gains by optimising or describing them. All of them have the same
# flags, for a precompiled header serves no others: the compiler's own choice of position independence among them.
function(fb_fast_to_compile target)
  target_compile_options(${target} PRIVATE -O0 $<$<CONFIG:Release>:-g0>)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE OFF
    FB_TEST_CODE ON)                    # cmake/sanitizers.cmake: what sanitizers look at
endfunction()

# The target fb_test_headers: what nearly every test includes, parsed once.
function(fb_test_headers)
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/headers.cpp" CONTENT "")
  add_library(fb_test_headers OBJECT "${CMAKE_CURRENT_BINARY_DIR}/headers.cpp")
  target_link_libraries(fb_test_headers PRIVATE fullbore GTest::gmock)
  fb_fast_to_compile(fb_test_headers)
  target_precompile_headers(fb_test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <algorithm> <filesystem> <functional> <map> <span>)
endfunction()

# bench/<file>.cpp, and those of workloads/*/bench -> bin/bench_<file>, all of them by the target `benches`: neither the
# command nor the tests wait for them. bench/support holds what several of them share.
function(fb_benches)
  add_custom_target(benches)
  fb_sources(sources headers "${PROJECT_SOURCE_DIR}/bench/support")
  add_library(fb_bench_support STATIC EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(fb_bench_support PUBLIC fullbore)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp" "${PROJECT_SOURCE_DIR}/workloads/*/bench/*.cpp")
  foreach(file ${files})
    cmake_path(GET file STEM name)
    add_executable(bench_${name} EXCLUDE_FROM_ALL "${file}")
    add_dependencies(benches bench_${name})
    target_link_libraries(bench_${name} PRIVATE
      fullbore fullbore_workloads fb_bench_support benchmark::benchmark_main)
  endforeach()
endfunction()
