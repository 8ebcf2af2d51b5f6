#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "fullbore/runtime/program.h"
#include "fullbore/train/page_pool.h"
#include "fullbore/train/paged_decode.h"
#include "fullbore/train/sampling.h"

namespace fullbore {

struct PagedSizes {
  int64_t rows = 1;
  int64_t context = 1;     ///< places that the model knows
  int64_t vocabulary = 0;  ///< tokens that there are; logits beyond are ignored
  int64_t chunk = 64;      ///< tokens of a prompt taken at once, at most
};

/// Continues texts of different lengths together, in one batch over one pool of pages. Tokens that begin several prompts
/// are computed once, and their pages shared. A row whose places are all taken takes the last half of its context anew,
/// as Generator does. The State must outlive it.
class PagedGenerator {
 public:
  static constexpr int64_t kPageTokens = kCachePageTokens;

  PagedGenerator(PagedDecodeFunction decode, const PagedSizes& sizes, State& state,
                 const CompileOptions& options);

  /// The graph for `length` tokens of each row; for whoever wants its State first.
  static Graph trace(const PagedDecodeFunction& decode, const PagedSizes& sizes, int64_t length);

  /// Up to `count` tokens for each of the prompts, none of which is empty; each is handed to `emit`, which says whether
  /// that row goes on. Draws are those that Generator makes of the first text of the seed: a row's text is that of its
  /// prompt alone, up to the rounding of the matmuls.
  void generate(std::span<const std::vector<int32_t>> prompts, int64_t count,
                const SamplingOptions& options, uint64_t seed,
                const std::function<bool(int64_t row, int32_t token)>& emit);

  int32_t used_pages() const { return pool_.pages() - pool_.free_pages(); }

 private:
  struct Row {
    PagedRow pages;
    std::vector<int32_t> text;  ///< all of it
    size_t taken = 0;           ///< of the text
    std::vector<float> logits;  ///< of what follows
  };
  template <class T>
  struct alignas(64) Block {
    T values[64 / sizeof(T)];
  };
  template <class T>
  struct Field {
    std::vector<Block<T>> blocks;
    explicit Field(int64_t count)
        : blocks(static_cast<size_t>((count * static_cast<int64_t>(sizeof(T)) + 63) / 64)) {}
    T* data() { return reinterpret_cast<T*>(blocks.data()); }
  };

  static int64_t row_pages(const PagedSizes& sizes);
  void begin(std::span<const std::vector<int32_t>> prompts);
  /// Of rows [0, rows): all that has not been taken.
  void take_pending(size_t rows);
  void run(int64_t length, size_t rows);
  Program& program(int64_t length);

  PagedDecodeFunction decode_;
  PagedSizes sizes_;
  State& state_;
  CompileOptions options_;
  PagePool pool_;
  std::vector<Row> rows_;
  std::map<int64_t, Program> programs_;  ///< by length
};

}  // namespace fullbore
