#include "tests/support/gathered.h"

#include <filesystem>

#include "tests/support/paths.h"

namespace fullbore::testing {

std::set<std::string> absent_workloads() {
  namespace fs = std::filesystem;
  const fs::path workloads = fs::path(source_folder()) / "workloads";
  std::set<std::string> absent;
  for (const char* folder : {"configs", "docs/guide"})
    for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / folder)) {
      if (!entry.is_symlink()) continue;
      const fs::path target =
          (entry.path().parent_path() / fs::read_symlink(entry)).lexically_normal();
      const fs::path within = target.lexically_relative(workloads.lexically_normal());
      if (!within.empty() && *within.begin() != ".." && !fs::exists(workloads / *within.begin()))
        absent.insert(within.begin()->string());
    }
  return absent;
}

}  // namespace fullbore::testing
