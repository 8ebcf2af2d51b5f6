#include "fullbore/base/content_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using FileClock = fs::file_time_type::clock;

constexpr std::string_view kMagic = "fullbore object 1\n";
constexpr std::string_view kSuffix = ".fbo";
/// Entries found are marked as wanted, but no oftener.
constexpr std::chrono::hours kMarkAfter{1};
/// A temporary file of such an age is of a process that is no more.
constexpr std::chrono::hours kAbandonedAfter{1};

// Followed by the key and the content. The checksum covers both.
struct Header {
  uint64_t key_bytes = 0;
  uint64_t content_bytes = 0;
  uint64_t checksum = 0;
};

uint64_t checksum(std::string_view key, std::string_view content) {
  return hash_text(content, hash_text(key));
}

struct Entry {
  fs::path path;
  fs::file_time_type wanted;
  uint64_t bytes = 0;
};

/// The folder's entries; temporary files that were left behind are removed.
std::vector<Entry> entries_of(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    std::error_code gone;  // another process may have been quicker
    const Entry entry{file.path(), file.last_write_time(gone), file.file_size(gone)};
    const std::string name = entry.path.filename().string();
    if (gone || name.find(kSuffix) == std::string::npos) continue;  // not ours
    if (name.ends_with(kSuffix))
      entries.push_back(entry);
    else if (FileClock::now() - entry.wanted > kAbandonedAfter)
      fs::remove(entry.path, gone);
  }
  return entries;
}

}  // namespace

std::string ContentCache::path(std::string_view key) const {
  return fmt::format("{}/{}{}{}", folder_, hash_hex(hash_text(key)), hash_hex(hash_text(key, 1)),
                     kSuffix);
}

std::optional<std::string> ContentCache::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string name = path(key);
  const Result<std::string> file = read_file(name);
  if (!file.ok()) return std::nullopt;
  std::string_view rest = file.value();
  Header header;
  if (rest.size() < kMagic.size() + sizeof(header) || rest.substr(0, kMagic.size()) != kMagic)
    return std::nullopt;
  std::memcpy(&header, rest.data() + kMagic.size(), sizeof(header));
  rest.remove_prefix(kMagic.size() + sizeof(header));
  if (header.key_bytes != key.size() || rest.size() < key.size() ||
      header.content_bytes != rest.size() - key.size() || rest.substr(0, key.size()) != key)
    return std::nullopt;
  rest.remove_prefix(key.size());
  if (header.checksum != checksum(key, rest)) return std::nullopt;
  std::error_code ignored;  // of a cache that is read-only nothing goes
  const FileClock::time_point now = FileClock::now();
  if (now - fs::last_write_time(name, ignored) > kMarkAfter)
    fs::last_write_time(name, now, ignored);
  return std::string(rest);
}

// Not synced: an entry that a power cut tears is found out by its checksum and made again.
void ContentCache::put(std::string_view key, std::string_view content) const {
  if (folder_.empty()) return;
  static std::atomic<int> counter{0};
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  const auto bytes = static_cast<int64_t>(key.size() + content.size());
  if (unseen_bytes_.fetch_sub(bytes) < bytes) make_room();
  const std::string target = path(key);
  const std::string temporary = fmt::format("{}.{}.{}", target, ::getpid(), counter++);
  const Header header{key.size(), content.size(), checksum(key, content)};
  std::ofstream file(temporary, std::ios::binary);
  file.write(kMagic.data(), static_cast<std::streamsize>(kMagic.size()));
  file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  file.write(key.data(), static_cast<std::streamsize>(key.size()));
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file.good())
    fs::rename(temporary, target, ignored);
  else
    fs::remove(temporary, ignored);
}

// To three quarters of what may be, so that the folder is seldom looked through.
void ContentCache::make_room() const {
  std::vector<Entry> entries = entries_of(folder_);
  std::ranges::sort(entries, std::ranges::greater{}, &Entry::wanted);
  const uint64_t most = most_bytes_ / 4 * 3;
  uint64_t kept = 0;
  for (const Entry& entry : entries) {
    std::error_code ignored;
    if (kept + entry.bytes > most)
      fs::remove(entry.path, ignored);
    else
      kept += entry.bytes;
  }
  unseen_bytes_ = static_cast<int64_t>(most_bytes_ - most);
}

}  // namespace fullbore
