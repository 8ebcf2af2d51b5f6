// Any bytes as an entry of the cache of compiled kernels: nothing is found in it but what was put under this key, and
// nothing at all once a byte of it is another.
#include "fullbore/base/content_cache.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/base/files.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/memory_folder.h"

using namespace fullbore;
using fullbore::testing::MemoryFolder;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  static const SipKey secret = {1, 2};
  static const ContentCache cache(folder.path(), uint64_t{1} << 20, secret);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kKey = "key";
  const std::string name = std::filesystem::path(cache.path(kKey)).filename();
  folder.put(name, bytes);
  const std::optional<std::string> found = cache.find(kKey);
  // The corpus holds the one entry that is right.
  require(!found || *found == "content");
  cache.put(kKey, bytes);
  require(cache.find(kKey) == bytes);
  std::string entry = read_file(cache.path(kKey)).take_or_throw();
  const size_t at = size == 0 ? 0 : (data[0] * size_t{251} + data[size - 1]) % entry.size();
  entry[at] = static_cast<char>(entry[at] ^ 0x40);
  folder.put(name, entry);
  require(!cache.find(kKey));
  return 0;
}
