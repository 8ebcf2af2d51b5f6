#include "workloads/energy_flow/efb_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "fullbore/data/utf8.h"

namespace fullbore::energy_flow {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 18;
constexpr std::string_view kMagic1 = "EFB1";
constexpr std::string_view kMagic2 = "EFB2";
constexpr size_t kNumberBytes = sizeof(uint32_t);

// Records begin at any byte.
uint32_t little_endian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 |
         uint32_t{bytes[3]} << 24;
}

}  // namespace

Result<std::unique_ptr<EfbReader>> EfbReader::open(InputFile file,
                                                   const EmbeddingReadOptions& options) {
  std::unique_ptr<EfbReader> reader(new EfbReader(std::move(file)));
  if (const Status status = reader->read_header(options); !status) return Failure{status.error()};
  return reader;
}

Status EfbReader::read_header(const EmbeddingReadOptions& options) {
  char magic[kMagicBytes];
  if (Status status = take(magic, sizeof magic, "the magic"); !status) return status;
  const std::string_view found(magic, sizeof magic);
  if (found != kMagic1 && found != kMagic2)
    return Failure{
        fmt::format("{}: byte 0: no embeddings; EFB1 or EFB2 was expected", file_.path())};
  format_ = found == kMagic1 ? EmbeddingFormat::efb1 : EmbeddingFormat::efb2;
  uint32_t records = 0, width = 0, flags = kEfbTokens;
  if (Status status = take_number(records, "the number of records"); !status) return status;
  if (Status status = take_number(width, "the width"); !status) return status;
  if (width == 0 || width > kMostWidth)
    return Failure{fmt::format("{}: byte 8: a width of {}; 1 to {} was expected", file_.path(),
                               width, kMostWidth)};
  if (options.width > 0 && width != options.width)
    return Failure{fmt::format("{}: byte 8: vectors of {} numbers; {} were expected", file_.path(),
                               width, options.width)};
  if (format_ == EmbeddingFormat::efb2) {
    if (Status status = take_number(flags, "the flags"); !status) return status;
    if ((flags & ~uint32_t{kEfbAllFlags}) != 0)
      return Failure{fmt::format("{}: byte 12: flags {:#x}, of which {:#x} is not known",
                                 file_.path(), flags, flags & ~uint32_t{kEfbAllFlags})};
  }
  facts_ = {.width = width,
            .has_tokens = (flags & kEfbTokens) != 0,
            .has_text = (flags & kEfbText) != 0,
            .normalized = (flags & kEfbNormalized) != 0,
            .pairs = (flags & kEfbPairs) != 0};
  records_ = records;
  if (facts_.pairs && records % 2 != 0)
    return Failure{
        fmt::format("{}: byte 4: {} records, but pairs are an even number", file_.path(), records)};
  const uint64_t least =
      kNumberBytes * (uint64_t{width} + (facts_.has_tokens ? 1 : 0) + (facts_.has_text ? 1 : 0));
  if (records > left() / least)
    return Failure{fmt::format(
        "{}: cut short: {} records take {} bytes behind byte {} at the least, there are {}",
        file_.path(), records, least * records, offset(), left())};
  return success();
}

Result<bool> EfbReader::next(EmbeddingRecord& record) {
  if (read_ == records_) {
    if (left() > 0)
      return Failure{fmt::format("{}: byte {}: {} bytes behind the last of {} records",
                                 file_.path(), offset(), left(), records_)};
    return false;
  }
  for (const auto read : {&EfbReader::read_text, &EfbReader::read_tokens, &EfbReader::read_vector})
    if (Status status = (this->*read)(record); !status) return Failure{status.error()};
  if (const Status status = check_record(record, facts_); !status) return failure(status.error());
  ++read_;
  return true;
}

Status EfbReader::read_text(EmbeddingRecord& record) {
  record.has_text = facts_.has_text;
  record.text.clear();
  if (!record.has_text) return success();
  uint32_t bytes = 0;
  if (Status status = take_number(bytes, "the length of text"); !status) return status;
  if (bytes > kMostTextBytes)
    return failure(fmt::format("text: {} bytes; at most {} were expected", bytes, kMostTextBytes));
  if (bytes > left())
    return failure(fmt::format("text: {} bytes, but the file ends behind {}", bytes, left()));
  record.text.resize(bytes);
  if (Status status = take(record.text.data(), bytes, "text"); !status) return status;
  const size_t good = decode_utf8(record.text, [](char32_t) {});
  if (good < record.text.size())
    return failure(
        fmt::format("text: byte {} of it: {}", good, describe_utf8_error(record.text, good)));
  return success();
}

Status EfbReader::read_tokens(EmbeddingRecord& record) {
  record.has_tokens = facts_.has_tokens;
  auto& [ids, mask] = record.tokens;
  ids.clear();
  mask.clear();
  if (!record.has_tokens) return success();
  uint32_t count = 0;
  if (Status status = take_number(count, "the number of tokens"); !status) return status;
  if (count > kMostTokens)
    return failure(
        fmt::format("input_ids: {} tokens; at most {} were expected", count, kMostTokens));
  if (uint64_t{count} * (kNumberBytes + 1) > left())
    return failure(fmt::format("input_ids: {} tokens take {} bytes, but the file ends behind {}",
                               count, count * (kNumberBytes + 1), left()));
  ids.resize(count);
  mask.resize(count);
  for (int32_t& id : ids) {
    uint32_t number = 0;
    if (Status status = take_number(number, "input_ids"); !status) return status;
    id = std::bit_cast<int32_t>(number);
  }
  return take(mask.data(), mask.size(), "attention_mask");
}

Status EfbReader::read_vector(EmbeddingRecord& record) {
  record.vector.resize(static_cast<size_t>(facts_.width));
  for (float& element : record.vector) {
    uint32_t number = 0;
    if (Status status = take_number(number, "target"); !status) return status;
    element = std::bit_cast<float>(number);
  }
  return success();
}

Status EfbReader::take_number(uint32_t& number, std::string_view field) {
  unsigned char bytes[kNumberBytes];
  if (Status status = take(bytes, sizeof bytes, field); !status) return status;
  number = little_endian(bytes);
  return success();
}

Status EfbReader::take(void* to, size_t bytes, std::string_view field) {
  if (bytes > left())
    return failure(fmt::format("{}: the file ends here, {} bytes were expected", field, bytes));
  auto* place = static_cast<char*>(to);
  while (bytes > 0) {
    if (at_ == block_.size())
      if (Status status = refill(); !status) return status;
    const size_t piece = std::min(bytes, block_.size() - at_);
    std::memcpy(place, block_.data() + at_, piece);
    at_ += piece;
    place += piece;
    bytes -= piece;
  }
  return success();
}

Status EfbReader::refill() {
  block_begin_ += block_.size();
  at_ = 0;
  block_.resize(std::min<uint64_t>(kBlockBytes, file_.bytes() - block_begin_));
  return file_.read_exactly(block_begin_, block_.data(), block_.size());
}

Failure EfbReader::failure(std::string_view message) const {
  return Failure{fmt::format("{}: byte {}, record {} of {}: {}", file_.path(), offset(), read_ + 1,
                             records_, message)};
}

}  // namespace fullbore::energy_flow
