#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/result.h"
#include "workloads/energy_flow/embedding_record.h"

namespace fullbore::energy_flow {

/// Files of sentence embeddings. Both EFB formats are little-endian and packed, without padding:
///
///   EFB1   "EFB1", u32 records, u32 width; a record: u32 T, T x u32 ids, T x u8 mask, width x f32
///   EFB2   "EFB2", u32 records, u32 width, u32 flags (1 tokens, 2 text, 4 normalized, 8 pairs);
///          a record: [u32 bytes, UTF-8], [tokens as in EFB1], width x f32
///   JSONL  a line each: {"text": "...", "input_ids": [...], "attention_mask": [...], "target": [...]}, of which only
///          "target" must be there; other fields are ignored. May be gzipped.
enum class EmbeddingFormat : uint8_t { efb1, efb2, jsonl };
std::string_view embedding_format_name(EmbeddingFormat format);
std::optional<EmbeddingFormat> parse_embedding_format(std::string_view name);  ///< "efb2"

/// Records of a file one after the other: memory stays at one record, whatever the file's size.
class EmbeddingReader {
 public:
  virtual ~EmbeddingReader() = default;

  /// False at the end. Failure: "file: byte 812, record 3: " or "file:line: ", the field, and what was expected. After a
  /// Failure there is nothing more to read.
  virtual Result<bool> next(EmbeddingRecord& record) = 0;
  virtual EmbeddingFormat format() const = 0;
  /// What the file says of itself. Of JSON lines, which say nothing, the width of the first record once it was read.
  virtual const EmbeddingFacts& facts() const = 0;
  /// How many records the file says that it has; -1: it does not.
  virtual int64_t announced() const = 0;
};

struct EmbeddingReadOptions {
  int64_t width = 0;  ///< that vectors must have; 0: any, but the same in all records
};

/// Opens a file of any of the formats, told by its first bytes. Failure: it cannot be read, or its header is wrong.
Result<std::unique_ptr<EmbeddingReader>> open_embeddings(const std::string& path,
                                                         const EmbeddingReadOptions& options = {});

/// Writes a file, which replaces another at once or not at all.
class EmbeddingWriter {
 public:
  /// `records`: how many there will be. Failure: the system's, or more than the format can say.
  static Result<EmbeddingWriter> create(const std::string& path, EmbeddingFormat format,
                                        const EmbeddingFacts& facts, int64_t records);

  /// Failure: the disk, or what check_record() finds. UsageError for a record without what facts promise.
  Status write(const EmbeddingRecord& record);
  /// Once all records were written.
  Status commit();

 private:
  EmbeddingWriter(AtomicFile file, EmbeddingFormat format, const EmbeddingFacts& facts,
                  int64_t records)
      : file_(std::move(file)), format_(format), facts_(facts), records_(records) {}
  Status flush();

  AtomicFile file_;
  EmbeddingFormat format_;
  EmbeddingFacts facts_;
  int64_t records_;
  int64_t written_ = 0;
  std::string bytes_;  ///< of the block to be written next
};

}  // namespace fullbore::energy_flow
