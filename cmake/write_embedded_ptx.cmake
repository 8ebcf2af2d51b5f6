# cmake -DTEXTS=a.ptx|b.ptx -DSOURCE=out.cpp -P: a source that has the texts by name, as embedded_ptx.h says.
string(REPLACE "|" ";" texts "${TEXTS}")
file(WRITE "${SOURCE}" "#include \"fullbore/device/cuda/embedded_ptx.h\"\n\nnamespace fullbore::cuda {\n\n"
  "std::string_view embedded_ptx(std::string_view file) {\n")
foreach(text ${texts})
  cmake_path(GET text STEM name)
  file(READ "${text}" contents)
  file(APPEND "${SOURCE}" "  if (file == \"${name}\")\n    return R\"ptx(" "${contents}" ")ptx\";\n")
endforeach()
file(APPEND "${SOURCE}" "  return {};\n}\n\n}  // namespace fullbore::cuda\n")
