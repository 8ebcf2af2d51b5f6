#include "fullbore/monitor/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <climits>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/monitor/crc32c.h"

namespace fullbore {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little endian");

template <class Number>
void append_fixed(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_varint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
}

// The wire types of Protocol Buffers.
enum class Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_key(std::string& bytes, uint32_t field, Wire wire) {
  append_varint(bytes, field << 3 | static_cast<uint32_t>(wire));
}

void append_bytes(std::string& bytes, uint32_t field, std::string_view value) {
  append_key(bytes, field, Wire::kBytes);
  append_varint(bytes, value.size());
  bytes += value;
}

std::string begin_event(double seconds) {
  std::string event;
  append_key(event, 1, Wire::kFixed64);
  append_fixed(event, seconds);
  return event;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace

std::string encode_scalars(int64_t step, double seconds,
                           const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    std::string entry;
    append_bytes(entry, 1, tag);
    append_key(entry, 2, Wire::kFixed32);
    append_fixed(entry, static_cast<float>(value));
    append_bytes(summary, 1, entry);
  }
  std::string event = begin_event(seconds);
  append_key(event, 2, Wire::kVarint);
  append_varint(event, static_cast<uint64_t>(step));
  append_bytes(event, 5, summary);
  return event;
}

EventFile::EventFile(std::string path, int file, FileSystem& files)
    : path_(std::move(path)), file_(file), files_(&files) {}
EventFile::EventFile(EventFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), files_(other.files_) {}
EventFile::~EventFile() {
  if (file_ >= 0) files_->close(file_);
}

Result<EventFile> EventFile::create(const std::string& folder, double seconds, FileSystem& files) {
  if (Status made = make_own_folder(folder, files); !made.ok()) return Failure{made.error()};
  std::string path = fmt::format("{}/events.out.tfevents.{:010}.{}.{}", folder,
                                 static_cast<int64_t>(seconds), host_name(), ::getpid());
  const int file = files.append(path);
  if (file < 0) return cannot_write(path, files);
  EventFile events(std::move(path), file, files);
  std::string version = begin_event(seconds);
  append_bytes(version, 3, "brain.Event:2");  // the format's own name of itself
  if (Status written = events.write_record(version); !written.ok()) return Failure{written.error()};
  return events;
}

Status EventFile::restart(int64_t step, double seconds) {
  std::string log;
  append_key(log, 1, Wire::kVarint);
  append_varint(log, 1);  // START
  std::string event = begin_event(seconds);
  append_key(event, 2, Wire::kVarint);
  append_varint(event, static_cast<uint64_t>(step));
  append_bytes(event, 7, log);
  return write_record(event);
}

Status EventFile::write(int64_t step, double seconds,
                        const std::vector<std::pair<std::string, double>>& scalars) {
  return write_record(encode_scalars(step, seconds, scalars));
}

Status EventFile::write_record(std::string_view event) {
  std::string record;
  append_fixed(record, uint64_t{event.size()});
  append_fixed(record, masked_crc32c(record));
  record += event;
  append_fixed(record, masked_crc32c(event));
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t written = files_->write(file_, rest.data(), rest.size());
    if (written == 0) errno = ENOSPC;  // or this would never end
    if (written <= 0) return Failure{fmt::format("cannot write {}: {}", path_, system_reason())};
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return success();
}

}  // namespace fullbore
