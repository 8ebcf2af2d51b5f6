#include "fullbore/app/temporary_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "fullbore/base/error.h"

namespace fullbore {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(const std::string& purpose) {
  std::string path = (fs::temp_directory_path() / ("fullbore-" + purpose + "-XXXXXX")).string();
  if (!::mkdtemp(path.data()))
    throw DataError(
        fmt::format("cannot make {}: {}", path, std::generic_category().message(errno)));
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

}  // namespace fullbore
