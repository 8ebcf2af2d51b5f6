#include "fullbore/runtime/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/device/state_in_host.h"
#include "fullbore/plan/memory.h"

namespace fullbore {
namespace {

std::unique_ptr<DeviceMemory> in_host_memory(Device& device, int64_t bytes) {
  auto* const in_host = dynamic_cast<StateInHost*>(&device);
  FB_CHECK(in_host != nullptr, "the device '{}' has no State in the host's memory",
           device.facts().name);
  return in_host->allocate_in_host(bytes);
}

}  // namespace

State::State(std::vector<StateEntry> entries, std::shared_ptr<Device> device,
             std::span<const LentEntry> lent)
    : device_(std::move(device)), entries_(std::move(entries)) {
  lent_.resize(entries_.size());
  addresses_.resize(entries_.size());
  writes_.resize(entries_.size(), 1);
  struct Layout {
    Role role;
    DType dtype;
    int64_t bytes = 0;
    std::vector<size_t> entries = {};
  };
  std::vector<Layout> blocks;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const StateEntry& entry = entries_[i];
    FB_CHECK(names_.emplace(entry.name, static_cast<int>(i)).second, "State '{}' twice",
             entry.name);
    if (const auto given = std::ranges::find(lent, entry.name, &LentEntry::name);
        given != lent.end()) {
      FB_CHECK(entry.role == Role::frozen &&
                   static_cast<int64_t>(given->bytes.size()) == entry.type.bytes(),
               "{} bytes are lent for '{}' {} {}", given->bytes.size(), entry.name,
               role_name(entry.role), entry.type.text());
      lent_[i] = device_->lend(given->bytes, dtype_bytes(entry.type.dtype), given->owner);
      addresses_[i] = lent_[i]->address();
      continue;
    }
    auto home = std::ranges::find_if(blocks, [&](const Layout& block) {
      return block.role == entry.role && block.dtype == entry.type.dtype;
    });
    if (home == blocks.end()) home = blocks.insert(home, Layout{entry.role, entry.type.dtype});
    home->entries.push_back(i);
    home->bytes += aligned(entry.type.bytes());
  }
  const bool moments_in_host = device_ && device_->facts().moments_in_host;
  for (const Layout& block : blocks) {
    const bool in_host = moments_in_host && block.role == Role::moment;
    blocks_.push_back(
        {.role = block.role,
         .dtype = block.dtype,
         .memory = in_host ? in_host_memory(*device_, block.bytes) : device_->allocate(block.bytes),
         .in_host = in_host});
    Address address = blocks_.back().memory->address();
    for (const size_t entry : block.entries) {
      addresses_[entry] = address;
      address = address + aligned(entries_[entry].type.bytes());
    }
  }
}

int64_t State::aligned(int64_t bytes) const {
  return aligned_bytes(bytes, device_->facts().alignment);
}

int State::find(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? -1 : found->second;
}

void State::read(int entry, std::span<std::byte> to) const {
  FB_CHECK(static_cast<int64_t>(to.size()) <= type(entry).bytes(), "{} bytes of '{}' {}", to.size(),
           entries_[static_cast<size_t>(entry)].name, type(entry).text());
  device_->read(address(entry), to);
}

void State::write(int entry, std::span<const std::byte> from) {
  FB_CHECK(!is_lent(entry), "'{}' is lent", entries_[static_cast<size_t>(entry)].name);
  FB_CHECK(static_cast<int64_t>(from.size()) == type(entry).bytes(), "{} bytes for '{}' {}",
           from.size(), entries_[static_cast<size_t>(entry)].name, type(entry).text());
  was_written(entry);
  device_->write(address(entry), from);
}

void State::produce(int entry, Pieces order, const Device::Produce& produce) {
  FB_CHECK(!is_lent(entry), "'{}' is lent", entries_[static_cast<size_t>(entry)].name);
  was_written(entry);
  device_->produce(address(entry), type(entry).bytes(), order, produce);
}

void State::consume(int entry, Pieces order, const Device::Consume& consume) const {
  device_->consume(address(entry), type(entry).bytes(), order, consume);
}

