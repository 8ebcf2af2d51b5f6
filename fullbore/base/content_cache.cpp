#include "fullbore/base/content_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/private_folder.h"

namespace fullbore {
namespace {

constexpr std::string_view kMagic = "fullbore object 2\n";
constexpr std::string_view kSuffix = ".fbo";
/// Entries found are marked as wanted, but no oftener.
constexpr time_t kMarkAfterSeconds = 3600;
/// A temporary file of such an age is of a process that is no more.
constexpr time_t kAbandonedAfterSeconds = 3600;

// Followed by the key and the content. The tag covers both and their lengths.
struct Header {
  uint64_t key_bytes = 0;
  uint64_t content_bytes = 0;
  SipTag tag{};
};

SipTag tag_of(const SipKey& secret, std::string_view key, std::string_view content) {
  const uint64_t lengths[] = {key.size(), content.size()};
  SipHash hash(secret);
  hash.add({reinterpret_cast<const char*>(lengths), sizeof lengths});
  hash.add(key);
  hash.add(content);
  return hash.finish();
}

/// In a time that does not tell how many bytes are right.
bool equal(const SipTag& a, const SipTag& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

struct Entry {
  std::string name;
  timespec wanted{};
  uint64_t bytes = 0;
};

bool more_wanted(const Entry& a, const Entry& b) {
  return a.wanted.tv_sec != b.wanted.tv_sec ? a.wanted.tv_sec > b.wanted.tv_sec
                                            : a.wanted.tv_nsec > b.wanted.tv_nsec;
}

/// The folder's entries; temporary files that were left behind are removed.
std::vector<Entry> entries_of(int folder) {
  std::vector<Entry> entries;
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return entries;
  const std::unique_ptr<DIR, int (*)(DIR*)> files(::fdopendir(again), ::closedir);
  if (!files) {
    ::close(again);
    return entries;
  }
  while (const dirent* const file = ::readdir(files.get())) {
    const std::string name = file->d_name;
    struct stat status {};
    if (name.find(kSuffix) == std::string::npos ||  // not ours
        ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;  // another process may have been quicker
    if (name.ends_with(kSuffix))
      entries.push_back({name, status.st_mtim, static_cast<uint64_t>(status.st_size)});
    else if (::time(nullptr) - status.st_mtim.tv_sec > kAbandonedAfterSeconds)
      ::unlinkat(folder, name.c_str(), 0);
  }
  return entries;
}

/// What an entry's bytes hold for the key, if the holder of the secret has written them; or nothing.
std::optional<std::string_view> content_of(std::string_view bytes, const SipKey& secret,
                                           std::string_view key) {
  Header header;
  if (bytes.size() < kMagic.size() + sizeof(header) || bytes.substr(0, kMagic.size()) != kMagic)
    return std::nullopt;
  std::memcpy(&header, bytes.data() + kMagic.size(), sizeof(header));
  bytes.remove_prefix(kMagic.size() + sizeof(header));
  if (header.key_bytes != key.size() || bytes.size() < key.size() ||
      header.content_bytes != bytes.size() - key.size() || bytes.substr(0, key.size()) != key)
    return std::nullopt;
  bytes.remove_prefix(key.size());
  if (!equal(header.tag, tag_of(secret, key, bytes))) return std::nullopt;
  return bytes;
}

std::nullopt_t not_taken(std::string* problem, std::string why) {
  if (problem != nullptr) *problem = std::move(why);
  return std::nullopt;
}

}  // namespace

std::string ContentCache::name(std::string_view key) const {
  return hash_hex(hash_text(key)) + hash_hex(hash_text(key, 1)) + std::string(kSuffix);
}

std::string ContentCache::path(std::string_view key) const { return folder_ + '/' + name(key); }

std::optional<std::string> ContentCache::find(std::string_view key, std::string* problem) const {
  if (folder_.empty()) return std::nullopt;
  const Result<Descriptor> folder = open_private_folder(folder_);
  if (!folder.ok()) return not_taken(problem, folder.error());
  const Result<Descriptor> file = open_private_file(folder.value(), name(key));
  if (!file.ok())
    return errno == ENOENT ? std::nullopt
                           : not_taken(problem, fmt::format("{}: {}", folder_, file.error()));
  const Result<std::string> bytes = read_all(file.value(), most_bytes_);
  if (!bytes.ok())
    return not_taken(problem, fmt::format("cannot read {}: {}", path(key), bytes.error()));
  const std::optional<std::string_view> content = content_of(bytes.value(), secret_, key);
  if (!content)
    return not_taken(
        problem, fmt::format("{} is damaged, or was not written with this user's key", path(key)));
  struct stat status {};
  if (::fstat(file.value().get(), &status) == 0 &&
      ::time(nullptr) - status.st_mtim.tv_sec > kMarkAfterSeconds)
    ::futimens(file.value().get(), nullptr);  // of a cache that is read-only nothing goes
  return std::string(*content);
}

// Not synced: an entry that a power cut tears is found out by its tag and made again.
void ContentCache::put(std::string_view key, std::string_view content, std::string* problem) const {
  if (folder_.empty()) return;
  static std::atomic<int> counter{0};
  const Result<Descriptor> opened = open_private_folder(folder_);
  if (!opened.ok()) {
    not_taken(problem, opened.error());
    return;
  }
  const int folder = opened.value().get();
  const auto bytes = static_cast<int64_t>(key.size() + content.size());
  if (unseen_bytes_.fetch_sub(bytes) < bytes) make_room(folder);
  const std::string target = name(key);
  const std::string temporary = fmt::format("{}.{}.{}", target, ::getpid(), counter++);
  const Header header{key.size(), content.size(), tag_of(secret_, key, content)};
  std::string entry(kMagic);
  entry.append(reinterpret_cast<const char*>(&header), sizeof(header));
  entry += key;
  entry += content;
  const Descriptor file(::openat(folder, temporary.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  std::string reason;
  if (!file.ok()) {
    reason = system_reason();
  } else {
    if (const Status written = write_all(file, entry); !written.ok())
      reason = written.error();
    else if (::renameat(folder, temporary.c_str(), folder, target.c_str()) != 0)
      reason = system_reason();
    if (!reason.empty()) ::unlinkat(folder, temporary.c_str(), 0);
  }
  if (!reason.empty()) not_taken(problem, fmt::format("cannot write to {}: {}", folder_, reason));
}

// To three quarters of what may be, so that the folder is seldom looked through.
void ContentCache::make_room(int folder) const {
  std::vector<Entry> entries = entries_of(folder);
  std::sort(entries.begin(), entries.end(), more_wanted);
  const uint64_t most = most_bytes_ / 4 * 3;
  uint64_t kept = 0;
  for (const Entry& entry : entries) {
    if (kept + entry.bytes > most)
      ::unlinkat(folder, entry.name.c_str(), 0);
    else
      kept += entry.bytes;
  }
  unseen_bytes_ = static_cast<int64_t>(most_bytes_ - most);
}

}  // namespace fullbore
