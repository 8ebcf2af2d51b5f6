#include "workloads/chess/record_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/data/permutation.h"

namespace fullbore::chess {
namespace {

constexpr size_t kStretch = 64;  // batches whose records are sorted together

template <class T>
void shuffle(std::vector<T>& values, uint64_t seed, uint64_t stream) {
  if (values.empty()) return;
  const std::vector<T> before = values;
  const Permutation permutation(values.size(), seed, stream);
  for (size_t i = 0; i < values.size(); ++i) values[i] = before[permutation(i)];
}

}  // namespace

std::vector<std::vector<BatchField>> RecordBatches::shapes_of(int64_t rows,
                                                              std::span<const int64_t> lengths) {
  std::vector<std::vector<BatchField>> shapes;
  for (const int64_t length : lengths) {
    const TensorType type{DType::i32, {rows, length}};
    shapes.push_back({{"inputs", type}, {"targets", type}});
  }
  return shapes;
}

RecordBatches::RecordBatches(std::shared_ptr<const ChessData> data, const ChessExamples& examples,
                             RecordBatchOptions options)
    : data_(std::move(data)),
      examples_(examples),
      options_(std::move(options)),
      shapes_(shapes_of(options_.rows, options_.lengths)) {
  FB_CHECK(examples_.size() > 0, "no records");
}

uint64_t RecordBatches::batches() const {
  const auto rows = static_cast<uint64_t>(options_.rows);
  return (examples_.size() + rows - 1) / rows;
}

int64_t RecordBatches::length(uint32_t record) const {
  const RecordTokens& tokens = examples_.tokens[record];
  return static_cast<int64_t>(tokens.prompt.size() + tokens.completion.size()) - 1;
}

// A last batch that is not full is filled up with records of the beginning.
std::shared_ptr<const RecordBatches::Epoch> RecordBatches::epoch(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  if (epoch_ && epoch_->number == number) return epoch_;
  auto made = std::make_shared<Epoch>();
  made->number = number;
  made->order.resize(examples_.size());
  std::iota(made->order.begin(), made->order.end(), 0U);
  made->batches.resize(batches());
  std::iota(made->batches.begin(), made->batches.end(), 0U);
  if (options_.shuffled) {
    shuffle(made->order, options_.seed, 2 * number);
    const size_t stretch = kStretch * static_cast<size_t>(options_.rows);
    for (size_t first = 0; first < made->order.size(); first += stretch) {
      const auto begin = made->order.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = made->order.begin() +
                       static_cast<std::ptrdiff_t>(std::min(first + stretch, made->order.size()));
      std::stable_sort(begin, end, [&](uint32_t a, uint32_t b) { return length(a) < length(b); });
    }
    shuffle(made->batches, options_.seed, 2 * number + 1);
  }
  epoch_ = made;
  return made;
}

std::vector<uint32_t> RecordBatches::rows_at(uint64_t position) const {
  const std::shared_ptr<const Epoch> order = epoch(position / batches());
  const auto rows = static_cast<uint64_t>(options_.rows);
  const uint64_t first = order->batches[position % batches()] * rows;
  std::vector<uint32_t> records;
  for (uint64_t i = first; i < first + rows; ++i) {
    if (i >= order->order.size() && !options_.shuffled) break;
    records.push_back(order->order[i % order->order.size()]);
  }
  return records;
}

size_t RecordBatches::shape_at(uint64_t position) const {
  int64_t longest = 0;
  for (const uint32_t record : rows_at(position)) longest = std::max(longest, length(record));
  const auto fits = std::ranges::lower_bound(options_.lengths, longest);
  FB_CHECK(fits != options_.lengths.end(), "a record of {} tokens", longest);
  return static_cast<size_t>(fits - options_.lengths.begin());
}

void RecordBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const auto width = static_cast<size_t>(options_.lengths[shape_at(position)]);
  auto* inputs = static_cast<int32_t*>(buffers[0]);
  auto* targets = static_cast<int32_t*>(buffers[1]);
  std::fill_n(inputs, static_cast<size_t>(options_.rows) * width, 0);
  std::fill_n(targets, static_cast<size_t>(options_.rows) * width, -1);
  for (const uint32_t record : rows_at(position)) {
    const RecordTokens& tokens = examples_.tokens[record];
    std::vector<int32_t> all = tokens.prompt;
    all.insert(all.end(), tokens.completion.begin(), tokens.completion.end());
    std::copy(all.begin(), all.end() - 1, inputs);
    const size_t first = options_.prompt_loss ? 0 : tokens.prompt.size() - 1;
    std::copy(all.begin() + static_cast<std::ptrdiff_t>(first) + 1, all.end(), targets + first);
    inputs += width;
    targets += width;
  }
}

}  // namespace fullbore::chess
