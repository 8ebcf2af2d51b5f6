// One core's rate of encoding a text:  bench_tokenizer TOKENIZER TEXT
// For each line `N` on standard input it encodes the text N times, one call per 64 KiB as tokenising does, and prints
// {"seconds": of the fastest time, "bytes": ..., "tokens": ..., "hash": of the ids}. See bench/peers/compare_tokenizers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/text_file.h"
#include "fullbore/data/tokenizer.h"

namespace {

using namespace fullbore;

constexpr size_t kPieceBytes = size_t{1} << 16;

void encode_all(const Tokenizer& tokenizer, std::string_view text, std::vector<int32_t>& ids) {
  ids.clear();
  while (!text.empty()) {
    size_t cut = text.size();
    if (cut > kPieceBytes) cut = tokenizer.last_cut(text.substr(0, kPieceBytes));
    if (cut == 0) cut = text.size();
    tokenizer.append_tokens(text.substr(0, cut), ids);
    text.remove_prefix(cut);
  }
}

void run(const std::string& tokenizer_path, const std::string& text_path) {
  const auto tokenizer = load_tokenizer(tokenizer_path).take_or_throw();
  const std::string text = read_text(text_path).take_or_throw();
  std::vector<int32_t> ids;
  int times = 0;
  while (std::cin >> times) {
    double least = 1e30;
    for (int i = 0; i < times; ++i) {
      const auto start = std::chrono::steady_clock::now();
      encode_all(*tokenizer, text, ids);
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      least = std::min(least, passed.count());
    }
    fmt::print("{{\"seconds\": {}, \"bytes\": {}, \"tokens\": {}, \"hash\": \"{}\"}}\n", least,
               text.size(), ids.size(), hash_hex(hash_bytes(ids.data(), ids.size() * 4)));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_tokenizer TOKENIZER TEXT\n");
    return 2;
  }
  try {
    run(argv[1], argv[2]);
  } catch (const Error& error) {
    fmt::print(stderr, "bench_tokenizer: {}\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
