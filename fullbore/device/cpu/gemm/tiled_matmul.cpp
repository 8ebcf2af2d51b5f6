#include "fullbore/device/cpu/gemm/tiled_matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "fullbore/device/cpu/gemm/gemm_tiling.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/ir/fused_matmul.h"

namespace fullbore::cpu {
namespace {

// Rows from which on copying an untransposed b into blocks of columns beats reading it where it lies, a row of
// n elements apart, in which neighbouring rows compete for the same lines of the cache.
constexpr int64_t kRowsToPack = 128;
// Bytes of a b from which on it is asked for ahead. A smaller one is in the second cache if anything is, and asking
// for it cost 6 % of the matmuls of a model of 0.1 M parameters.
constexpr int64_t kStreamedBytes = int64_t{256} * 1024;
// Depth of the first pass, which waits for what it copies.
constexpr int64_t kFirstDepth = 32;

const char* offset(const void* data, DType dtype, int64_t elements) {
  return static_cast<const char*>(data) + elements * dtype_bytes(dtype);
}

/// A matmul within a `fused` node: which of the node's buffers it reads, and what is behind it. As a node
/// of its own it has the first two or three.
struct Surroundings {
  size_t a = 0;
  size_t b = 1;
  size_t result = 2;
  size_t scratch = 3;
  std::unique_ptr<Epilogue> epilogue = nullptr;

  static Surroundings of(const Contraction& c) {
    const size_t inputs = c.add ? 3 : 2;
    return {.result = inputs, .scratch = inputs + 1};
  }
};

/// Depth is counted in operands of type P: one element each, or two if they are VNNI pairs.
template <class P>
class TiledMatmul final : public CpuKernel {
 public:
  TiledMatmul(const Contraction& c, std::string_view unit, const GemmUnit<P>& loops,
              Surroundings around)
      : c_(c),
        around_(std::move(around)),
        epilogue_(around_.epilogue.get()),
        loops_(loops),
        k_(divide_up(c.k, kVnniDepth)),
        native_(dtype_bytes(c.in) * kVnniDepth == kOperandBytes),
        direct_(dtype_bytes(c.out) == kSumBytes),
        copy_a_(!native_ || (c.transpose_a && (kVnniDepth > 1 || c.m > 2 * kGemmTileRows)) ||
                c.k % kVnniDepth != 0),
        copy_b_(c.block_columns == 0 && (!native_ || kVnniDepth > 1 || c.transpose_b ||
                                         (c.n > loops.block_columns && c.m >= kRowsToPack))),
        tiling_(gemm_tiling(
            {.contraction = c,
             .depth = k_,
             .block_columns = c.block_columns > 0 ? c.block_columns : loops.block_columns,
             .copied_columns = copy_a_ && c.transpose_a,
             .copied_rows = copy_a_ && !c.transpose_a,
             .direct = direct_,
             .tiles = epilogue_ ? epilogue_->tiles() : TileShape::any,
             .wide = epilogue_ != nullptr})),
        streams_b_(!copy_b_ && tiling_.rows.parts() == 1 &&
                   c.k * c.n * dtype_bytes(c.in) >= kStreamedBytes),
        kept_(!epilogue_ || epilogue_->matmul_buffer() >= 0),
        text_(fmt::format("matmul {} {}{}", unit, c.text(),
                          epilogue_ ? " + " + epilogue_->text() : "")) {
    FB_CHECK(!c.add || direct_, "sums are {}, not {}", kSumBytes, dtype_name(c.out));
    FB_CHECK(direct_ || kVnniDepth == 1 || c.out == DType::bf16, "VNNI pairs summed to {}",
             dtype_name(c.out));
    if (epilogue_) epilogue_->cut(tiling_, result_stride());
  }

  int64_t items() const override { return tiling_.tiles(c_.batch); }
  double nanoseconds() const override {
    return c_.flops() / loops_.flops_per_nanosecond + 30 * static_cast<double>(items()) +
           (epilogue_ ? epilogue_->nanoseconds() : 0);
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return text_; }
  // A tile of c is read when its sums are complete, in their place.
  bool may_alias(int input, int output) const override {
    if (!epilogue_) return input == 2;
    const auto place = static_cast<size_t>(input);
    return place != around_.a && place != around_.b && epilogue_->may_alias(input, output);
  }

