#include "fullbore/base/cache_directory.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "fullbore/base/cache_key.h"
#include "fullbore/base/files.h"
#include "fullbore/base/private_folder.h"

namespace fullbore {
namespace {

/// An empty variable counts as unset, as the XDG base directory specification asks.
const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

/// By the environment; "" if it says nothing. Of XDG's variables relative paths count as unset, as that
/// specification asks: they would mean whatever folder the command is started in.
std::string named_folder() {
  if (const char* own = variable("FULLBORE_CACHE")) return own;
  if (const char* shared = variable("XDG_CACHE_HOME"); shared && *shared == '/')
    return std::string(shared) + "/fullbore";
  if (const char* home = variable("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/fullbore";
  return "";
}

/// A folder that goes with the process that made it, not with children that were forked from it.
class TemporaryCache {
 public:
  static TemporaryCache& instance() {
    static TemporaryCache cache;
    return cache;
  }
  ~TemporaryCache() {
    std::error_code ignored;
    if (!path_.empty() && owner_ == ::getpid()) std::filesystem::remove_all(path_, ignored);
  }

  /// Made when it is first asked for; "" where that fails.
  std::string path() {
    const std::lock_guard lock(mutex_);
    if (!path_.empty() && owner_ == ::getpid()) return path_;
    const char* const folder = variable("TMPDIR");
    std::string name = fmt::format("{}/fullbore-XXXXXX", folder ? folder : "/tmp");
    path_ = ::mkdtemp(name.data()) == nullptr ? "" : name;  // mode 0700
    owner_ = ::getpid();
    return path_;
  }

  /// Says once that what is kept there is not kept for long.
  void warn(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (warned_) return;
    warned_ = true;
    fmt::print(stderr, "fullbore: warning: no lasting cache: {}. A temporary one is used\n",
               reason);
  }

 private:
  std::mutex mutex_;
  std::string path_;
  pid_t owner_ = -1;
  bool warned_ = false;
};

std::string temporary_folder(const std::string& reason) {
  TemporaryCache& cache = TemporaryCache::instance();
  cache.warn(reason);
  return cache.path();
}

/// Of the root, of `what` in it, and with `keyed` of the key; "" if all is well.
std::string problem_of(std::string_view what, bool keyed) {
  const std::string root = named_folder();
  if (root.empty()) return "none of FULLBORE_CACHE, XDG_CACHE_HOME and HOME says where to keep it";
  if (const auto folder = open_private_folder(root, Readers::anyone); !folder.ok())
    return folder.error();
  if (!what.empty())
    if (const auto folder = open_private_folder(fmt::format("{}/{}", root, what)); !folder.ok())
      return folder.error();
  return keyed ? cache_key().missing : "";
}

/// "" where there is no place.
std::string folder_for(std::string_view what, bool keyed) {
  const std::string problem = problem_of(what, keyed);
  const std::string root = problem.empty() ? named_folder() : temporary_folder(problem);
  if (root.empty() || what.empty()) return root;
  std::string folder = fmt::format("{}/{}", root, what);
  if (!problem.empty() && !open_private_folder(folder).ok()) return "";
  return folder;
}

std::string lasting_or_temporary(std::string_view what) {
  std::string folder = folder_for(what, false);
  if (folder.empty())
    throw DataError(
        "there is no folder for caches: set FULLBORE_CACHE to a folder of your own, or TMPDIR");
  return folder;
}

}  // namespace

std::string cache_directory() { return lasting_or_temporary(""); }

std::string cache_directory(std::string_view what) { return lasting_or_temporary(what); }

std::string compile_cache_directory(std::string_view what) {
  const char* const setting = variable("FULLBORE_COMPILE_CACHE");
  if (setting != nullptr && std::string_view(setting) == "off") return "";
  return folder_for(what, true);
}

std::string cache_directory_problem() { return problem_of("", true); }

}  // namespace fullbore
