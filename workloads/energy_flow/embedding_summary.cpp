#include "workloads/energy_flow/embedding_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/error.h"

namespace fullbore::energy_flow {
namespace {

double norm_of(const std::vector<float>& vector) {
  double squares = 0;
  for (const float element : vector) squares += double{element} * double{element};
  return std::sqrt(squares);
}

void scale_to_unit_length(std::vector<float>& vector) {
  const double norm = norm_of(vector);
  for (float& element : vector) element = static_cast<float>(double{element} / norm);
}

void count(const EmbeddingRecord& record, size_t texts, EmbeddingSummary& summary) {
  const double norm = norm_of(record.vector);
  summary.least_norm = summary.records == 0 ? norm : std::min(summary.least_norm, norm);
  summary.most_norm = std::max(summary.most_norm, norm);
  summary.sum_of_norms += norm;
  if (record.has_text) {
    ++summary.texts;
    if (summary.first_texts.size() < texts) summary.first_texts.push_back(record.text);
  }
  if (record.has_tokens) {
    ++summary.token_lists;
    summary.most_tokens = std::max<int64_t>(summary.most_tokens, std::ssize(record.tokens.ids));
    summary.most_masked =
        std::max<int64_t>(summary.most_masked, std::ranges::count(record.tokens.mask, 0));
  }
  ++summary.records;
}

// Of `what`, "texts", which `having` of the records have and `kept` says whether the new file has.
void tell_left_out(const char* what, int64_t having, int64_t records, bool kept,
                   std::string_view format, std::vector<std::string>& left_out) {
  if (having == 0 || kept) return;
  left_out.push_back(having < records
                         ? fmt::format("{} are left out: {} of {} records have none", what,
                                       records - having, records)
                         : fmt::format("{} are left out: {} has no place for them", what, format));
}

}  // namespace

EmbeddingFacts EmbeddingSummary::facts() const {
  return {.width = width,
          .has_tokens = records > 0 && token_lists == records,
          .has_text = records > 0 && texts == records,
          .normalized = says_normalized,
          .pairs = says_pairs};
}

Result<EmbeddingSummary> summarize_embeddings(const std::string& path,
                                              const EmbeddingReadOptions& options, size_t texts,
                                              const EmbeddingProgress& progress) {
  Result<std::unique_ptr<EmbeddingReader>> opened = open_embeddings(path, options);
  if (!opened) return Failure{opened.error()};
  EmbeddingReader& reader = *opened.value();
  EmbeddingSummary summary;
  EmbeddingRecord record;
  for (;;) {
    const Result<bool> more = reader.next(record);
    if (!more) return Failure{more.error()};
    if (!more.value()) break;
    count(record, texts, summary);
    if (progress) progress(summary.records);
  }
  summary.format = reader.format();
  summary.width = reader.facts().width;
  summary.says_pairs = reader.facts().pairs;
  summary.says_normalized = reader.facts().normalized;
  return summary;
}

Result<ConvertedEmbeddings> convert_embeddings(const std::string& from, const std::string& to,
                                               const EmbeddingConversion& conversion,
                                               const EmbeddingProgress& progress) {
  const Result<EmbeddingSummary> read = summarize_embeddings(from, {}, 0, progress);
  if (!read) return Failure{read.error()};
  const EmbeddingSummary& summary = read.value();
  if (summary.records == 0) return Failure{fmt::format("{}: no records", from)};
  ConvertedEmbeddings converted;
  converted.records =
      conversion.limit > 0 ? std::min(conversion.limit, summary.records) : summary.records;
  EmbeddingFacts& facts = converted.facts = summary.facts();
  facts.pairs = facts.pairs || conversion.pairs;
  facts.normalized = facts.normalized || conversion.normalize;
  if (facts.pairs && converted.records % 2 != 0)
    return Failure{
        fmt::format("{}: {} records, but pairs are an even number", from, converted.records)};
  const std::string_view format = embedding_format_name(conversion.format);
  if (conversion.format == EmbeddingFormat::efb1) {
    if (!facts.has_tokens)
      return Failure{
          fmt::format("{}: {} of {} records have no tokens, which EFB1 needs; EFB2 "
                      "does not",
                      from, summary.records - summary.token_lists, summary.records)};
    facts.has_text = false;
    if (facts.pairs)
      converted.left_out.push_back("that records are pairs is not said: EFB1 has no flags");
    facts.pairs = facts.normalized = false;
  }
  tell_left_out("texts", summary.texts, summary.records, facts.has_text, format,
                converted.left_out);
  tell_left_out("tokens", summary.token_lists, summary.records, facts.has_tokens, format,
                converted.left_out);
  Result<EmbeddingWriter> writer =
      EmbeddingWriter::create(to, conversion.format, facts, converted.records);
  if (!writer) return Failure{writer.error()};
  Result<std::unique_ptr<EmbeddingReader>> opened = open_embeddings(from);
  if (!opened) return Failure{opened.error()};
  EmbeddingRecord record;
  for (int64_t i = 0; i < converted.records; ++i) {
    const Result<bool> more = opened.value()->next(record);
    if (!more) return Failure{more.error()};
    if (!more.value()) return Failure{fmt::format("{}: it became shorter meanwhile", from)};
    record.has_text = record.has_text && facts.has_text;
    record.has_tokens = record.has_tokens && facts.has_tokens;
    if (conversion.normalize) scale_to_unit_length(record.vector);
    if (const Status status = writer.value().write(record); !status) return Failure{status.error()};
    if (progress) progress(summary.records + i + 1);
  }
  if (const Status status = writer.value().commit(); !status) return Failure{status.error()};
  return converted;
}

}  // namespace fullbore::energy_flow