  // Tiles are numbered with rows fastest: consecutive ones share columns.
  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    char* scratch = worker_bytes() > 0
                        ? static_cast<char*>(buffers[around_.scratch]) + worker_bytes() * worker
                        : nullptr;
    while (begin < end) {
      const int64_t column_tile = begin / tiling_.rows.parts();
      const int64_t first = begin % tiling_.rows.parts();
      const int64_t count = std::min(end - begin, tiling_.rows.parts() - first);
      const Columns columns = columns_of(column_tile);
      const std::optional<Columns> behind = streams_b_ && begin + count < end
                                                ? std::optional(columns_of(column_tile + 1))
                                                : std::nullopt;
      // A tile that is rounded or read when its sums are complete stays in scratch until then, and only
      // one can.
      if ((direct_ && kept_) || k_ <= tiling_.packed_depth || c_.block_columns > 0) {
        multiply(buffers, columns, behind, first, first + count, scratch);
      } else {
        for (int64_t tile = first; tile < first + count; ++tile)
          multiply(buffers, columns, behind, tile, tile + 1, scratch);
      }
      begin += count;
    }
  }

 private:
  struct Columns {
    int64_t batch;
    int64_t begin;
    int64_t end;
  };
  Columns columns_of(int64_t column_tile) const {
    const int64_t tile = column_tile % tiling_.columns.parts();
    return {column_tile / tiling_.columns.parts(), tiling_.columns.begin(tile),
            tiling_.columns.end(tile)};
  }
  using Sum = SumOf<P>;
  // What stands for a or b, and its strides.
  struct Operand {
    const P* data;
    int64_t row;
    int64_t depth;
  };

  int64_t b_bytes() const {
    if (!copy_b_) return 0;
    const int64_t width = round_up(std::min(tiling_.columns.size, c_.n), loops_.lanes);
    return round_up(std::min(tiling_.packed_depth, k_) * width * kOperandBytes, 64);
  }
  int64_t a_bytes() const {
    if (!copy_a_) return 0;
    const int64_t rows =
        c_.transpose_a ? round_up(tiling_.rows.size, loops_.lanes) : tiling_.rows.size;
    return round_up(tiling_.depth * rows * kOperandBytes, 64);
  }
  // VNNI pairs whose sums are complete in one pass are rounded on their way out of registers.
  int64_t c_bytes() const {
    if (direct_ || (kVnniDepth > 1 && tiling_.depth >= k_)) return 0;
    return round_up(tiling_.rows.size * sums_stride() * kSumBytes, 64);
  }
  // Columns of sums that wait to be rounded: of one block, whose sums are complete at once if the depth
  // takes one pass, or of the tile.
  int64_t sums_stride() const {
    return tiling_.depth >= k_ ? loops_.block_columns : tiling_.columns.size;
  }
  // A tile of a result that nobody but the epilogue reads.
  int64_t tile_bytes() const {
    return kept_ ? 0 : round_up(tiling_.rows.size * result_stride() * dtype_bytes(c_.out), 64);
  }
  int64_t result_stride() const { return kept_ ? c_.n : std::min(tiling_.columns.size, c_.n); }
  int64_t worker_bytes() const {
    return b_bytes() + a_bytes() + c_bytes() + tile_bytes() +
           (epilogue_ ? epilogue_->scratch_bytes() : 0);
  }

  // Where a pass over registers ends. Copies of a transposed a are made pass by pass, each while the one
  // before it is multiplied: the first is short, and those behind it grow. Passes are the same whether b is
  // packed here or prepacked.
  int64_t pass_end(int64_t begin) const {
    const bool grows = copy_a_ && c_.transpose_a && tiling_.depth < k_;
    const int64_t depth = grows ? std::max(kFirstDepth, 2 * begin) : tiling_.depth;
    const int64_t end = std::min(k_, begin + std::min(depth, tiling_.depth));
    return packs_per_pass() ? end : std::min(end, packed_end(begin));
  }
  // Where what is copied of b at once ends.
  int64_t packed_end(int64_t begin) const {
    if (packs_per_pass()) return pass_end(begin);
    return std::min(k_, (begin / tiling_.packed_depth + 1) * tiling_.packed_depth);
  }
  bool packs_per_pass() const { return tiling_.packed_depth == tiling_.depth; }

