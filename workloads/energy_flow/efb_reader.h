#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/base/input_file.h"
#include "workloads/energy_flow/embedding_file.h"

namespace fullbore::energy_flow {

/// The bits of EFB2's flags.
enum EfbFlags : uint32_t {
  kEfbTokens = 1,
  kEfbText = 2,
  kEfbNormalized = 4,
  kEfbPairs = 8,
  kEfbAllFlags = 15
};

/// Reads EFB1 and EFB2. No length is believed before the file is known to be as long.
class EfbReader : public EmbeddingReader {
 public:
  static constexpr size_t kMagicBytes = 4;

  /// Failure: the header, or a file that is shorter than so many records can be.
  static Result<std::unique_ptr<EfbReader>> open(InputFile file,
                                                 const EmbeddingReadOptions& options);

  Result<bool> next(EmbeddingRecord& record) override;
  EmbeddingFormat format() const override { return format_; }
  const EmbeddingFacts& facts() const override { return facts_; }
  int64_t announced() const override { return records_; }

 private:
  explicit EfbReader(InputFile file) : file_(std::move(file)) {}
  Status read_header(const EmbeddingReadOptions& options);
  Status read_text(EmbeddingRecord& record);
  Status read_tokens(EmbeddingRecord& record);
  Status read_vector(EmbeddingRecord& record);
  Status take(void* to, size_t bytes, std::string_view field);
  Status take_number(uint32_t& number, std::string_view field);
  Status refill();
  uint64_t offset() const { return block_begin_ + at_; }
  uint64_t left() const { return file_.bytes() - std::min(offset(), file_.bytes()); }
  Failure failure(std::string_view message) const;

  InputFile file_;
  EmbeddingFormat format_ = EmbeddingFormat::efb1;
  EmbeddingFacts facts_;
  int64_t records_ = 0;
  int64_t read_ = 0;
  std::vector<char> block_;  ///< bytes of the file from block_begin_ on
  uint64_t block_begin_ = 0;
  size_t at_ = 0;  ///< in block_
};

}  // namespace fullbore::energy_flow
