#include "fullbore/base/cache_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>

#include "fullbore/base/files.h"
#include "fullbore/base/private_folder.h"

namespace fullbore {
namespace {

constexpr const char* kName = "cache.key";

SipKey random_key() {
  SipKey key{};
  for (size_t at = 0; at < key.size();) {
    const ssize_t count = ::getrandom(key.data() + at, key.size() - at, 0);
    FB_CHECK(count > 0 || errno == EINTR, "getrandom: {}", system_reason());
    if (count > 0) at += static_cast<size_t>(count);
  }
  return key;
}

std::string_view bytes_of(const SipKey& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

/// Written whole under another name first: no reader sees half a key, and of several makers one wins.
Status make_key(const Descriptor& folder) {
  static std::atomic<int> counter{0};
  const std::string temporary = fmt::format("{}.{}.{}", kName, ::getpid(), counter++);
  ::unlinkat(folder.get(), temporary.c_str(), 0);  // of a process of that number, long gone
  const Descriptor file(::openat(folder.get(), temporary.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.ok()) return Failure{fmt::format("cannot create {}: {}", temporary, system_reason())};
  Status made = write_all(file, bytes_of(random_key()));
  if (made.ok() && ::fsync(file.get()) != 0) made = Failure{system_reason()};
  if (made.ok() && ::linkat(folder.get(), temporary.c_str(), folder.get(), kName, 0) != 0 &&
      errno != EEXIST)
    made = Failure{system_reason()};
  ::unlinkat(folder.get(), temporary.c_str(), 0);
  return made;
}

}  // namespace

std::string state_directory() {
  const auto absolute = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value != nullptr && *value == '/' ? value : "";
  };
  if (const std::string state = absolute("XDG_STATE_HOME"); !state.empty())
    return state + "/fullbore";
  const std::string home = absolute("HOME");
  return home.empty() ? "" : home + "/.local/state/fullbore";
}

Result<SipKey> read_or_make_cache_key(const std::string& path) {
  const Result<Descriptor> folder = open_private_folder(path);
  if (!folder.ok()) return Failure{folder.error()};
  // A key cut short by a power cut is of no use to anybody, and is made anew.
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Result<Descriptor> file = open_private_file(folder.value(), kName, Readers::nobody);
    if (!file.ok()) {
      if (errno != ENOENT) return Failure{fmt::format("{}/{}", path, file.error())};
      if (Status made = make_key(folder.value()); !made.ok())
        return Failure{fmt::format("cannot make the key {}/{}: {}", path, kName, made.error())};
      continue;
    }
    SipKey key{};
    const Result<std::string> bytes = read_all(file.value(), key.size());
    if (bytes.ok() && bytes.value().size() == key.size()) {
      std::ranges::copy(bytes.value(), reinterpret_cast<char*>(key.data()));
      return key;
    }
    ::unlinkat(folder.value().get(), kName, 0);
  }
  return Failure{fmt::format("cannot make the key {}/{}", path, kName)};
}

const CacheKey& cache_key() {
  static std::mutex mutex;
  static std::map<std::string, CacheKey> keys;  // by folder, of which a process has one
  const std::string folder = state_directory();
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = keys.try_emplace(folder);
  CacheKey& key = place->second;
  if (!is_new) return key;
  if (folder.empty()) {
    key = {random_key(), "neither XDG_STATE_HOME nor HOME says where to keep its key"};
  } else {
    const Result<SipKey> kept = read_or_make_cache_key(folder);
    key = kept.ok() ? CacheKey{kept.value(), ""} : CacheKey{random_key(), kept.error()};
  }
  return key;
}

}  // namespace fullbore
