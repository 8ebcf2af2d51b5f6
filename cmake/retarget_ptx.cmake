# cmake -DTEXT=NAME.ptx -P: PTX of kernels NAME_sm90a.cpp is for the target that the name says, which PTX 8.0 was the first to
# have; that of NAME_sm89.cpp for capability 8.9 and later, and of PTX 8.4, the first with products of 8-bit floats by warps.
# tools/make_ptx does the same.
set(target "")
if(TEXT MATCHES "_sm90a[.]ptx$")
  set(target "\n.version 8.0\n.target sm_90a")
elseif(TEXT MATCHES "_sm89[.]ptx$")
  set(target "\n.version 8.4\n.target sm_89")
endif()
if(target)
  file(READ "${TEXT}" contents)
  string(REGEX REPLACE "\n[.]version [0-9.]+\n[.]target [a-z0-9_]+" "${target}" contents "${contents}")
  file(WRITE "${TEXT}" "${contents}")
endif()
