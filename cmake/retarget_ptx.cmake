# cmake -DTEXT=NAME.ptx -P: PTX of kernels NAME_sm90a.cpp is for the target that the name says, which PTX 8.0 was the first to
# have. tools/make_ptx does the same.
if(TEXT MATCHES "_sm90a[.]ptx$")
  file(READ "${TEXT}" contents)
  string(REGEX REPLACE "\n[.]version [0-9.]+\n[.]target [a-z0-9_]+" "\n.version 8.0\n.target sm_90a" contents "${contents}")
  file(WRITE "${TEXT}" "${contents}")
endif()
