#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace fullbore::peptide {

/// Numbers of peak slots that programs for measured spectra are compiled for, ascending: quarters of `most`, so that
/// four programs serve all; `most` alone unless batches are to be trimmed.
std::vector<int64_t> peak_sizes(int64_t most, bool trim);
/// Which of them holds so many peaks; the last one of more.
size_t peak_size_of(const std::vector<int64_t>& sizes, size_t peaks);

/// Which items make which batch, where items of like sizes go together: a pure function of the position, as resumed
/// runs and any number of workers need it. Thread-safe.
///
/// Shuffled, each epoch has every item once, in another order. As many batches of that stream as an epoch has, 64 at
/// most, are sorted by size and cut anew, and what this gives comes in another order: an item still comes once an
/// epoch, with other batch-mates each time. Else the order is by size, and within a size as given.
class SizedOrder {
 public:
  /// Stands for a row of the last batch that there is no item for, where nothing is shuffled.
  static constexpr uint64_t kNobody = ~uint64_t{0};

  struct Batch {
    std::vector<uint64_t> items;  ///< numbers below sizes.size(), one a row
    size_t size = 0;              ///< the largest of its items
  };

  /// `sizes` of all items, of which there is at least one.
  SizedOrder(std::vector<uint8_t> sizes, int64_t batch_size, bool shuffle, uint64_t seed);
  Batch batch(uint64_t position) const;
  /// That of batch(position).
  size_t size(uint64_t position) const;
  /// Of an epoch, rounded up.
  uint64_t batches() const;

 private:
  struct Window {
    uint64_t number = 0;
    std::vector<uint64_t> items;  // batch after batch, before those are reordered
    std::vector<uint64_t> batch;  // by place in the window
  };
  std::shared_ptr<const Window> window(uint64_t number) const;
  std::shared_ptr<const Window> make_window(uint64_t number) const;
  size_t size_of(const Window& window, uint64_t batch) const;

  std::vector<uint8_t> sizes_;
  uint64_t rows_;
  bool shuffle_;
  uint64_t seed_;
  uint64_t batches_per_window_;
  // Prefetching goes from one window to the next: two are kept.
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Window> kept_[2];
};

}  // namespace fullbore::peptide
