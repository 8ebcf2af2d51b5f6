#pragma once
#include <set>
#include <string>

namespace fullbore {

/// What passes may know of a device: plain data that a backend fills in, so that no pass includes a
/// backend and no backend a pass.
struct Target {
  std::string name;               ///< "cpu", "null", "interpreter"
  std::set<std::string> claimed;  ///< composite ops that have a kernel of their own
  bool native_bf16 = false;       ///< bf16 contractions run faster than f32
  int threads = 1;
};

}  // namespace fullbore
