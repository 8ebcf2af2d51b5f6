#include "fullbore/train/snapshot.h"

#include <algorithm>
#include <new>
#include <utility>

namespace fullbore {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kPieceBytes = int64_t{2} << 20;  // one of the pages that tensor memory asks for

}  // namespace

/// What follows on the last piece in both memories becomes part of it: pieces of a size are shared out
/// evenly, and those of a huge page meet one each.
void Snapshot::add_pieces(const char* from, char* to, int64_t bytes) {
  while (bytes > 0) {
    const bool follows = !pieces_.empty() && pieces_.back().bytes < kPieceBytes &&
                         pieces_.back().from + pieces_.back().bytes == from &&
                         pieces_.back().to + pieces_.back().bytes == to;
    if (!follows) pieces_.push_back({from, to, 0});
    const int64_t count = std::min(bytes, kPieceBytes - pieces_.back().bytes);
    pieces_.back().bytes += count;
    from += count;
    to += count;
    bytes -= count;
  }
}

Snapshot::Snapshot(const State& state, Compression compression)
    : groups_(tensor_groups(state, compression)) {
  for (TensorGroup& group : groups_) {
    group.tensors = in_file_order(group.tensors);
    int64_t bytes = 0;
    for (const NamedTensor& tensor : group.tensors) bytes += tensor.type.bytes();
    TensorMemory memory = allocate_tensor_memory(bytes);
    if (!memory) throw std::bad_alloc();
    char* to = memory.get();
    for (NamedTensor& tensor : group.tensors) {
      const char* from = static_cast<const char*>(std::exchange(tensor.data, to));
      add_pieces(from, to, tensor.type.bytes());
      to += tensor.type.bytes();
    }
    memory_.push_back(std::move(memory));
  }
}

void Snapshot::take(Team& team) {
  team.parallel_for(static_cast<int64_t>(pieces_.size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces_[static_cast<size_t>(i)];
      // Before the first step most of State is zero, as new memory is: no page is met for that.
      if (taken_ || !is_zero(piece.from, piece.bytes))
        copy_past_caches(piece.to, piece.from, piece.bytes);
    }
  });
  taken_ = true;
}

void Snapshot::fill(const Draw& draw) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    char* to = memory_[i].get();
    for (const NamedTensor& tensor : groups_[i].tensors) {
      draw(tensor.name, tensor.type, to);
      to += tensor.type.bytes();
    }
  }
  taken_ = true;
}

void Snapshot::meet(const std::atomic<bool>& enough) {
  for (const Piece& piece : pieces_)
    for (int64_t at = 0; at < piece.bytes && !enough; at += kPage) meet_page(piece.to + at);
}

}  // namespace fullbore
