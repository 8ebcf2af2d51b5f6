#include "fullbore/train/snapshot.h"

#include <utility>

#include "fullbore/base/tensor_memory.h"

namespace fullbore {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

Snapshot::Snapshot(const State& state, Compression compression)
    : state_(&state), device_(state.shared_device()), groups_(tensor_groups(state, compression)) {
  for (TensorGroup& group : groups_) {
    group.tensors = in_file_order(group.tensors);
    Copy copy;
    int64_t bytes = 0;
    for (const NamedTensor& tensor : group.tensors) {
      copy.parts.push_back({state.address(state.find(tensor.name)), bytes, tensor.type.bytes()});
      bytes += tensor.type.bytes();
    }
    copy.memory = device_->allocate_host(bytes);
    for (size_t i = 0; i < group.tensors.size(); ++i) {
      group.tensors[i].data = copy.memory->bytes().data() + copy.parts[i].offset;
      group.tensors[i].pieces = nullptr;
    }
    copies_.push_back(std::move(copy));
  }
}

void Snapshot::take() {
  for (Copy& copy : copies_) device_->snapshot(copy.parts, *copy.memory, !taken_);
  for (Copy& copy : copies_) copy.memory->wait();
  taken_ = true;
  taken_at_ = state_->writes();
}

void Snapshot::meet(const std::atomic<bool>& enough) {
  for (Copy& copy : copies_) {
    const std::span<std::byte> bytes = copy.memory->bytes();
    for (size_t at = 0; at < bytes.size() && !enough; at += kPage)
      meet_page(reinterpret_cast<char*>(&bytes[at]));
  }
}

}  // namespace fullbore
