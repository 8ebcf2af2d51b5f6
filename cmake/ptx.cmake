# fb_embed_ptx(<target>): the PTX of fullbore/device/cuda/kernels/*.cpp as one more source of the target, which
# fullbore/device/cuda/embedded_ptx.h declares. Compiled here where clang 14 is, with which the ready PTX in
# fullbore/device/cuda/ptx was made too; elsewhere that is taken. (tools/make_ptx refreshes it, and a test compares.)
# Kernels NAME_sm90a.cpp have instructions of compute capability 9.0 alone, and NAME_sm89.cpp of 8.9 and later, in inline
# assembly that clang 14 passes on as it stands: it compiles them as it does all others, and cmake/retarget_ptx.cmake writes the target in.
find_program(FB_PTX_COMPILER NAMES clang++-14 DOC "Compiles kernels of NVIDIA GPUs; the ready PTX is used without it")

function(fb_embed_ptx target)
  set(folder "${PROJECT_SOURCE_DIR}/fullbore/device/cuda")
  file(GLOB kernels CONFIGURE_DEPENDS "${folder}/kernels/*.cpp")
  file(GLOB headers CONFIGURE_DEPENDS "${folder}/kernels/*.h")
  set(texts "")
  foreach(kernel ${kernels})
    cmake_path(GET kernel STEM name)
    set(text "${folder}/ptx/${name}.ptx")
    if(FB_PTX_COMPILER)
      set(text "${CMAKE_CURRENT_BINARY_DIR}/ptx/${name}.ptx")
      add_custom_command(OUTPUT "${text}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/ptx"
        COMMAND "${FB_PTX_COMPILER}" "@${folder}/kernels/clang.flags" -o "${text}" "${kernel}"
        COMMAND "${CMAKE_COMMAND}" "-DTEXT=${text}" -P "${PROJECT_SOURCE_DIR}/cmake/retarget_ptx.cmake"
        WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
        DEPENDS "${kernel}" ${headers} "${folder}/kernels/clang.flags" "${PROJECT_SOURCE_DIR}/cmake/retarget_ptx.cmake"
        VERBATIM)
    endif()
    list(APPEND texts "${text}")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/embedded_ptx.cpp")
  list(JOIN texts "|" joined)
  add_custom_command(OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DTEXTS=${joined}" "-DSOURCE=${source}" -P "${PROJECT_SOURCE_DIR}/cmake/write_embedded_ptx.cmake"
    DEPENDS ${texts} "${PROJECT_SOURCE_DIR}/cmake/write_embedded_ptx.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${source}")
endfunction()
