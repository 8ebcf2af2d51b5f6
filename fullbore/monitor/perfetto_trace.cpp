#include "fullbore/monitor/perfetto_trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/json.h"
#include "fullbore/monitor/protobuf.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

// What finish() adds whatever was recorded, and what one thing takes at most beside its texts.
constexpr size_t kReservedBytes = 2048;
constexpr size_t kSliceBytes = 96;
constexpr size_t kCountBytes = 48;
constexpr size_t kTextBytes = 32;
constexpr size_t kTrackBytes = 96;

// Fields of perfetto.protos.Trace and what it holds.
constexpr uint32_t kPacket = 1;
namespace packet {
constexpr uint32_t kTimestamp = 8, kSequence = 10, kEvent = 11, kInterned = 12, kFlags = 13,
                   kTrack = 60;
constexpr uint64_t kStateCleared = 1, kNeedsState = 2;
}  // namespace packet
namespace event {
constexpr uint32_t kAnnotation = 4, kType = 9, kName = 10, kTrack = 11, kCounterValue = 30;
constexpr uint64_t kBegin = 1, kEnd = 2, kCounter = 4;
}  // namespace event
namespace track {
constexpr uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
}  // namespace track
namespace interned {
constexpr uint32_t kNames = 2, kKeys = 3, kValues = 29, kNumber = 1, kText = 2;
}  // namespace interned
namespace annotation {
constexpr uint32_t kKey = 1, kBool = 2, kInteger = 4, kReal = 5, kText = 17;
}  // namespace annotation

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

constexpr uint64_t kProcessTrack = 1;
constexpr uint64_t kSizeBytes = 3;  // CounterDescriptor.Unit
uint64_t track_of(int thread) { return 1000 + static_cast<uint64_t>(thread); }
uint64_t track_of_counter(uint64_t counter) { return 1'000'000 + counter; }

// What a text takes at most: a byte that is no UTF-8 becomes three.
size_t most_bytes_of(std::string_view text) { return kTextBytes + 3 * text.size(); }

size_t most_bytes_of(const Json& arguments) {
  constexpr size_t kAnnotationBytes = 24;
  size_t bytes = 0;
  for (const auto& [key, value] : arguments.items()) {
    bytes += kAnnotationBytes + most_bytes_of(std::string_view(key));
    if (value.is_string())
      bytes += most_bytes_of(std::string_view(value.get_ref<const std::string&>()));
    else if (value.is_structured())
      bytes += most_bytes_of(std::string_view(text_of(value)));
  }
  return bytes;
}

// Proto strings are UTF-8; names come from paths and settings, which need not be.
std::string as_utf8(std::string_view text) {
  const std::string quoted =
      Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return parse_json(quoted).take_or_throw().get<std::string>();
}

void append(std::string& file, ProtobufMessage message) {
  message.add_number(packet::kSequence, 1);
  ProtobufMessage trace;
  trace.add_message(kPacket, message);
  file += trace.bytes();
}

void append_track(std::string& file, const ProtobufMessage& descriptor) {
  ProtobufMessage message;
  message.add_message(packet::kTrack, descriptor);
  append(file, std::move(message));
}

void append_event(std::string& file, int64_t ns, const ProtobufMessage& of) {
  ProtobufMessage message;
  message.add_number(packet::kTimestamp, static_cast<uint64_t>(ns));
  message.add_number(packet::kFlags, packet::kNeedsState);
  message.add_message(packet::kEvent, of);
  append(file, std::move(message));
}

void append_end(std::string& file, int64_t ns, int thread) {
  ProtobufMessage end;
  end.add_number(event::kType, event::kEnd);
  end.add_number(event::kTrack, track_of(thread));
  append_event(file, ns, end);
}

void add_texts(ProtobufMessage& message, uint32_t field, const std::vector<std::string>& texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    ProtobufMessage entry;
    entry.add_number(interned::kNumber, i + 1);
    entry.add_bytes(interned::kText, texts[i]);
    message.add_message(field, entry);
  }
}

}  // namespace

uint64_t PerfettoTrace::Interned::number(std::string_view text, size_t& bytes) {
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  texts_.push_back(as_utf8(text));
  numbers_.emplace(std::string(text), texts_.size());
  bytes += kTextBytes + texts_.back().size();
  return texts_.size();
}

PerfettoTrace::PerfettoTrace(size_t most_bytes) : most_bytes_(most_bytes), bytes_(kReservedBytes) {
  FB_CHECK(most_bytes >= kLeastBytes, "{} bytes", most_bytes);
}

void PerfettoTrace::name_thread(int thread, const std::string& name) {
  const std::string text = as_utf8(name);
  if (bytes_ + kTrackBytes + 2 * text.size() > most_bytes_) return;
  bytes_ += kTrackBytes + 2 * text.size();
  threads_[thread] = text;
}

std::string PerfettoTrace::annotations_of(const Json& arguments, size_t& bytes) {
  ProtobufMessage annotations;
  for (const auto& [key, value] : arguments.items()) {
    ProtobufMessage one;
    one.add_number(annotation::kKey, keys_.number(key, bytes));
    if (value.is_boolean())
      one.add_number(annotation::kBool, value.get<bool>() ? 1 : 0);
    else if (value.is_number_integer())
      one.add_signed(annotation::kInteger, value.get<int64_t>());
    else if (value.is_number())
      one.add_double(annotation::kReal, value.get<double>());
    else
      one.add_number(annotation::kText, values_.number(text_of(value), bytes));
    annotations.add_message(event::kAnnotation, one);
  }
  bytes += annotations.bytes().size();
  return annotations.bytes();
}

