#include <cstring>
#include <utility>

#include "fullbore/data/token_shard.h"

namespace fullbore {
namespace {

template <class Value>
std::string_view bytes_of(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

}  // namespace

TokenShardWriter::TokenShardWriter(AtomicFile file, std::string tokenizer_json)
    : file_(std::move(file)), tokenizer_json_(std::move(tokenizer_json)) {}

Result<TokenShardWriter> TokenShardWriter::create(const std::string& path, const TokenKey& key,
                                                  const Tokenizer& tokenizer, FileSystem& files) {
  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  TokenHeader header{};
  std::memcpy(header.magic, kTokenMagic, sizeof kTokenMagic);
  header.version = kTokenVersion;
  header.vocabulary_size = static_cast<uint64_t>(tokenizer.vocabulary_size());
  header.token_bytes = token_width(header.vocabulary_size);
  header.content_bytes = key.content_bytes;
  header.content_hash = key.content_hash;
  header.tokenizer_hash = key.tokenizer_hash;
  header.end_of_document = tokenizer.end_of_document();
  header.header_hash = token_header_hash(header);
  if (const Status s = file.value().write({reinterpret_cast<const char*>(&header), sizeof header});
      !s.ok())
    return Failure{s.error()};
  TokenShardWriter writer(std::move(file).value(), tokenizer.to_json());
  writer.token_bytes_ = header.token_bytes;
  return writer;
}

/// Every byte between header and block hashes goes through here, and so into a hash.
Status TokenShardWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min<size_t>(bytes.size(), kTokenBlockBytes - block_.size());
    block_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (block_.size() < kTokenBlockBytes) continue;
    block_hashes_.push_back(hash_text(block_));
    if (Status s = file_.write(block_); !s.ok()) return s;
    block_.clear();
  }
  return success();
}

Status TokenShardWriter::append(std::span<const int32_t> tokens,
                                std::span<const uint64_t> document_ends, uint64_t text_bytes) {
  packed_.resize(tokens.size() * token_bytes_);
  if (token_bytes_ == 4) {
    std::memcpy(packed_.data(), tokens.data(), packed_.size());
  } else {
    auto* out = reinterpret_cast<uint16_t*>(packed_.data());
    for (size_t i = 0; i < tokens.size(); ++i) out[i] = static_cast<uint16_t>(tokens[i]);
  }
  for (const uint64_t end : document_ends) document_ends_.push_back(footer_.tokens + end);
  footer_.tokens += tokens.size();
  footer_.text_bytes += text_bytes;
  return write(bytes_of(packed_));
}

void TokenShardWriter::end_file() {
  if (file_ends_.empty() ? !document_ends_.empty() : file_ends_.back() < document_ends_.size())
    file_ends_.push_back(document_ends_.size());
}

Status TokenShardWriter::commit() {
  if (document_ends_.empty() ? footer_.tokens > 0 : document_ends_.back() < footer_.tokens)
    document_ends_.push_back(footer_.tokens);
  end_file();
  footer_.documents = document_ends_.size();
  footer_.files = file_ends_.size();
  footer_.tokenizer_bytes = tokenizer_json_.size();
  const auto pad = [&](uint64_t bytes) { return std::string(padded_to_8(bytes) - bytes, '\0'); };
  if (Status s = write(pad(footer_.tokens * token_bytes_)); !s.ok()) return s;
  if (Status s = write(bytes_of(document_ends_)); !s.ok()) return s;
  if (Status s = write(bytes_of(file_ends_)); !s.ok()) return s;
  if (Status s = write(tokenizer_json_ + pad(tokenizer_json_.size())); !s.ok()) return s;
  if (!block_.empty()) {
    block_hashes_.push_back(hash_text(block_));
    if (Status s = file_.write(block_); !s.ok()) return s;
  }
  footer_.blocks_hash = hash_text(bytes_of(block_hashes_));
  footer_.footer_hash = token_footer_hash(footer_);
  if (Status s = file_.write(bytes_of(block_hashes_)); !s.ok()) return s;
  if (Status s = file_.write({reinterpret_cast<const char*>(&footer_), sizeof footer_}); !s.ok())
    return s;
  return file_.commit();
}

}  // namespace fullbore
