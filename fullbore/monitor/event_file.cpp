#include "fullbore/monitor/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <climits>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/monitor/crc32c.h"
#include "fullbore/monitor/protobuf.h"

namespace fullbore {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little endian");

template <class Number>
void append_fixed(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

ProtobufMessage begin_event(double seconds) {
  ProtobufMessage event;
  event.add_double(1, seconds);
  return event;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace

std::string encode_scalars(int64_t step, double seconds,
                           const std::vector<std::pair<std::string, double>>& scalars) {
  ProtobufMessage summary;
  for (const auto& [tag, value] : scalars) {
    ProtobufMessage entry;
    entry.add_bytes(1, tag);
    entry.add_float(2, static_cast<float>(value));
    summary.add_message(1, entry);
  }
  ProtobufMessage event = begin_event(seconds);
  event.add_signed(2, step);
  event.add_message(5, summary);
  return event.bytes();
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
  ProtobufMessage version = begin_event(seconds);
  version.add_bytes(3, "brain.Event:2");  // the format's own name of itself
  if (Status written = events.write_record(version.bytes()); !written.ok())
    return Failure{written.error()};
  return events;
}

Status EventFile::restart(int64_t step, double seconds) {
  ProtobufMessage log;
  log.add_number(1, 1);  // START
  ProtobufMessage event = begin_event(seconds);
  event.add_signed(2, step);
  event.add_message(7, log);
  return write_record(event.bytes());
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
