# cmake -DTEXT=NAME.ptx -P: PTX of kernels NAME_sm90a.cpp is for the target that the name says, which PTX 8.0 was the first to
# have; that of NAME_sm89.cpp for capability 8.9 and later, and of PTX 8.4, the first with products of 8-bit floats by warps. Of
# the former, entries of 384 threads have clusters of two blocks, for which clang 14 has no word.
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
  if(TEXT MATCHES "_sm90a[.]ptx$")
    string(REPLACE "\n.maxntid 384, 1, 1\n"
                   "\n.maxntid 384, 1, 1\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n" contents "${contents}")
  endif()
  file(WRITE "${TEXT}" "${contents}")
endif()
