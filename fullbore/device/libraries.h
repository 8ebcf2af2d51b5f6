#pragma once
#include <string>
#include <vector>

namespace fullbore {

/// A third-party library that does work for a backend.
struct Library {
  std::string name;     ///< "oneDNN"
  std::string version;  ///< as loaded, "2.6.3"
  std::string purpose;
};
std::vector<Library> backend_libraries();

}  // namespace fullbore
