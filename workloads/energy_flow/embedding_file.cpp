#include "workloads/energy_flow/embedding_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/input_file.h"
#include "fullbore/data/input_bytes.h"
#include "fullbore/data/text_lines.h"
#include "workloads/energy_flow/efb_reader.h"
#include "workloads/energy_flow/embedding_lines.h"

namespace fullbore::energy_flow {
namespace {

constexpr std::array<std::string_view, 3> kFormatNames = {"efb1", "efb2", "jsonl"};
constexpr size_t kBlockBytes = size_t{1} << 18;

void append_number(std::string& bytes, uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<char>(number >> shift & 0xFFU));
}

void append_efb(std::string& bytes, const EmbeddingRecord& record, const EmbeddingFacts& facts) {
  if (facts.has_text) {
    append_number(bytes, static_cast<uint32_t>(record.text.size()));
    bytes += record.text;
  }
  if (facts.has_tokens) {
    append_number(bytes, static_cast<uint32_t>(record.tokens.ids.size()));
    for (const int32_t id : record.tokens.ids) append_number(bytes, static_cast<uint32_t>(id));
    bytes.append(record.tokens.mask.begin(), record.tokens.mask.end());
  }
  for (const float element : record.vector) append_number(bytes, std::bit_cast<uint32_t>(element));
}

std::string efb_header(EmbeddingFormat format, const EmbeddingFacts& facts, int64_t records) {
  std::string bytes(format == EmbeddingFormat::efb1 ? "EFB1" : "EFB2");
  append_number(bytes, static_cast<uint32_t>(records));
  append_number(bytes, static_cast<uint32_t>(facts.width));
  if (format == EmbeddingFormat::efb2)
    append_number(bytes, (facts.has_tokens ? kEfbTokens : 0U) | (facts.has_text ? kEfbText : 0U) |
                             (facts.normalized ? kEfbNormalized : 0U) |
                             (facts.pairs ? kEfbPairs : 0U));
  return bytes;
}

}  // namespace

std::string_view embedding_format_name(EmbeddingFormat format) {
  return kFormatNames[static_cast<size_t>(format)];
}

std::optional<EmbeddingFormat> parse_embedding_format(std::string_view name) {
  for (size_t i = 0; i < kFormatNames.size(); ++i)
    if (name == kFormatNames[i]) return static_cast<EmbeddingFormat>(i);
  return std::nullopt;
}

Result<std::unique_ptr<EmbeddingReader>> open_embeddings(const std::string& path,
                                                         const EmbeddingReadOptions& options) {
  Result<InputFile> file = InputFile::open(path);
  if (!file) return Failure{file.error()};
  std::array<char, EfbReader::kMagicBytes> magic = {};
  const Result<size_t> found = file.value().read(0, magic.data(), magic.size());
  if (!found) return Failure{found.error()};
  const std::string_view begin(magic.data(), found.value());
  // Anything else is JSON, which may have blanks or a byte order mark before it, or be gzipped.
  if (begin.starts_with("EFB") || begin.find('\0') != std::string_view::npos) {
    Result<std::unique_ptr<EfbReader>> reader = EfbReader::open(std::move(file).value(), options);
    if (!reader) return Failure{reader.error()};
    return std::unique_ptr<EmbeddingReader>(std::move(reader).value());
  }
  Result<InputBytes> bytes = InputBytes::open(path);
  if (!bytes) return Failure{bytes.error()};
  return std::unique_ptr<EmbeddingReader>(
      new EmbeddingLines(TextLines(std::move(bytes).value()), options));
}

Result<EmbeddingWriter> EmbeddingWriter::create(const std::string& path, EmbeddingFormat format,
                                                const EmbeddingFacts& facts, int64_t records) {
  if (format != EmbeddingFormat::jsonl && records > int64_t{UINT32_MAX})
    return Failure{fmt::format("{}: {} records; {} can say at most {}", path, records,
                               embedding_format_name(format), UINT32_MAX)};
  if (format == EmbeddingFormat::efb1 && (facts.has_text || !facts.has_tokens || facts.pairs))
    throw UsageError("EFB1 holds tokens and vectors, and neither texts nor pairs");
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return Failure{file.error()};
  EmbeddingWriter writer(std::move(file).value(), format, facts, records);
  if (format != EmbeddingFormat::jsonl) writer.bytes_ = efb_header(format, facts, records);
  return writer;
}

Status EmbeddingWriter::write(const EmbeddingRecord& record) {
  if ((facts_.has_text && !record.has_text) || (facts_.has_tokens && !record.has_tokens))
    throw UsageError(fmt::format("record {} has no {}", written_ + 1,
                                 facts_.has_text && !record.has_text ? "text" : "tokens"));
  if (Status status = check_record(record, facts_); !status) return status;
  if (format_ == EmbeddingFormat::jsonl)
    bytes_ += embedding_line(record);
  else
    append_efb(bytes_, record, facts_);
  ++written_;
  return bytes_.size() < kBlockBytes ? success() : flush();
}

Status EmbeddingWriter::commit() {
  FB_CHECK(written_ == records_, "{} records were written of {}", written_, records_);
  if (Status status = flush(); !status) return status;
  return file_.commit();
}

Status EmbeddingWriter::flush() {
  Status status = file_.write(bytes_);
  bytes_.clear();
  return status;
}

}  // namespace fullbore::energy_flow