void State::consume(Role role, DType dtype, Pieces order, const Device::Consume& consume) const {
  for (const Block& block : blocks_)
    if (block.role == role && block.dtype == dtype)
      device_->consume(block.memory->address(), block.memory->bytes(), order, consume);
}

void State::copy(int from, int to) {
  FB_CHECK(type(from) == type(to), "'{}' is not of the type of '{}'",
           entries_[static_cast<size_t>(from)].name, entries_[static_cast<size_t>(to)].name);
  FB_CHECK(!is_lent(to), "'{}' is lent", entries_[static_cast<size_t>(to)].name);
  was_written(to);
  device_->copy(address(from), address(to), type(to).bytes());
}

void State::make_resident() {
  for (const Block& block : blocks_)
    device_->make_resident(block.memory->address(), block.memory->bytes());
}

int State::add_derived(const DerivedWeight& weight, const TensorType& type) {
  const int entry = find(weight.parameter);
  FB_CHECK(entry >= 0, "'{}' is derived from no State", weight.name());
  const auto known = std::ranges::find(derived_, weight, &Derived::weight);
  if (known != derived_.end()) {
    FB_CHECK(known->type == type, "'{}' is {}", weight.name(), known->type.text());
    return static_cast<int>(known - derived_.begin());
  }
  derived_.push_back({weight, type, entry, 0, device_->allocate(aligned(type.bytes()))});
  return static_cast<int>(derived_.size() - 1);
}

bool State::is_outdated(int derived) const {
  const Derived& found = derived_[static_cast<size_t>(derived)];
  return found.made_of != writes_[static_cast<size_t>(found.entry)];
}

void State::derived_was_made(int derived) {
  Derived& found = derived_[static_cast<size_t>(derived)];
  found.made_of = writes_[static_cast<size_t>(found.entry)];
}

int64_t State::derived_bytes() const {
  int64_t total = 0;
  for (const Derived& each : derived_) total += aligned(each.type.bytes());
  return total;
}

int State::require(std::string_view name, bool (*suits)(DType), size_t width, int64_t count,
                   SourceLoc loc) const {
  const int entry = find(name);
  if (entry < 0) {
    std::vector<std::string> names;
    for (const StateEntry& each : entries_) names.push_back(each.name);
    throw UsageError(fmt::format("there is no State '{}'.{}", name, did_you_mean(name, names)),
                     loc);
  }
  const TensorType& found = type(entry);
  if (!suits(found.dtype))
    throw UsageError(fmt::format("State '{}' is {}, of elements of {} bytes, and was asked for as "
                                 "another type, of {} bytes",
                                 name, found.text(), dtype_bytes(found.dtype), width),
                     loc);
  const int64_t bytes = count * static_cast<int64_t>(width);
  if (count >= 0 && bytes != found.bytes())
    throw UsageError(fmt::format("State '{}' is {}, {} bytes, and {} are to be written", name,
                                 found.text(), found.bytes(), bytes),
                     loc);
  return entry;
}

int64_t State::bytes() const {
  int64_t total = 0;
  for (const Block& block : blocks_) total += block.in_host ? 0 : block.memory->bytes();
  return total;
}

int64_t State::host_bytes() const {
  int64_t total = 0;
  for (const Block& block : blocks_) total += block.in_host ? block.memory->bytes() : 0;
  return total;
}

int64_t State::lent_bytes() const {
  int64_t total = 0;
  for (const auto& memory : lent_) total += memory ? memory->bytes() : 0;
  return total;
}

namespace {

int64_t element_count(const State& state, Role role) {
  int64_t count = 0;
  for (const StateEntry& entry : state.entries())
    if (entry.role == role) count += entry.type.elements();
  return count;
}

}  // namespace

int64_t parameter_count(const State& state) {
  return element_count(state, Role::parameter) + frozen_count(state);
}

int64_t frozen_count(const State& state) { return element_count(state, Role::frozen); }

std::vector<StateEntry> state_entries(const Graph& graph) {
  std::vector<StateEntry> entries;
  for (const Graph::Input& input : graph.inputs())
    if (is_state(input.role))
      entries.push_back({input.name, input.role, graph.type(input.value), input.derived});
  return entries;
}

}  // namespace fullbore