  // Rows [first, last) of tiles, all of depth, b copied in steps of tiling_.packed_depth. `behind`: the columns that come next
  // of a b that is streamed.
  void multiply(void* const* buffers, const Columns& columns, const std::optional<Columns>& behind,
                int64_t first, int64_t last, char* scratch) const {
    int64_t begin = 0;
    do {  // once even if there is nothing to contract: the result is zeros
      const int64_t end = c_.block_columns > 0 ? k_ : packed_end(begin);
      if (copy_b_)
        pack_b(offset(buffers[around_.b], c_.in, columns.batch * c_.k * c_.n), columns, begin, end,
               reinterpret_cast<P*>(scratch));
      for (int64_t tile = first; tile < last; ++tile) {
        const Prefetcher next = tile + 1 < last ? next_tile(buffers, columns, tile + 1, begin, end)
                                                : next_pass(buffers, columns, first, end);
        multiply_tile(buffers, columns, tile, begin, end, {next, behind}, scratch);
      }
      begin = end;
    } while (begin < k_);
  }

  // b[begin..end, columns] as blocks of columns one after the other, each [end - begin, its width].
  void pack_b(const char* b, const Columns& columns, int64_t begin, int64_t end, P* to) const {
    const int64_t first = begin * kVnniDepth;
    const int64_t depth = elements(begin, end);
    for (int64_t column = columns.begin; column < columns.end; column += loops_.block_columns) {
      const int64_t width = std::min<int64_t>(loops_.block_columns, columns.end - column);
      const int64_t stride = round_up(width, loops_.lanes);
      if (c_.transpose_b)
        loops_.copy_transposed({offset(b, c_.in, column * c_.k + first), c_.in, c_.k, width, depth},
                               to, stride);
      else
        loops_.copy({offset(b, c_.in, first * c_.n + column), c_.in, c_.n, depth, width}, to,
                    stride);
      to += (end - begin) * stride;
    }
  }

  // What will be copied or read of another tile of the same columns and depth, in its first pass,
  Prefetcher next_tile(const void* const* buffers, const Columns& columns, int64_t tile,
                       int64_t begin, int64_t end) const {
    Prefetcher next;
    add_rows_of_a(buffers, columns.batch, tile, begin, std::min(pass_end(begin), end), next);
    return next;
  }
  // and of the depth from `begin` on, if there is more.
  Prefetcher next_pass(const void* const* buffers, const Columns& columns, int64_t tile,
                       int64_t begin) const {
    Prefetcher next;
    if (begin >= k_ || c_.block_columns > 0) return next;
    const int64_t end = packed_end(begin);
    const int64_t depth = elements(begin, end), width = columns.end - columns.begin;
    const int64_t first = columns.batch * c_.k * c_.n;
    const int64_t element = dtype_bytes(c_.in);
    if (c_.transpose_b)
      next.add(offset(buffers[around_.b], c_.in, first + columns.begin * c_.k + begin * kVnniDepth),
               width, depth * element, c_.k * element);
    else
      next.add(offset(buffers[around_.b], c_.in, first + begin * kVnniDepth * c_.n + columns.begin),
               depth, width * element, c_.n * element);
    add_rows_of_a(buffers, columns.batch, tile, begin, std::min(pass_end(begin), end), next);
    return next;
  }
  void add_rows_of_a(const void* const* buffers, int64_t batch, int64_t tile, int64_t begin,
                     int64_t end, Prefetcher& next) const {
    const int64_t row = tiling_.rows.begin(tile), rows = tiling_.rows.end(tile) - row;
    const int64_t depth = elements(begin, end), element = dtype_bytes(c_.in);
    const char* a = offset(buffers[around_.a], c_.in, batch * c_.m * c_.k);
    if (c_.transpose_a)
      next.add(a + (begin * kVnniDepth * c_.m + row) * element, depth, rows * element,
               c_.m * element);
    else
      next.add(a + (row * c_.k + begin * kVnniDepth) * element, rows, depth * element,
               c_.k * element);
  }

