// Any bytes as a token shard, with and without checksums that hold: refused, or every token is in the
// vocabulary and every document and file has its place.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "fullbore/data/token_corpus.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

namespace {

constexpr size_t kFrame = sizeof(TokenHeader) + sizeof(TokenFooter);

/// Lets all checksums of a shard of one block hold, so that what lies behind them is reached.
void mend(std::string& bytes) {
  TokenHeader header;
  TokenFooter footer;
  std::memcpy(&header, bytes.data(), sizeof header);
  char* const footer_at = bytes.data() + bytes.size() - sizeof footer;
  std::memcpy(&footer, footer_at, sizeof footer);
  std::memcpy(header.magic, kTokenMagic, sizeof kTokenMagic);
  header.version = kTokenVersion;
  header.header_hash = token_header_hash(header);
  const size_t payload = bytes.size() - kFrame - 8;
  const uint64_t block = hash_bytes(bytes.data() + sizeof header, payload);
  footer.blocks_hash = hash_bytes(&block, sizeof block);
  footer.footer_hash = token_footer_hash(footer);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(footer_at - sizeof block, &block, sizeof block);
  std::memcpy(footer_at, &footer, sizeof footer);
}

void check(const TokenCorpus& corpus) {
  std::vector<int32_t> tokens(static_cast<size_t>(corpus.size()));
  corpus.copy(0, corpus.size(), tokens.data());
  for (const int32_t token : tokens) require(token >= 0 && token < corpus.vocabulary_size());
  int64_t end = 0;
  for (int64_t i = 0; i < corpus.documents(); ++i) {
    require(corpus.document(i).begin == end && corpus.document(i).size() >= 0);
    end = corpus.document(i).end;
  }
  require(end == corpus.size());
  const TokenSpan last = corpus.document(corpus.document_of(corpus.size() - 1));
  require(last.begin < corpus.size() && last.end == corpus.size());
  for (int64_t i = 0; i < corpus.files(); ++i)
    require(corpus.file_begin(i) <= corpus.file_begin(i + 1));
  corpus.tokenizer().ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const bool mended : {false, true}) {
    if (mended) {
      if (size < kFrame + 16) return 0;
      mend(bytes);
    }
    const MemoryFile file(bytes.data(), bytes.size());
    const Result<TokenCorpus> corpus = TokenCorpus::open({file.path()});
    if (corpus.ok()) check(corpus.value());
  }
  return 0;
}
