#include "fullbore/device/cuda/driver/code_cache.h"

#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "fullbore/base/cache_directory.h"
#include "fullbore/base/printable.h"
#include "fullbore/device/cuda/driver/card.h"
#include "fullbore/device/cuda/driver/driver.h"

namespace fullbore::cuda {
namespace {

// Goes up with what the driver's compiler is told beside the PTX (machine_code.cpp), which is nothing so far.
constexpr int kFormat = 1;

}  // namespace

CodeCache::CodeCache(const Driver& driver, const Card& card)
    : made_for_(fmt::format("card code {}\ndriver {} {}\ncard {}, capability {}\n", kFormat,
                            driver.version(), driver.build(), card.name, card.facts.capability)) {}

bool CodeCache::is_open() {
  std::call_once(looked_, [this] {
    folder_ = compile_cache_directory("cards");
    if (!folder_.empty()) cache_.emplace(folder_);
  });
  return cache_.has_value();
}

std::string CodeCache::key(std::string_view ptx) const { return made_for_ + std::string(ptx); }

std::optional<std::string> CodeCache::find(std::string_view ptx) const {
  std::string problem;
  std::optional<std::string> code = cache_->find(key(ptx), &problem);
  if (!problem.empty()) warn(problem);
  return code;
}

void CodeCache::put(std::string_view ptx, std::string_view code) const {
  std::string problem;
  cache_->put(key(ptx), code, &problem);
  if (!problem.empty()) warn(problem);
}

void CodeCache::warn(const std::string& problem) const {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::scoped_lock lock(mutex);
  if (told.insert(folder_).second)
    fmt::print(stderr, "fullbore: warning: the card's code is compiled anew: {}\n",
               printable_name(problem));
}

}  // namespace fullbore::cuda