  // Rows of a from `row` on, `begin` the first of depth: where they lie or, copied, [rows, depth] or
  // for a transposed a [depth, rows].
  Operand rows_of_a(const void* const* buffers, int64_t batch, int64_t row, int64_t rows,
                    int64_t begin, int64_t depth, P* copy) const {
    const int64_t first = batch * c_.m * c_.k + (c_.transpose_a ? begin * kVnniDepth * c_.m + row
                                                                : row * c_.k + begin * kVnniDepth);
    const char* a = offset(buffers[around_.a], c_.in, first);
    if (!copy_a_) {
      const auto* data = reinterpret_cast<const P*>(a);
      return c_.transpose_a ? Operand{data, 1, c_.m} : Operand{data, c_.k / kVnniDepth, 1};
    }
    if (c_.transpose_a) {
      const int64_t stride = round_up(rows, loops_.lanes);
      loops_.copy({a, c_.in, c_.m, elements(begin, begin + depth), rows}, copy, stride);
      return {copy, 1, stride};
    }
    loops_.copy_rows({a, c_.in, c_.k, rows, elements(begin, begin + depth)}, copy, depth);
    return {copy, depth, 1};
  }

  // What is read next of a b that is not copied, when the block of columns before `column` has been multiplied from `from` on:
  // the next block, of the next pass, or of the columns behind. As many rows as fill a few register tiles take longer to be
  // multiplied than a block to come from memory.
  Prefetcher next_block(const void* const* buffers, const Columns& columns, int64_t column,
                        int64_t from, const std::optional<Columns>& behind) const {
    Prefetcher next;
    const auto add = [&](const Columns& of, int64_t first, int64_t begin) {
      const Operand b = columns_of_b(buffers[around_.b], nullptr, of, first, 0, k_, begin);
      next.add(b.data, pass_end(begin) - begin, columns_from(first, of.end) * kOperandBytes,
               b.depth * kOperandBytes);
    };
    if (column < columns.end)
      add(columns, column, from);
    else if (pass_end(from) < k_)
      add(columns, columns.begin, pass_end(from));
    else if (behind)
      add(*behind, behind->begin, 0);
    return next;
  }

  // Columns from `column` on that one call multiplies.
  int64_t columns_from(int64_t column, int64_t end) const {
    const int64_t most =
        c_.block_columns > 0 ? c_.block_columns - column % c_.block_columns : loops_.block_columns;
    return std::min({most, int64_t{loops_.block_columns}, end - column});
  }

  // b[from.., column..]: prepacked, in the copies of b[begin..end, columns], or where it lies.
  Operand columns_of_b(const void* b, const P* copies, const Columns& columns, int64_t column,
                       int64_t begin, int64_t end, int64_t from) const {
    if (c_.block_columns > 0) {
      const int64_t block =
          columns.batch * divide_up(c_.n, c_.block_columns) + column / c_.block_columns;
      return {static_cast<const P*>(b) + (block * k_ + from) * c_.block_columns +
                  column % c_.block_columns,
              1, c_.block_columns};
    }
    if (!copy_b_)
      return {static_cast<const P*>(b) + (columns.batch * c_.k + from) * c_.n + column, 1, c_.n};
    const int64_t stride = round_up(columns_from(column, columns.end), loops_.lanes);
    return {copies + (column - columns.begin) * (end - begin) + (from - begin) * stride, 1, stride};
  }

