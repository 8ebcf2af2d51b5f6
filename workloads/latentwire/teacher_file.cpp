#include "workloads/latentwire/teacher_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "fullbore/base/atomic_file.h"
#include "fullbore/ckpt/checksum.h"

namespace fullbore::latentwire {
namespace {

constexpr size_t kHeaderBytes = 256;  // rows begin at a multiple of every element's size

// A text of fixed length: readable with `head`, and compared whole.
std::string header(const TeacherFileForm& form) {
  std::string text = fmt::format("fullbore teacher 1\nkey {}\nfirst {}\nrows {}\nrow bytes {}\n",
                                 form.key, form.first, form.rows, form.row_bytes);
  text.resize(std::max(text.size(), kHeaderBytes), '\n');
  return text;
}

std::string_view bytes_of(const uint64_t& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

}  // namespace

Result<TeacherFile> TeacherFile::open(const std::string& path, const TeacherFileForm& form) {
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) return Failure{path + " is a link"};
  const auto mapped = MappedFile::open(path);
  if (!mapped.ok()) return Failure{mapped.error()};
  const std::span<const std::byte> bytes = mapped.value()->bytes();
  const std::string head = header(form);
  const size_t size =
      head.size() + static_cast<size_t>(form.rows * form.row_bytes) + sizeof(uint64_t);
  if (bytes.size() != size)
    return Failure{fmt::format("{} has {} bytes; {} were expected", path, bytes.size(), size)};
  if (std::memcmp(bytes.data(), head.data(), head.size()) != 0)
    return Failure{fmt::format("{} was made of something else: its header differs", path)};
  StreamingHash hash;
  hash.add(bytes.data(), size - sizeof(uint64_t));
  uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + size - sizeof(stored), sizeof(stored));
  if (stored != hash.value())
    return Failure{fmt::format("{} is damaged: its contents have another checksum", path)};
  return TeacherFile(mapped.value(), form.row_bytes, head.size());
}

Status TeacherFile::write(const std::string& path, const TeacherFileForm& form,
                          int64_t rows_at_once, const Fill& fill, FileSystem& files) {
  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  StreamingHash hash;
  const auto put = [&](std::string_view bytes) {
    hash.add(bytes.data(), bytes.size());
    return file.value().write(bytes);
  };
  if (Status status = put(header(form)); !status.ok()) return status;
  std::vector<std::byte> rows;
  for (int64_t first = 0; first < form.rows; first += rows_at_once) {
    const int64_t count = std::min(rows_at_once, form.rows - first);
    rows.resize(static_cast<size_t>(count * form.row_bytes));
    fill(form.first + first, count, rows);
    if (Status status = put({reinterpret_cast<const char*>(rows.data()), rows.size()});
        !status.ok())
      return status;
  }
  const uint64_t value = hash.value();
  if (Status status = file.value().write(bytes_of(value)); !status.ok()) return status;
  return file.value().commit();
}

std::span<const std::byte> TeacherFile::row(int64_t index) const {
  return file_->bytes().subspan(begin_ + static_cast<size_t>(index * row_bytes_),
                                static_cast<size_t>(row_bytes_));
}

}  // namespace fullbore::latentwire
