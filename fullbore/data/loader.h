#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "fullbore/data/batch_source.h"

namespace fullbore {

struct LoaderOptions {
  int workers = 1;   ///< threads that fill batches; 0: next() fills them itself
  int prefetch = 4;  ///< batches kept ready ahead of the one in use, at least 1
};

/// Batches of a source in order, prepared ahead by threads of its own in a ring of buffers that is
/// allocated once. The order and the bytes are the source's: workers and prefetch change neither.
/// All methods are for one consumer thread.
class Loader {
 public:
  Loader(std::shared_ptr<const BatchSource> source, LoaderOptions options);
  ~Loader();  ///< waits for the batches being filled, at most one per worker
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const BatchSource& source() const;

  /// The batch at position(), then steps on: one 64-byte aligned buffer per field of the source,
  /// valid until the next call of next() or seek(). Allocates nothing. What the source throws for
  /// this batch is thrown here, and the position stays.
  std::span<const void* const> next();

  /// Of the batch that next() returns: all that must be saved to resume.
  uint64_t position() const;
  /// Goes to any position at the cost of the batches prepared so far.
  void seek(uint64_t position);

  /// Seconds that next() has spent waiting for data (or making it, without workers) so far.
  double wait_seconds() const;

 private:
  class Ring;
  std::unique_ptr<Ring> ring_;
};

}  // namespace fullbore
