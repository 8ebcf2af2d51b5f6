// Any bytes as a token file, with and without checksums that hold: refused, or every token is in the
// vocabulary.
#include <cstring>
#include <string>
#include <vector>

#include "fullbore/base/hash.h"
#include "fullbore/data/token_layout.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  TokenHeader header{};
  std::memcpy(&header, data, std::min(size, sizeof header));
  // The key that the file claims, of which a real one is at most this large.
  const TokenKey key{header.text_bytes, header.text_hash, header.tokenizer_hash,
                     header.vocabulary_size % 0x110000, header.tokens % (size + 1)};
  if (size >= sizeof header + 8 && (header.version & 0x100) != 0) {  // let the checksums hold
    header = make_token_header(key);
    std::memcpy(bytes.data(), &header, sizeof header);
    const uint64_t digest = hash_bytes(bytes.data() + sizeof header, size - sizeof header - 8);
    std::memcpy(bytes.data() + size - 8, &digest, 8);
  }
  const MemoryFile file(bytes.data(), bytes.size());
  const Result<TokenFile> opened = TokenFile::open(file.path(), key);
  if (!opened.ok()) return 0;
  std::vector<int32_t> tokens(static_cast<size_t>(opened.value().size()) + 1);
  opened.value().copy(0, opened.value().size(), tokens.data());
  for (const int32_t token : tokens)
    require(token >= 0 && (token < opened.value().vocabulary_size() || token == 0));
  return 0;
}