  // What the tile behind one reads: of operands that are copied, and of others.
  struct Next {
    const Prefetcher& copied;
    const std::optional<Columns>& behind;
  };
  void multiply_tile(void* const* buffers, const Columns& columns, int64_t tile, int64_t begin,
                     int64_t end, const Next& next, char* scratch) const {
    const int64_t row = tiling_.rows.begin(tile);
    const int64_t rows = tiling_.rows.end(tile) - row;
    const int64_t at = (columns.batch * c_.m + row) * c_.n + columns.begin;
    auto* a_copy = reinterpret_cast<P*>(scratch + b_bytes());
    auto* sums = reinterpret_cast<Sum*>(scratch + b_bytes() + a_bytes());
    char* result = kept_ ? offset_to(buffers[around_.result], at)
                         : scratch + b_bytes() + a_bytes() + c_bytes();
    Sum* c = direct_ ? reinterpret_cast<Sum*>(result) : sums;
    const int64_t c_row = direct_ ? result_stride() : sums_stride();
    const int64_t c_step =
        direct_ || tiling_.depth < k_ ? 1 : 0;  // do blocks of columns lie beside each other?
    if (c_.add && begin == 0) copy_addend(buffers, at, rows, columns.end - columns.begin);
    int64_t from = begin;
    do {
      const int64_t depth = std::min(pass_end(from), end) - from;
      const Operand a = rows_of_a(buffers, columns.batch, row, rows, from, depth, a_copy);
      Prefetcher prefetcher = next.copied;
      if (from + depth < end) {
        prefetcher = {};
        add_rows_of_a(buffers, columns.batch, tile, from + depth,
                      std::min(pass_end(from + depth), end), prefetcher);
      }
      for (int64_t column = columns.begin; column < columns.end;) {
        const int64_t count = columns_from(column, columns.end);
        const Operand b = columns_of_b(buffers[around_.b], reinterpret_cast<const P*>(scratch),
                                       columns, column, begin, end, from);
        GemmTile<P> block{.rows = rows,
                          .columns = count,
                          .depth = depth,
                          .a = a.data,
                          .a_row = a.row,
                          .a_depth = a.depth,
                          .b = b.data,
                          .b_depth = b.depth,
                          .c = c + c_step * (column - columns.begin),
                          .c_row = c_row,
                          .accumulate = !c_.one_chain && (c_.add || from > 0),
                          .goes_on = c_.one_chain && (c_.add || from > 0),
                          .prefetcher = &prefetcher};
        if (streams_b_)
          prefetcher = next_block(buffers, columns, column + count, from, next.behind);
        const bool complete = !direct_ && from + depth == k_;
        char* rounded = complete ? offset_to(result, column - columns.begin) : nullptr;
        if (complete && kVnniDepth > 1) {
          block.rounded = reinterpret_cast<uint16_t*>(rounded);
          block.rounded_row = result_stride();
        }
        loops_.multiply(block);
        if (complete && kVnniDepth == 1)
          loops_.round(block.c, c_row, rounded, result_stride(), c_.out, rows, count);
        column += count;
      }
      from += depth;
    } while (from < end);
    if (epilogue_ && end == k_) run_epilogue(buffers, columns, tile, result, scratch);
  }

  void run_epilogue(void* const* buffers, const Columns& columns, int64_t tile, char* result,
                    char* scratch) const {
    // The tile's place in a result of such rows; what is not there is not read.
    const int64_t before = tiling_.rows.begin(tile) * result_stride() + columns.begin;
    const auto origin =
        reinterpret_cast<uintptr_t>(result) - static_cast<uintptr_t>(before * dtype_bytes(c_.out));
    epilogue_->run(buffers, reinterpret_cast<const void*>(origin), tile,
                   columns.begin / tiling_.columns.size,
                   scratch + b_bytes() + a_bytes() + c_bytes() + tile_bytes());
  }

  char* offset_to(void* result, int64_t elements) const {
    return static_cast<char*>(result) + elements * dtype_bytes(c_.out);
  }

  // Elements of depth from one operand to another; an odd depth ends half a VNNI pair early.
  int64_t elements(int64_t begin, int64_t end) const {
    return std::min(end * kVnniDepth, c_.k) - begin * kVnniDepth;
  }

  // What the tile is added to, where it is not there already.
  void copy_addend(const void* const* buffers, int64_t at, int64_t rows, int64_t width) const {
    const Sum* from = static_cast<const Sum*>(buffers[2]) + at;
    auto* to = static_cast<Sum*>(const_cast<void*>(buffers[around_.result])) + at;
    if (from == to) return;
    for (int64_t row = 0; row < rows; ++row) std::copy_n(from + row * c_.n, width, to + row * c_.n);
  }

