#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "fullbore/device/address.h"
#include "fullbore/device/cuda/cuda_kernel.h"
#include "fullbore/device/cuda/driver/card.h"
#include "fullbore/device/cuda/driver/code_cache.h"
#include "fullbore/device/cuda/driver/driver.h"
#include "fullbore/device/device_error.h"

namespace fullbore::cuda {

class LibraryMatmuls;

/// The driver does not take a module's code: for who can do without.
class CodeRefused : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// An entry of a module, as a launch wants it.
struct LoadRequest {
  std::shared_ptr<const Module> module;
  std::string name;
  int64_t dynamic_shared_bytes = 0;
};

/// A card in use: its context, its streams, and the code that was loaded. All that is made on the card keeps it.
/// Everything here may be called by several threads at once, but for what is about copies behind runs.
class Context {
 public:
  /// UsageError, MemoryError, DeviceError: there is no such card, or it cannot be used.
  Context(std::shared_ptr<const Driver> driver, int card);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// The driver, whose calls are about this card in the calling thread from now on.
  const Driver& enter() const;
  /// Likewise for who destroys things: nothing where the card does not answer any more.
  const Driver* enter_to_destroy() const noexcept;

  const Card& card() const { return card_; }
  std::string hardware() const { return card_.text(*driver_); }
  ContextHandle handle() const { return handle_; }
  StreamHandle main() const { return main_; }      ///< of runs, and of what comes behind them
  StreamHandle copies() const { return copies_; }  ///< of batches
  StreamHandle snapshots() const { return snapshots_; }

  // Copies to the host that a run leaves to go on beside the next one.
  /// Their stream, made when it is first asked for.
  StreamHandle behind();
  /// It has been told the copies of a run of `owner`.
  void leave_behind(const void* owner);
  /// Whose copies may be going on; null: nobody's.
  const void* left_by() const { return left_by_; }
  /// What the main stream is told from now on comes behind them.
  void wait_for_copies_in_main() const;
  /// The host waits.
  void wait_for_copies() const;
  /// The same for who destroys things: they have no owner any more.
  void end_copies() noexcept;

  /// The host's pointer to an address in memory that StateInHost was given; null: it is the card's. Under unified addressing
  /// (64-bit systems) addresses of pinned memory are the host's, and no address of a card's memory is one of them.
  std::byte* in_host(Address address) const;

  /// The entry of a module, which is loaded when it is first asked for. DeviceError (CodeRefused) names module and entry; with
  /// what the driver's compiler says.
  FunctionHandle function(const std::shared_ptr<const Module>& module, const std::string& entry,
                          int64_t dynamic_shared_bytes);
  /// Loads what is not yet loaded of these, by as many threads as there are processors: the driver's compiler takes some
  /// ten milliseconds for each module, and is the longest part of a start with an empty cache (code_cache.h).
  void load(std::span<const LoadRequest> entries);

  /// Products by cuBLASLt (cublaslt/matmuls.h), which is loaded when they are first asked for. Null, and why: there is none, or
  /// it does not work with this card.
  LibraryMatmuls* library_matmuls(std::string* why_not);

 private:
  struct LoadedModule {
    std::mutex mutex;
    std::shared_ptr<const Module> module;
    ModuleHandle handle = nullptr;
    std::map<std::string, FunctionHandle> functions;
  };
  ModuleHandle loaded(const Module& module);
  ModuleHandle load_image(const Module& module, const std::string& image,
                          bool may_be_refused) const;
  void close() noexcept;

  std::shared_ptr<const Driver> driver_;
  Card card_;
  CodeCache code_cache_;
  ContextHandle handle_ = nullptr;
  StreamHandle main_ = nullptr, copies_ = nullptr, snapshots_ = nullptr;
  StreamHandle behind_ = nullptr;
  EventHandle written_ = nullptr;  ///< behind what that stream was told last
  const void* left_by_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, LoadedModule> modules_;  ///< by their PTX
  std::mutex library_mutex_;
  std::unique_ptr<LibraryMatmuls> library_matmuls_;
  std::string no_library_matmuls_;  ///< why; "" before they are asked for
  friend class HostState;
  mutable std::mutex host_mutex_;
  std::map<uint64_t, uint64_t> host_ranges_;  ///< of HostState: first byte, and one behind the last
};

/// A point in a stream.
class Event {
 public:
  explicit Event(std::shared_ptr<const Context> context, unsigned flags = kEventWithoutTime);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  EventHandle get() const { return handle_; }

 private:
  std::shared_ptr<const Context> context_;
  EventHandle handle_ = nullptr;
};

/// Memory of the card, not cleared. MemoryError names what was asked for and what is free.
class CardMemory {
 public:
  CardMemory(std::shared_ptr<const Context> context, int64_t bytes);
  ~CardMemory();
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;
  DevicePointer get() const { return pointer_; }

 private:
  std::shared_ptr<const Context> context_;
  DevicePointer pointer_ = 0;
};

/// Memory of the host that the card copies to and from by itself. Zeroed. MemoryError if there is none.
class PinnedMemory {
 public:
  PinnedMemory(std::shared_ptr<const Context> context, int64_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  std::byte* get() const { return static_cast<std::byte*>(pointer_); }

 private:
  std::shared_ptr<const Context> context_;
  void* pointer_ = nullptr;
};

/// Pinned memory that addresses of the device name (Context::in_host): State that lies in the host's memory.
class HostState {
 public:
  /// MemoryError that says what it is for.
  HostState(std::shared_ptr<Context> context, int64_t bytes);
  /// Behind all runs so far.
  ~HostState();
  HostState(const HostState&) = delete;
  HostState& operator=(const HostState&) = delete;
  Address address() const { return {reinterpret_cast<uint64_t>(pointer_)}; }

 private:
  std::shared_ptr<Context> context_;
  void* pointer_ = nullptr;
};

}  // namespace fullbore::cuda
