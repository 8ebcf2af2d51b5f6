// The fake driver's calls about streams and events.
#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/entry.h"

using fullbore::cuda::EventHandle;
using fullbore::cuda::StreamHandle;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::Event;
using fullbore::fake_cuda::machine;
using fullbore::fake_cuda::OperationPointer;
using fullbore::fake_cuda::Stream;
namespace cuda = fullbore::cuda;

namespace {

constexpr int kCaptureUnsupported = 900;  ///< CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED

Stream& stream_of(StreamHandle handle) { return *reinterpret_cast<Stream*>(handle); }
Event& event_of(EventHandle handle) { return *reinterpret_cast<Event*>(handle); }

}  // namespace

extern "C" {

int cuStreamCreate(StreamHandle* stream, unsigned) {
  const Entry entry("cuStreamCreate");
  if (entry.code() != 0) return entry.code();
  *stream = reinterpret_cast<StreamHandle>(machine().own<Stream>());
  ++machine().told.streams;
  return 0;
}

int cuStreamDestroy_v2(StreamHandle stream) {
  const Entry entry("cuStreamDestroy_v2");
  if (entry.code() != 0) return entry.code();
  machine().complete(stream_of(stream).last);
  machine().owned.erase(&stream_of(stream));
  --machine().told.streams;
  return 0;
}

int cuStreamSynchronize(StreamHandle stream) {
  const Entry entry("cuStreamSynchronize");
  if (entry.code() != 0 || entry.is_forgotten("cuStreamSynchronize")) return entry.code();
  if (stream_of(stream).captured) return kCaptureUnsupported;
  machine().complete(stream_of(stream).last);
  return machine().lost;
}

int cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  const Entry entry("cuStreamWaitEvent");
  if (entry.code() != 0 || entry.is_forgotten("cuStreamWaitEvent")) return entry.code();
  if (stream_of(stream).captured) return kCaptureUnsupported;
  machine().enqueue(stream_of(stream), {}, event_of(event).recorded);
  return 0;
}

int cuEventCreate(EventHandle* event, unsigned) {
  const Entry entry("cuEventCreate");
  if (entry.code() != 0) return entry.code();
  *event = reinterpret_cast<EventHandle>(machine().own<Event>());
  ++machine().told.events;
  return 0;
}

int cuEventDestroy_v2(EventHandle event) {
  const Entry entry("cuEventDestroy_v2");
  if (entry.code() != 0) return entry.code();
  machine().owned.erase(&event_of(event));
  --machine().told.events;
  return 0;
}

int cuEventRecord(EventHandle event, StreamHandle stream) {
  const Entry entry("cuEventRecord");
  if (entry.code() != 0 || entry.is_forgotten("cuEventRecord")) return entry.code();
  if (stream_of(stream).captured) return kCaptureUnsupported;
  event_of(event).recorded = machine().enqueue(stream_of(stream), {});
  return 0;
}

int cuEventSynchronize(EventHandle event) {
  const Entry entry("cuEventSynchronize");
  if (entry.code() != 0 || entry.is_forgotten("cuEventSynchronize")) return entry.code();
  machine().complete(event_of(event).recorded);
  return machine().lost;
}

int cuEventElapsedTime(float* milliseconds, EventHandle begin, EventHandle end) {
  const Entry entry("cuEventElapsedTime");
  if (entry.code() != 0) return entry.code();
  const OperationPointer first = event_of(begin).recorded, last = event_of(end).recorded;
  if (!first || !last) return cuda::kInvalidHandle;
  if (!first->is_made || !last->is_made) return cuda::kNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(last->made_ns - first->made_ns) / 1e6);
  return 0;
}

}  // extern "C"