  static constexpr int64_t kVnniDepth = kDepthOf<P>;
  static constexpr auto kOperandBytes = static_cast<int64_t>(sizeof(P));
  static constexpr auto kSumBytes = static_cast<int64_t>(sizeof(SumOf<P>));
  Contraction c_;
  Surroundings around_;
  Epilogue* epilogue_;  ///< or null
  const GemmUnit<P>& loops_;
  int64_t k_;    ///< depth
  bool native_;  ///< what lies in memory can be multiplied as it is
  bool direct_;  ///< the result is of the type of the sums
  bool copy_a_;
  bool copy_b_;
  GemmTiling tiling_;
  bool streams_b_;  ///< is b read once, where it lies?
  bool kept_;       ///< is the matmul a result of the node?
  std::string text_;
};

template <class P>
std::unique_ptr<Kernel> make(const Contraction& c, VectorUnit unit, std::string_view name,
                             Surroundings around) {
  const GemmUnit<P>* loops = gemm_unit<P>(unit);
  return loops ? std::make_unique<TiledMatmul<P>>(c, name, *loops, std::move(around)) : nullptr;
}

std::unique_ptr<Kernel> make_by_elements(const Contraction& c, VectorUnit unit,
                                         Surroundings around) {
  const std::string_view name = vector_unit_name(unit);
  return c.in == DType::f64 ? make<double>(c, unit, name, std::move(around))
                            : make<float>(c, unit, name, std::move(around));
}

std::unique_ptr<Kernel> make_of_vnni(const Contraction& c, Surroundings around) {
  return make<VnniPair>(c, VectorUnit::avx512, "avx512_bf16", std::move(around));
}

// Which operand of the node the value of its body is.
size_t operand_of(const Graph& body, Value value) {
  for (size_t i = 0; i < body.inputs().size(); ++i)
    if (body.inputs()[i].value == value) return i;
  FB_CHECK(false, "a matmul reads %{} of its own body", value.id);
}

}  // namespace

std::unique_ptr<Kernel> make_tiled_matmul(const Contraction& c, VectorUnit unit) {
  return make_by_elements(c, unit, Surroundings::of(c));
}

std::unique_ptr<Kernel> make_tiled_matmul(KernelRequest& request) {
  return make_tiled_matmul(Contraction::of(request), this_processor().vector_unit);
}

std::unique_ptr<Kernel> make_vnni_matmul(const Contraction& c) {
  return make_of_vnni(c, Surroundings::of(c));
}

std::unique_ptr<Kernel> make_vnni_matmul(KernelRequest& request) {
  const Contraction c = Contraction::of(request);
  if (c.in != DType::bf16)
    return request.decline(
        fmt::format("{} elements are not multiplied as VNNI pairs", dtype_name(c.in)));
  if (this_processor().amx_bf16 && !c.one_chain)
    return request.decline("this processor has tiles for bf16");
  if (auto kernel = make_vnni_matmul(c)) return kernel;
  return request.decline("this processor has no AVX512_BF16");
}

std::unique_ptr<Kernel> make_prepacked_matmul(const Contraction& c, VectorUnit unit) {
  return c.vnni ? make_vnni_matmul(c) : make_tiled_matmul(c, unit);
}

std::unique_ptr<Kernel> make_prepacked_matmul(KernelRequest& request) {
  const Contraction c = Contraction::of(request);
  if (auto kernel = make_prepacked_matmul(c, this_processor().vector_unit)) return kernel;
  return request.decline("this processor has no AVX512_BF16");
}

std::unique_ptr<Kernel> make_matmul_with_epilogue(KernelRequest& request,
                                                  std::unique_ptr<Epilogue> epilogue) {
  const Graph& body = *request.node().body;
  const Node& matmul = *fused_matmul(request.node());
  const Contraction c =
      Contraction::of(KernelRequest(body, matmul, request.workers(), request.row_invariant()));
  const size_t buffers = request.node().inputs.size() + request.node().outputs.size();
  const auto result = static_cast<size_t>(std::max(0, epilogue->matmul_buffer()));
  Surroundings around{.a = operand_of(body, matmul.inputs[0]),
                      .b = operand_of(body, matmul.inputs[1]),
                      .result = result,
                      .scratch = buffers,
                      .epilogue = std::move(epilogue)};
  const bool vnni = c.block_columns > 0
                        ? c.vnni
                        : c.in == DType::bf16 && gemm_unit<VnniPair>(VectorUnit::avx512) != nullptr;
  return vnni ? make_of_vnni(c, std::move(around))
              : make_by_elements(c, this_processor().vector_unit, std::move(around));
}

}  // namespace fullbore::cpu
