#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "fullbore/data/json_reader.h"
#include "fullbore/data/text_lines.h"
#include "workloads/energy_flow/embedding_file.h"

namespace fullbore::energy_flow {

/// Reads embeddings from lines of JSON. Blank lines are passed over.
class EmbeddingLines : public EmbeddingReader {
 public:
  EmbeddingLines(TextLines lines, const EmbeddingReadOptions& options) : lines_(std::move(lines)) {
    facts_.width = options.width;
  }

  Result<bool> next(EmbeddingRecord& record) override;
  EmbeddingFormat format() const override { return EmbeddingFormat::jsonl; }
  const EmbeddingFacts& facts() const override { return facts_; }
  int64_t announced() const override { return -1; }

 private:
  Status read_record(EmbeddingRecord& record);
  bool read_target(EmbeddingRecord& record);
  bool read_tokens(EmbeddingRecord& record);
  bool read_mask(EmbeddingRecord& record);

  TextLines lines_;
  EmbeddingFacts facts_;
  JsonReader json_{""};
  std::string problem_;  ///< of a field, where the JSON itself is well formed
};

/// The line for a record, with its end.
std::string embedding_line(const EmbeddingRecord& record);

}  // namespace fullbore::energy_flow
