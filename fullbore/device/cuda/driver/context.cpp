#include "fullbore/device/cuda/driver/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/start_thread.h"
#include "fullbore/base/text.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/cuda/cublaslt/matmuls.h"
#include "fullbore/device/cuda/driver/machine_code.h"
#include "fullbore/device/device_error.h"

namespace fullbore::cuda {
namespace {

// What a kernel may have of shared memory unless it asks for more: its own variables and what a launch adds.
constexpr int64_t kUsualSharedBytes = 48 << 10;

std::string text_of(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

}  // namespace

Context::Context(std::shared_ptr<const Driver> driver, int card)
    : driver_(std::move(driver)), card_(find_card(*driver_, card)), code_cache_(*driver_, card_) {
  driver_->retain_context(&handle_, card_.handle);
  try {
    driver_->set_context(handle_);
    driver_->make_stream(&main_, kStreamOfItsOwn);
    driver_->make_stream(&copies_, kStreamOfItsOwn);
    driver_->make_stream(&snapshots_, kStreamOfItsOwn);
  } catch (...) {
    close();
    throw;
  }
}

Context::~Context() { close(); }

void Context::close() noexcept {
  library_matmuls_.reset();
  if (const Driver* const driver = enter_to_destroy()) {
    for (const auto& [ptx, loaded] : modules_)
      if (loaded.handle != nullptr) driver->unload_module.attempt(loaded.handle);
    if (written_ != nullptr) driver->destroy_event.attempt(written_);
    for (StreamHandle const stream : {main_, copies_, snapshots_, behind_})
      if (stream != nullptr) driver->destroy_stream.attempt(stream);
  }
  driver_->release_context.attempt(card_.handle);
}

const Driver& Context::enter() const {
  driver_->set_context(handle_);
  return *driver_;
}

const Driver* Context::enter_to_destroy() const noexcept {
  return driver_->set_context.attempt(handle_) == kSuccess ? driver_.get() : nullptr;
}

// Machine code is what the cache has, or what is made for it. Whatever that meets, the driver can load the PTX itself,
// and says what is wrong with it.
ModuleHandle Context::loaded(const Module& module) {
  if (can_be_kept(*driver_, module) && code_cache_.is_open()) {
    if (const std::optional<std::string> kept = code_cache_.find(module.ptx)) {
      if (ModuleHandle const handle = load_image(module, *kept, true)) return handle;
      code_cache_.warn("the driver refuses code that it has made itself");
    }
    enter();
    if (const std::optional<std::string> made = machine_code(*driver_, module))
      if (ModuleHandle const handle = load_image(module, *made, true)) {
        code_cache_.put(module.ptx, *made);
        return handle;
      }
  }
  return load_image(module, module.ptx, false);
}

// Of machine code, which may be refused: null, if it is.
ModuleHandle Context::load_image(const Module& module, const std::string& image,
                                 bool may_be_refused) const {
  char log[4096] = {};
  int options[] = {kErrorLog, kErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  ModuleHandle handle = nullptr;
  const int code = enter().load_module.attempt(&handle, image.c_str(), 2, options, values);
  if (code == kSuccess) return handle;
  if (may_be_refused && (is_refusal_of_code(code) || code == kNoBinaryForGpu)) return nullptr;
  log[sizeof log - 1] = '\0';
  const std::string text =
      fmt::format("{} of '{}': {}{}{}", driver_->load_module.name(), module.name, result_text(code),
                  *log == '\0' ? "" : "; the driver's compiler says: ", excerpt(log, 500));
  if (code == kOutOfMemory) throw MemoryError(text);
  if (is_refusal_of_code(code)) throw CodeRefused(text);
  throw DeviceError(text);
}

FunctionHandle Context::function(const std::shared_ptr<const Module>& module,
                                 const std::string& entry, int64_t dynamic_shared_bytes) {
  LoadedModule* found = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    found = &modules_[module->ptx];
  }
  // Others may be loaded meanwhile.
  const std::scoped_lock lock(found->mutex);
  if (found->handle == nullptr) {
    found->handle = loaded(*module);
    found->module = module;
  }
  const Driver& driver = enter();
  FunctionHandle& function = found->functions[entry];
  if (function == nullptr)
    if (const int code = driver.function.attempt(&function, found->handle, entry.c_str());
        code != kSuccess)
      throw DeviceError(fmt::format("{} of '{}' in '{}': {}", driver.function.name(), entry,
                                    module->name, result_text(code)));
  int own_shared_bytes = 0;
  driver.function_attribute(&own_shared_bytes, kFunctionSharedBytes, function);
  if (own_shared_bytes + dynamic_shared_bytes > kUsualSharedBytes)
    if (const int code = driver.set_function_attribute.attempt(
            function, kFunctionMostDynamicSharedBytes, static_cast<int>(dynamic_shared_bytes));
        code != kSuccess)
      throw DeviceError(fmt::format("{} of '{}' for {} of shared memory: {}",
                                    driver.set_function_attribute.name(), entry,
                                    text_of(dynamic_shared_bytes), result_text(code)));
  return function;
}

LibraryMatmuls* Context::library_matmuls(std::string* why_not) {
  const std::scoped_lock lock(library_mutex_);
  if (!library_matmuls_ && no_library_matmuls_.empty()) {
    const Result<std::shared_ptr<const CublasLt>> library = CublasLt::load();
    try {
      if (library.ok())
        library_matmuls_ = std::make_unique<LibraryMatmuls>(*this, library.value());
      else
        no_library_matmuls_ = library.error();
    } catch (const Error& error) {
      no_library_matmuls_ = error.what();
    }
  }
  if (!library_matmuls_) *why_not = no_library_matmuls_;
  return library_matmuls_.get();
}

void Context::load(std::span<const LoadRequest> entries) {
  std::map<const Module*, const LoadRequest*> modules;
  for (const LoadRequest& each : entries) modules.try_emplace(each.module.get(), &each);
  std::vector<const LoadRequest*> work;
  for (const auto& [module, entry] : modules) work.push_back(entry);
  // The longest first, so that no thread is left alone with one in the end.
  std::ranges::sort(work, std::greater<>{},
                    [](const LoadRequest* each) { return each->module->ptx.size(); });
  std::vector<std::exception_ptr> problems(work.size());
  std::atomic<size_t> next = 0;
  const auto load_next = [&] {
    for (size_t i = next++; i < work.size(); i = next++) try {
        function(work[i]->module, work[i]->name, work[i]->dynamic_shared_bytes);
      } catch (...) {
        problems[i] = std::current_exception();
        next = work.size();
      }
  };
  const size_t threads = std::min(static_cast<size_t>(available_processors()), work.size());
  {
    const std::vector<std::jthread> helpers =
        start_helpers(std::max<size_t>(threads, 1) - 1, load_next);
    load_next();
  }
  for (const std::exception_ptr& problem : problems)
    if (problem) std::rethrow_exception(problem);
}

StreamHandle Context::behind() {
  const Driver& driver = enter();
  if (behind_ == nullptr) driver.make_stream(&behind_, kStreamOfItsOwn);
  if (written_ == nullptr) driver.make_event(&written_, kEventWithoutTime);
  return behind_;
}

void Context::leave_behind(const void* owner) {
  enter().record_event(written_, behind_);
  left_by_ = owner;
}

void Context::wait_for_copies_in_main() const {
  if (left_by_ != nullptr) enter().wait_in_stream(main_, written_, 0);
}

void Context::wait_for_copies() const {
  if (left_by_ != nullptr) enter().wait_for_event(written_);
}

void Context::end_copies() noexcept {
  if (left_by_ == nullptr) return;
  if (const Driver* const driver = enter_to_destroy()) driver->wait_for_event.attempt(written_);
  left_by_ = nullptr;
}

std::byte* Context::in_host(Address address) const {
  const std::scoped_lock lock(host_mutex_);
  const auto next = host_ranges_.upper_bound(address.value);
  if (next == host_ranges_.begin() || std::prev(next)->second <= address.value) return nullptr;
  return reinterpret_cast<std::byte*>(address.value);
}

Event::Event(std::shared_ptr<const Context> context, unsigned flags)
    : context_(std::move(context)) {
  context_->enter().make_event(&handle_, flags);
}
Event::~Event() {
  if (const Driver* const driver = context_->enter_to_destroy())
    driver->destroy_event.attempt(handle_);
}

CardMemory::CardMemory(std::shared_ptr<const Context> context, int64_t bytes)
    : context_(std::move(context)) {
  const Driver& driver = context_->enter();
  const int code = driver.allocate.attempt(&pointer_, static_cast<size_t>(bytes > 0 ? bytes : 1));
  if (code == kSuccess) return;
  if (code != kOutOfMemory) throw_failure(driver.allocate.name(), code);
  size_t free = 0, total = 0;
  (void)driver.memory_left.attempt(&free, &total);
  throw MemoryError(fmt::format(
      "{} of memory of card {} ({}) are wanted, {} of {} are free ({}: {}). Another process may "
      "hold the rest; smaller batches, engine.recompute=auto or engine.accumulate take less",
      text_of(bytes), context_->card().number, context_->card().name,
      text_of(static_cast<int64_t>(free)), text_of(static_cast<int64_t>(total)),
      driver.allocate.name(), result_text(code)));
}
CardMemory::~CardMemory() {
  if (const Driver* const driver = context_->enter_to_destroy()) driver->free.attempt(pointer_);
}

PinnedMemory::PinnedMemory(std::shared_ptr<const Context> context, int64_t bytes)
    : context_(std::move(context)) {
  const Driver& driver = context_->enter();
  const auto count = static_cast<size_t>(bytes > 0 ? bytes : 1);
  const int code = driver.allocate_pinned.attempt(&pointer_, count, kPinnedForAll);
  if (code == kOutOfMemory)
    throw MemoryError(fmt::format("{} of memory that the card copies to are wanted ({}: {})",
                                  text_of(bytes), driver.allocate_pinned.name(),
                                  result_text(code)));
  if (code != kSuccess) throw_failure(driver.allocate_pinned.name(), code);
  std::memset(pointer_, 0, count);
}
PinnedMemory::~PinnedMemory() {
  if (const Driver* const driver = context_->enter_to_destroy())
    driver->free_pinned.attempt(pointer_);
}

HostState::HostState(std::shared_ptr<Context> context, int64_t bytes)
    : context_(std::move(context)) {
  const Driver& driver = context_->enter();
  const auto count = static_cast<size_t>(bytes > 0 ? bytes : 1);
  const int code = driver.allocate_pinned.attempt(&pointer_, count, kPinnedForAll);
  if (code == kOutOfMemory)
    throw MemoryError(fmt::format(
        "{} of the host's memory are wanted for moments, pinned so that card {} ({}) copies them "
        "by "
        "itself ({}: {}). engine.offload=none keeps them on the card, engine.moments=int8 takes a "
        "quarter of them",
        text_of(bytes), context_->card().number, context_->card().name,
        driver.allocate_pinned.name(), result_text(code)));
  if (code != kSuccess) throw_failure(driver.allocate_pinned.name(), code);
  std::memset(pointer_, 0, count);
  const std::scoped_lock lock(context_->host_mutex_);
  context_->host_ranges_[address().value] = address().value + count;
}
HostState::~HostState() {
  {
    const std::scoped_lock lock(context_->host_mutex_);
    context_->host_ranges_.erase(address().value);
  }
  const Driver* const driver = context_->enter_to_destroy();
  if (driver == nullptr) return;
  driver->wait_for_stream.attempt(context_->main());
  context_->end_copies();
  driver->free_pinned.attempt(pointer_);
}

}  // namespace fullbore::cuda
