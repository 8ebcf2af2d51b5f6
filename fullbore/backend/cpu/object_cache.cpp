#include "fullbore/backend/cpu/object_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"

namespace fullbore::jit {
namespace {

constexpr std::string_view kMagic = "fullbore object 1\n";

// Followed by the key and the object. The checksum covers both.
struct Header {
  uint64_t key_bytes = 0;
  uint64_t object_bytes = 0;
  uint64_t checksum = 0;
};

uint64_t checksum(std::string_view key, std::string_view object) {
  return hash_text(object, hash_text(key));
}

}  // namespace

std::string ObjectCache::path(std::string_view key) const {
  return fmt::format("{}/{}{}.fbo", folder_, hash_hex(hash_text(key)), hash_hex(hash_text(key, 1)));
}

std::optional<std::string> ObjectCache::find(std::string_view key) const {
  const Result<std::string> file = read_file(path(key));
  if (!file.ok()) return std::nullopt;
  std::string_view rest = file.value();
  Header header;
  if (rest.size() < kMagic.size() + sizeof(header) || rest.substr(0, kMagic.size()) != kMagic)
    return std::nullopt;
  std::memcpy(&header, rest.data() + kMagic.size(), sizeof(header));
  rest.remove_prefix(kMagic.size() + sizeof(header));
  if (header.key_bytes != key.size() || rest.size() < key.size() ||
      header.object_bytes != rest.size() - key.size() || rest.substr(0, key.size()) != key)
    return std::nullopt;
  rest.remove_prefix(key.size());
  if (header.checksum != checksum(key, rest)) return std::nullopt;
  return std::string(rest);
}

// Not synced: an entry that a power cut tears is found out by its checksum and made again.
void ObjectCache::put(std::string_view key, std::string_view object) const {
  static std::atomic<int> counter{0};
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  const std::string target = path(key);
  const std::string temporary = fmt::format("{}.{}.{}", target, ::getpid(), counter++);
  const Header header{key.size(), object.size(), checksum(key, object)};
  std::ofstream file(temporary, std::ios::binary);
  file.write(kMagic.data(), static_cast<std::streamsize>(kMagic.size()));
  file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  file.write(key.data(), static_cast<std::streamsize>(key.size()));
  file.write(object.data(), static_cast<std::streamsize>(object.size()));
  file.close();
  if (file.good())
    std::filesystem::rename(temporary, target, ignored);
  else
    std::filesystem::remove(temporary, ignored);
}

}  // namespace fullbore::jit
