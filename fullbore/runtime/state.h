#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/shape.h"
#include "fullbore/base/source_loc.h"
#include "fullbore/device/device.h"
#include "fullbore/ir/derived_weight.h"
#include "fullbore/ir/graph.h"
#include "fullbore/runtime/host_element.h"

namespace fullbore {

/// One persistent tensor.
struct StateEntry {
  std::string name;
  Role role = Role::parameter;
  TensorType type;
  std::optional<DerivedWeight> derived =
      {};  ///< what of a parameter it stands for in 8 bits, if it does
};

/// Where an entry of role `frozen` lies already: in memory of the host that `owner` keeps, a mapped file.
struct LentEntry {
  std::string name;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Everything that persists from step to step: parameters, moments, averages, counters, in the memory of a device. Kept in one block per (role, dtype), entries in the order given, each at a multiple of the device's
/// alignment. Programs bind to entries by name; the host reads and writes copies, or looks at pieces.
///
/// Beside the entries lie derived weights (ir/derived_weight.h), which are neither saved nor restored. State counts the
/// writes of each entry and so knows which derived weights are out of date.
///
/// Moments lie in the host's memory where the device says so: what runs copies them (Plan), everybody else sees no difference.
///
/// Lent entries are read where they lie, if the device can, and never written: they take no memory of the State, and are
/// no part of what is saved.
class State {
 public:
  State() = default;
  /// Zero-filled but for what is `lent`, each an entry of role `frozen` of as many bytes. Names must be unique.
  /// MemoryError if there is no memory.
  State(std::vector<StateEntry> entries, std::shared_ptr<Device> device,
        std::span<const LentEntry> lent = {});
  State(State&&) noexcept = default;
  State& operator=(State&&) noexcept = default;

  const std::vector<StateEntry>& entries() const { return entries_; }
  int find(std::string_view name) const;  ///< index, or -1
  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  int64_t bytes()
      const;  ///< of all blocks on the device; derived weights and lent entries left out
  int64_t host_bytes() const;  ///< of those in the host's memory (DeviceFacts::moments_in_host)
  bool is_lent(int entry) const { return lent_[static_cast<size_t>(entry)] != nullptr; }
  int64_t lent_bytes() const;

  /// Where an entry lies on the device, for what is recorded there: who writes to it says so by was_written().
  Address address(int entry) const { return addresses_[static_cast<size_t>(entry)]; }
  void was_written(int entry) {
    ++writes_[static_cast<size_t>(entry)];
    ++all_writes_;
  }
  /// Of all entries in all: as long as it is the same, so are they.
  uint64_t writes() const { return all_writes_; }

  /// The entry's bytes, or the first of them.
  void read(int entry, std::span<std::byte> to) const;
  /// All of the entry.
  void write(int entry, std::span<const std::byte> from);
  /// Piece by piece, without a second copy of it all (Device::produce, Device::consume).
  void produce(int entry, Pieces order, const Device::Produce& produce);
  void consume(int entry, Pieces order, const Device::Consume& consume) const;
  /// All entries of a role and dtype, with zeros between them; nothing where there are none.
  void consume(Role role, DType dtype, Pieces order, const Device::Consume& consume) const;
  /// One entry from another of the same type, on the device.
  void copy(int from, int to);
  /// What is written there soon will not wait for the system to find memory. Contents stay.
  void make_resident();

  /// All of an entry, T being the type of its elements (host_element.h). UsageError with the caller's line: there is none of that name (the nearest is
  /// told), its elements are others, or, to write, there are not as many.
  template <class T>
  std::vector<T> read(std::string_view name, SourceLoc loc = SourceLoc::here()) const {
    const int entry = require(name, is_host_element<T>, sizeof(T), -1, loc);
    std::vector<T> values(static_cast<size_t>(type(entry).bytes()) / sizeof(T));
    read(entry, std::as_writable_bytes(std::span(values)));
    return values;
  }
  template <class T>
  void write(std::string_view name, std::span<const T> values, SourceLoc loc = SourceLoc::here()) {
    write(require(name, is_host_element<T>, sizeof(T), static_cast<int64_t>(values.size()), loc),
          std::as_bytes(values));
  }
  template <class T>
  void write(std::string_view name, const std::vector<T>& values,
             SourceLoc loc = SourceLoc::here()) {
    write(name, std::span<const T>(values), loc);
  }

  /// That derived weight of an entry; memory is allocated for a new one.
  int add_derived(const DerivedWeight& weight, const TensorType& type);
  Address derived_address(int derived) const {
    return derived_[static_cast<size_t>(derived)].memory->address();
  }
  /// Has the entry been written since the weight was derived from it?
  bool is_outdated(int derived) const;
  /// It has been derived from the entry as it is.
  void derived_was_made(int derived);
  int64_t derived_bytes() const;

 private:
  struct Block {
    Role role;
    DType dtype;
    std::unique_ptr<DeviceMemory> memory;
    bool in_host = false;
  };
  struct Derived {
    DerivedWeight weight;
    TensorType type;
    int entry = -1;
    uint64_t made_of = 0;  ///< the entry's count of writes
    std::unique_ptr<DeviceMemory> memory;
  };

  /// `count`: elements that are written; -1: any.
  int require(std::string_view name, bool (*suits)(DType), size_t width, int64_t count,
              SourceLoc loc) const;
  const TensorType& type(int entry) const { return entries_[static_cast<size_t>(entry)].type; }
  int64_t aligned(int64_t bytes) const;

  std::shared_ptr<Device> device_;
  std::vector<StateEntry> entries_;
  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<DeviceMemory>> lent_;  ///< by entry; null: in a block
  std::vector<Address> addresses_;
  std::vector<uint64_t> writes_;  ///< of each entry, from 1
  uint64_t all_writes_ = 0;
  std::vector<Derived> derived_;
  std::map<std::string, int, std::less<>> names_;
};

/// Elements of all parameters, frozen ones too.
int64_t parameter_count(const State& state);
int64_t frozen_count(const State& state);  ///< of those, the frozen ones

/// The State that a graph's inputs ask for (batch inputs left out).
std::vector<StateEntry> state_entries(const Graph& graph);

}  // namespace fullbore
