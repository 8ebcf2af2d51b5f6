#include "fullbore/train/sequence_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {

SequenceStates::SequenceStates(std::span<const StateEntry> entries, int64_t vocabulary) {
  int64_t sequences = 0;
  for (const StateEntry& entry : entries) {
    if (entry.role != Role::recurrent) continue;
    FB_CHECK(entry.type.shape.rank() >= 1 && entry.type.shape[0] > 0 &&
                 (sequences == 0 || sequences == entry.type.shape[0]),
             "'{}' {} has no row for each of {} sequences", entry.name, entry.type.text(),
             sequences);
    sequences = entry.type.shape[0];
    tensors_.push_back(
        {entry.name, entry.type, std::vector<char>(static_cast<size_t>(entry.type.bytes()), 0)});
  }
  texts_.assign(static_cast<size_t>(sequences), {});
  for (size_t i = 0; i < texts_.size(); ++i) {
    texts_[i].stream = i;
    texts_[i].seen.assign(static_cast<size_t>(vocabulary), false);
  }
}

void begin_sequences(State& state) {
  for (size_t i = 0; i < state.entries().size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    if (entry.role != Role::recurrent) continue;
    std::vector<std::byte> rows(static_cast<size_t>(entry.type.bytes()));
    const bool generated = entry.name.starts_with(kGeneratedStates);
    const int first =
        generated ? state.find(kFirstStates + entry.name.substr(kGeneratedStates.size())) : -1;
    if (first >= 0) {
      const TensorType& one = state.entries()[static_cast<size_t>(first)].type;
      FB_CHECK(one == (TensorType{entry.type.dtype, entry.type.shape.without(0)}), "'{}' is {}",
               entry.name, entry.type.text());
      const auto width = static_cast<size_t>(one.bytes());
      for (size_t at = 0; at < rows.size(); at += width)
        state.read(first, std::span(rows).subspan(at, width));
    }
    state.write(static_cast<int>(i), rows);
  }
}

int64_t SequenceStates::bytes_per_sequence() const {
  size_t sum = 0;
  for (const Tensor& tensor : tensors_) sum += tensor.row_bytes();
  return static_cast<int64_t>(sum);
}

void SequenceStates::take_from(const State& state) {
  for (Tensor& tensor : tensors_) {
    const int entry = state.find(tensor.name);
    FB_CHECK(entry >= 0 && state.entries()[static_cast<size_t>(entry)].type == tensor.type,
             "no State '{}' {}", tensor.name, tensor.type.text());
    state.read(entry, std::as_writable_bytes(std::span(tensor.bytes)));
  }
}

void SequenceStates::put_to(State& state) const {
  for (const Tensor& tensor : tensors_) {
    const int entry = state.find(tensor.name);
    FB_CHECK(entry >= 0 && state.entries()[static_cast<size_t>(entry)].type == tensor.type,
             "no State '{}' {}", tensor.name, tensor.type.text());
    state.write(entry, std::as_bytes(std::span(tensor.bytes)));
  }
}

void SequenceStates::reset(int64_t sequence) {
  FB_CHECK(sequence >= 0 && sequence < sequences(), "sequence {} of {}", sequence, sequences());
  for (Tensor& tensor : tensors_)
    std::fill_n(tensor.bytes.begin() +
                    static_cast<std::ptrdiff_t>(tensor.row_bytes() * static_cast<size_t>(sequence)),
                tensor.row_bytes(), 0);
  SequenceText& own = text(sequence);
  const size_t vocabulary = own.seen.size();
  own = {.seed = own.seed, .stream = own.stream, .seen = std::vector<bool>(vocabulary, false)};
}

SequenceStates SequenceStates::resized(int64_t sequences) const {
  SequenceStates result;
  for (const Tensor& tensor : tensors_) {
    const TensorType type{tensor.type.dtype, tensor.type.shape.with(0, sequences)};
    result.tensors_.push_back(
        {tensor.name, type, std::vector<char>(static_cast<size_t>(type.bytes()), 0)});
  }
  result.texts_.resize(static_cast<size_t>(sequences));
  return result;
}

SequenceStates SequenceStates::gather(std::span<const int64_t> sequences) const {
  SequenceStates result = resized(static_cast<int64_t>(sequences.size()));
  for (size_t i = 0; i < sequences.size(); ++i) {
    FB_CHECK(sequences[i] >= 0 && sequences[i] < this->sequences(), "sequence {} of {}",
             sequences[i], this->sequences());
    const auto from = static_cast<size_t>(sequences[i]);
    result.texts_[i] = texts_[from];
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const size_t row = tensors_[t].row_bytes();
      std::memcpy(result.tensors_[t].bytes.data() + i * row, tensors_[t].bytes.data() + from * row,
                  row);
    }
  }
  return result;
}

void SequenceStates::scatter(std::span<const int64_t> sequences, SequenceStates& to) const {
  FB_CHECK(static_cast<int64_t>(sequences.size()) == this->sequences(),
           "{} places for {} sequences", sequences.size(), this->sequences());
  const std::string differs = difference(to);
  FB_CHECK(differs.empty(), "sequences of different models: {}", differs);
  for (size_t i = 0; i < sequences.size(); ++i) {
    FB_CHECK(sequences[i] >= 0 && sequences[i] < to.sequences(), "sequence {} of {}", sequences[i],
             to.sequences());
    const auto place = static_cast<size_t>(sequences[i]);
    to.texts_[place] = texts_[i];
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const size_t row = tensors_[t].row_bytes();
      std::memcpy(to.tensors_[t].bytes.data() + place * row, tensors_[t].bytes.data() + i * row,
                  row);
    }
  }
}

std::string SequenceStates::difference(const SequenceStates& others) const {
  if (tensors_.size() != others.tensors_.size())
    return fmt::format("{} tensors, {} were expected", tensors_.size(), others.tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& own = tensors_[i];
    const Tensor& other = others.tensors_[i];
    const TensorType wanted{other.type.dtype, other.type.shape.with(0, own.type.shape[0])};
    if (own.name != other.name || own.type != wanted)
      return fmt::format("'{}' {}, '{}' {} was expected", own.name, own.type.text(), other.name,
                         wanted.text());
  }
  if (!texts_.empty() && !others.texts_.empty() &&
      texts_[0].seen.size() != others.texts_[0].seen.size())
    return fmt::format("{} tokens, {} were expected", texts_[0].seen.size(),
                       others.texts_[0].seen.size());
  return "";
}

bool SequenceStates::operator==(const SequenceStates& other) const {
  return tensors_ == other.tensors_ && texts_ == other.texts_;
}

}  // namespace fullbore