bool PerfettoTrace::add(std::string_view name, int thread, int64_t begin_ns, int64_t end_ns,
                        const Json& arguments) {
  if (bytes_ + kSliceBytes + kTrackBytes + most_bytes_of(name) + most_bytes_of(arguments) >
      most_bytes_)
    return count(false);
  bytes_ += kSliceBytes + (threads_.contains(thread) ? 0 : kTrackBytes);
  Slice slice{
      .thread = thread, .begin_ns = begin_ns, .end_ns = end_ns, .name = 0, .annotations = {}};
  slice.name = names_.number(name, bytes_);
  slice.annotations = annotations_of(arguments, bytes_);
  threads_.try_emplace(thread);
  slices_.push_back(std::move(slice));
  return count(true);
}

bool PerfettoTrace::add_bytes(std::string_view counter, int64_t ns, int64_t bytes) {
  if (bytes_ + kCountBytes + kTrackBytes + most_bytes_of(counter) > most_bytes_)
    return count(false);
  const size_t known = counters_.texts().size();
  const uint64_t number = counters_.number(counter, bytes_);
  bytes_ += kCountBytes + (number > known ? kTrackBytes : 0);
  counts_.push_back({number, ns, bytes});
  return count(true);
}

void PerfettoTrace::write_threads(std::string& file) const {
  const auto pid = static_cast<uint64_t>(::getpid());
  for (const auto& [thread, name] : threads_) {
    ProtobufMessage of;
    of.add_number(1, pid);
    of.add_number(2, pid + 1 + static_cast<uint64_t>(thread));
    of.add_bytes(5, name);
    ProtobufMessage descriptor;
    descriptor.add_number(track::kUuid, track_of(thread));
    descriptor.add_number(track::kParent, kProcessTrack);
    descriptor.add_message(track::kThread, of);
    append_track(file, descriptor);
  }
  for (size_t i = 0; i < counters_.texts().size(); ++i) {
    ProtobufMessage of;
    of.add_number(3, kSizeBytes);
    ProtobufMessage descriptor;
    descriptor.add_number(track::kUuid, track_of_counter(i + 1));
    descriptor.add_bytes(track::kName, counters_.texts()[i]);
    descriptor.add_number(track::kParent, kProcessTrack);
    descriptor.add_message(track::kCounter, of);
    append_track(file, descriptor);
  }
}

// A thread's events are told in the order of time: ends before begins, and of events that begin together the longest
// first, so that each lies within the one that was begun last.
void PerfettoTrace::write_slices(std::string& file, int64_t first_ns) const {
  std::vector<const Slice*> order;
  for (const Slice& slice : slices_) order.push_back(&slice);
  std::ranges::stable_sort(order, [](const Slice* a, const Slice* b) {
    if (a->thread != b->thread) return a->thread < b->thread;
    return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->end_ns > b->end_ns;
  });
  std::vector<int64_t> open;  // ends of the events around, the innermost last
  int thread = 0;
  const auto end_until = [&](int64_t ns) {
    for (; !open.empty() && open.back() <= ns; open.pop_back())
      append_end(file, open.back() - first_ns, thread);
  };
  for (const Slice* slice : order) {
    end_until(slice->thread == thread ? slice->begin_ns : std::numeric_limits<int64_t>::max());
    thread = slice->thread;
    ProtobufMessage begin;
    begin.add_number(event::kType, event::kBegin);
    begin.add_number(event::kTrack, track_of(thread));
    begin.add_number(event::kName, slice->name);
    begin.add_encoded(slice->annotations);
    append_event(file, slice->begin_ns - first_ns, begin);
    open.push_back(open.empty() ? slice->end_ns : std::min(slice->end_ns, open.back()));
  }
  end_until(std::numeric_limits<int64_t>::max());
}

std::string PerfettoTrace::finish(Json about) const {
  about["events"] = events();
  about["dropped_events"] = dropped();
  std::string file;
  ProtobufMessage process;
  process.add_number(1, static_cast<uint64_t>(::getpid()));
  process.add_bytes(6, "fullbore");
  for (const auto& [key, value] : about.items())
    process.add_bytes(8, as_utf8(fmt::format("{}: {}", key, text_of(value))));
  FB_CHECK(process.bytes().size() <= kReservedBytes - 64, "{} bytes about a trace",
           process.bytes().size());
  ProtobufMessage descriptor;
  descriptor.add_number(track::kUuid, kProcessTrack);
  descriptor.add_message(track::kProcess, process);
  ProtobufMessage texts;
  add_texts(texts, interned::kNames, names_.texts());
  add_texts(texts, interned::kKeys, keys_.texts());
  add_texts(texts, interned::kValues, values_.texts());
  ProtobufMessage first;
  first.add_number(packet::kFlags, packet::kStateCleared);
  first.add_message(packet::kInterned, texts);
  append(file, std::move(first));
  append_track(file, descriptor);
  write_threads(file);
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  for (const Slice& slice : slices_) first_ns = std::min(first_ns, slice.begin_ns);
  for (const Count& each : counts_) first_ns = std::min(first_ns, each.ns);
  write_slices(file, first_ns);
  for (const Count& each : counts_) {
    ProtobufMessage of;
    of.add_number(event::kType, event::kCounter);
    of.add_number(event::kTrack, track_of_counter(each.counter));
    of.add_signed(event::kCounterValue, each.bytes);
    append_event(file, each.ns - first_ns, of);
  }
  return file;
}

}  // namespace fullbore
