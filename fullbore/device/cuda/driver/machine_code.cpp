#include "fullbore/device/cuda/driver/machine_code.h"

namespace fullbore::cuda {
namespace {

/// What was made so far. The driver owns the code until this is destroyed.
class Link {
 public:
  // No option is told: those that say for which card are refused by some drivers, and the card that was entered is what
  // is meant by none. Errors are told when the PTX is loaded as it is.
  explicit Link(const Driver& driver) : driver_(driver) {
    if (driver_.make_link->attempt(0, nullptr, nullptr, &handle_) != kSuccess) handle_ = nullptr;
  }
  ~Link() {
    if (handle_ != nullptr) driver_.destroy_link->attempt(handle_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  bool add(const Module& module) {
    // With the byte that ends it, as samples of NVIDIA's have it.
    return handle_ != nullptr &&
           driver_.add_to_link->attempt(handle_, kPtxInput, const_cast<char*>(module.ptx.c_str()),
                                        module.ptx.size() + 1, module.name.c_str(), 0, nullptr,
                                        nullptr) == kSuccess;
  }
  std::optional<std::string> complete() {
    void* code = nullptr;
    size_t bytes = 0;
    if (driver_.complete_link->attempt(handle_, &code, &bytes) != kSuccess || code == nullptr)
      return std::nullopt;
    return std::string(static_cast<const char*>(code), bytes);
  }

 private:
  const Driver& driver_;
  LinkHandle handle_ = nullptr;
};

}  // namespace

bool can_be_kept(const Driver& driver, const Module& module) {
  return driver.has_linker() && module.ptx.find(".extern .func") == std::string::npos;
}

std::optional<std::string> machine_code(const Driver& driver, const Module& module) {
  Link link(driver);
  if (!link.add(module)) return std::nullopt;
  return link.complete();
}

}  // namespace fullbore::cuda
