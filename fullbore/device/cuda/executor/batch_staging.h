#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/recording.h"

namespace fullbore::cuda {

/// Bytes of each batch field that a recorded program reads, by its number.
std::vector<int64_t> batch_field_bytes(std::span<const RecordedLaunch> launches);

/// Batches on their way to the card: the host's memory is copied to one of two pinned slots, and from there to the card in
/// the stream of copies, while the card still runs what came before.
class BatchStaging {
 public:
  BatchStaging(std::shared_ptr<Context> context, std::vector<int64_t> field_bytes);
  ~BatchStaging();
  BatchStaging(const BatchStaging&) = delete;
  BatchStaging& operator=(const BatchStaging&) = delete;

  /// Where the card has each field.
  std::vector<Address> fields() const;
  /// Begins to bring a batch, one pointer for each field. The host's memory is not needed any more when it returns.
  void bring(std::span<const void* const> host);
  /// What the main stream is told from now on comes behind the batch's arrival.
  void wait_in_main();
  /// The next batch may overwrite this one behind what the main stream was told so far.
  void release();

 private:
  struct Slot {
    std::unique_ptr<PinnedMemory> memory;
    std::unique_ptr<Event> copied;
  };

  std::shared_ptr<Context> context_;
  std::vector<int64_t> field_bytes_;
  std::vector<int64_t> offsets_;
  int64_t bytes_ = 0;
  std::unique_ptr<CardMemory> memory_;  ///< null: there are no fields
  std::array<Slot, 2> slots_;
  std::unique_ptr<Event> released_;
  size_t next_ = 0;
  bool is_brought_ = false;
};

}  // namespace fullbore::cuda
