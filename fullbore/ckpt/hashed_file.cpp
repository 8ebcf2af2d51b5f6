#include "fullbore/ckpt/hashed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "fullbore/base/files.h"

namespace fullbore {
namespace {

// What is copied is still in a cache of the processor when it is hashed and written, and no call keeps a
// processor from the threads that train for long.
constexpr size_t kPieceBytes = size_t{1} << 20;
// Less than this is not worth a call of its own.
constexpr size_t kLeastStraightBytes = size_t{64} << 10;
static_assert(kPieceBytes % kDirectAlignment == 0);

size_t past_page(uint64_t at) { return at % kDirectAlignment; }

}  // namespace

HashedFile::~HashedFile() {
  if (file_ >= 0) files_.close(file_);
}

Failure HashedFile::failure(const char* what) const {
  return {fmt::format("cannot {} {}: {}", what, path_, system_reason())};
}

/// How much is missing to a whole number of pages.
size_t HashedFile::bytes_to_page() const {
  return past_page(kDirectAlignment - past_page(buffered_));
}

/// Once the page begun is full: can what follows be written from where it is?
bool HashedFile::goes_straight(std::string_view bytes) const {
  const size_t skipped = bytes_to_page();
  return bytes.size() >= skipped + kLeastStraightBytes &&
         (!direct_ || past_page(reinterpret_cast<uintptr_t>(bytes.data()) + skipped) == 0);
}

Status HashedFile::write(std::string_view bytes) {
  if (file_ < 0) return failure("create");
  while (!bytes.empty()) {
    if (!asked_ && buffered_ + bytes.size() >= kPieceBytes) {
      asked_ = true;
      direct_ = files_.write_directly(file_, true);
    }
    const bool straight = goes_straight(bytes);
    const size_t collected =
        straight ? bytes_to_page() : std::min(bytes.size(), kPieceBytes - buffered_);
    collect(bytes.substr(0, collected));
    bytes.remove_prefix(collected);
    if (straight || buffered_ == kPieceBytes)
      if (Status status = flush(); !status.ok()) return status;
    if (straight) {
      const size_t whole = bytes.size() - past_page(bytes.size());
      if (Status status = put(bytes.substr(0, whole)); !status.ok()) return status;
      bytes.remove_prefix(whole);
    }
  }
  return success();
}

Result<ManifestEntry> HashedFile::finish() {
  if (file_ < 0) return failure("create");
  // The rest is of any size.
  if (direct_ && !files_.write_directly(file_, false)) return failure("write");
  direct_ = false;
  if (Status status = flush(); !status.ok()) return Failure{status.error()};
  if (files_.sync(file_) != 0) return failure("write");
  if (files_.close(std::exchange(file_, -1)) != 0) return failure("write");
  return ManifestEntry{bytes_, hash_.value()};
}

void HashedFile::collect(std::string_view bytes) {
  if (bytes.empty()) return;
  if (!buffer_) {
    buffer_.reset(static_cast<char*>(std::aligned_alloc(kDirectAlignment, kPieceBytes)));
    if (!buffer_) throw std::bad_alloc();
  }
  std::memcpy(buffer_.get() + buffered_, bytes.data(), bytes.size());
  buffered_ += bytes.size();
}

Status HashedFile::flush() { return put({buffer_.get(), std::exchange(buffered_, 0)}); }

Status HashedFile::put(std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPieceBytes)))
    if (Status status = put_piece(bytes.substr(0, kPieceBytes)); !status.ok()) return status;
  return success();
}

Status HashedFile::put_piece(std::string_view bytes) {
  hash_.add(bytes.data(), bytes.size());
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = files_.write(file_, bytes.data(), bytes.size());
    // A file system that does not write directly after all, or that has left a part of a block.
    const bool misfit =
        written < 0 ? errno == EINVAL : past_page(static_cast<uint64_t>(written)) != 0;
    if (direct_ && misfit) {
      if (!files_.write_directly(file_, false)) return failure("write");
      direct_ = false;
    } else if (written <= 0) {
      if (written == 0) errno = ENOSPC;  // or this would never end
      return failure("write");
    }
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return success();
}

}  // namespace fullbore
