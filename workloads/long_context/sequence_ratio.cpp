#include "workloads/long_context/sequence_ratio.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/long_context/answer_words.h"

namespace fullbore::long_context {
namespace {

using Symbols = std::vector<uint32_t>;

struct Block {
  size_t a = 0, b = 0, size = 0;
};

class Matcher {
 public:
  Matcher(const Symbols& a, const Symbols& b) : a_(a), b_(b) {
    for (size_t j = 0; j < b.size(); ++j) places_[b[j]].push_back(j);
    if (b.size() < 200) return;
    const size_t most = b.size() / 100 + 1;
    std::erase_if(places_, [&](const auto& each) { return each.second.size() > most; });
  }

  /// Symbols in common blocks.
  size_t matches() {
    struct Part {
      size_t a_low, a_high, b_low, b_high;
    };
    std::vector<Part> open = {{0, a_.size(), 0, b_.size()}};
    size_t total = 0;
    while (!open.empty()) {
      const Part part = open.back();
      open.pop_back();
      const Block found = longest(part.a_low, part.a_high, part.b_low, part.b_high);
      if (found.size == 0) continue;
      total += found.size;
      open.push_back({part.a_low, found.a, part.b_low, found.b});
      open.push_back({found.a + found.size, part.a_high, found.b + found.size, part.b_high});
    }
    return total;
  }

 private:
  // The longest block, of several the first in a, then in b; then grown by symbols that begin none.
  Block longest(size_t a_low, size_t a_high, size_t b_low, size_t b_high) {
    Block best{a_low, b_low, 0};
    std::unordered_map<size_t, size_t> ends, next;
    for (size_t i = a_low; i < a_high; ++i) {
      next.clear();
      const auto places = places_.find(a_[i]);
      if (places != places_.end())
        for (const size_t j : places->second) {
          if (j < b_low) continue;
          if (j >= b_high) break;
          const auto before = j > 0 ? ends.find(j - 1) : ends.end();
          const size_t size = (before == ends.end() ? 0 : before->second) + 1;
          next[j] = size;
          if (size > best.size) best = {i + 1 - size, j + 1 - size, size};
        }
      std::swap(ends, next);
    }
    while (best.a > a_low && best.b > b_low && a_[best.a - 1] == b_[best.b - 1]) {
      --best.a;
      --best.b;
      ++best.size;
    }
    while (best.a + best.size < a_high && best.b + best.size < b_high &&
           a_[best.a + best.size] == b_[best.b + best.size])
      ++best.size;
    return best;
  }

  const Symbols& a_;
  const Symbols& b_;
  std::unordered_map<uint32_t, std::vector<size_t>> places_;
};

}  // namespace

double sequence_ratio(std::string_view a, std::string_view b) {
  std::unordered_map<std::string, uint32_t> numbers;
  const auto symbols = [&](std::string_view text) {
    Symbols result;
    for (std::string& each : split_characters(text))
      result.push_back(
          numbers.emplace(std::move(each), static_cast<uint32_t>(numbers.size())).first->second);
    return result;
  };
  const Symbols of_a = symbols(a), of_b = symbols(b);
  if (of_a.empty() && of_b.empty()) return 1;
  return 2.0 * static_cast<double>(Matcher(of_a, of_b).matches()) /
         static_cast<double>(of_a.size() + of_b.size());
}

}  // namespace fullbore::long_context
