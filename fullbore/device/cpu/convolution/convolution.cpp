#include "fullbore/device/cpu/convolution/convolution.h"
#include "fullbore/device/cpu/convolution/operand_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/convolution/phases.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

// Bytes of packed columns that are multiplied at a time: they stay in the first cache.
constexpr int64_t kPackedBytes = 32 << 10;
constexpr int64_t kMostColumns = 64;

/// Outputs of one line (of the last axis) of one image, by place in the phase.
struct Line {
  int64_t column = 0;  ///< of the block, its first
  int64_t count = 0;
  int64_t image = 0;
  std::array<int64_t, 3> at{};  ///< of its first
};

/// x [N,C,*S], weight [O,*K,C/G] -> y [N,O,*P]. P is what operands are multiplied as, T what x and weight lie as.
template <class P, class T>
class Convolution final : public CpuKernel {
 public:
  Convolution(const ConvGeometry& geometry, DType in, DType out, const GemmUnit<P>& loops,
              std::string text)
      : g_(geometry),
        in_(in),
        out_(out),
        loops_(loops),
        phases_(phases_of(geometry)),
        kernel_(geometry.kernel_elements()),
        input_(geometry.input_elements()),
        output_(geometry.output_elements()),
        columns_(std::min<int64_t>(kMostColumns, loops.block_columns)),
        depth_(std::max<int64_t>(1, kPackedBytes / columns_ / static_cast<int64_t>(sizeof(P)))),
        text_(std::move(text)) {
    for (const Phase& phase : phases_)
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + g_.groups * blocks(phase).parts());
  }

  int64_t items() const override { return ends_.empty() ? 0 : ends_.back(); }
  double nanoseconds() const override {
    return g_.flops() / (0.7 * loops_.flops_per_nanosecond) + 100 * static_cast<double>(items());
  }
  int64_t scratch_bytes(int workers) const override { return own_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Parts parts = parts_of(static_cast<char*>(buffers[3]) + own_bytes() * worker);
    int64_t copied = -1;
    for (int64_t item = begin; item < end; ++item) {
      const auto p = static_cast<size_t>(std::ranges::upper_bound(ends_, item) - ends_.begin());
      const Blocks cut = blocks(phases_[p]);
      const int64_t within = item - (p > 0 ? ends_[p - 1] : 0);
      const int64_t group = within / cut.parts();
      if (kCopiesWeight && group != copied) copy_weight(buffers[1], group, parts.weight);
      copied = group;
      run_block(buffers, phases_[p], group, within % cut.parts(), parts);
    }
  }

 private:
  using Sum = SumOf<P>;
  static constexpr bool kVnni = std::is_same_v<P, VnniPair>;
  static constexpr int64_t kDepth = kDepthOf<P>;
  static constexpr bool kCopiesWeight = !kVnni && !std::is_same_v<P, T>;

  struct Parts {
    P* packed;
    Sum* sums;
    P* weight;
  };
  Parts parts_of(char* base, int64_t* bytes = nullptr) const {
    Scratch scratch(base);
    Parts parts{
        scratch.take<P>(depth_ * columns_), scratch.take<Sum>(g_.group_outputs() * columns_),
        scratch.take<P>(kCopiesWeight ? g_.group_outputs() * kernel_ * g_.group_inputs() : 0)};
    if (bytes) *bytes = scratch.bytes();
    return parts;
  }
  int64_t own_bytes() const {
    int64_t bytes = 0;
    parts_of(nullptr, &bytes);
    return std::max<int64_t>(64, bytes);
  }

  Blocks blocks(const Phase& phase) const { return {g_.batch * phase.positions(), columns_}; }

  void copy_weight(const void* weight, int64_t group, P* to) const {
    if constexpr (kCopiesWeight) {
      const int64_t row = kernel_ * g_.group_inputs();
      const T* from = static_cast<const T*>(weight) + group * g_.group_outputs() * row;
      if (row > 0) loops_.copy_rows({from, in_, row, g_.group_outputs(), row}, to, row);
    }
  }

  // The lines of a block of positions.
  std::span<const Line> lines_of(const Phase& phase, int64_t begin, int64_t end,
                                 std::array<Line, kMostColumns>& lines) const {
    size_t count = 0;
    for (int64_t at = begin; at < end;) {
      Line& line = lines[count++];
      const int64_t width = phase.axes[2].count, height = phase.axes[1].count;
      const int64_t row = at / width, plane = row / height;
      line.column = at - begin;
      line.at = {plane % phase.axes[0].count, row % height, at % width};
      line.image = plane / phase.axes[0].count;
      line.count = std::min(width - line.at[2], end - at);
      at += line.count;
    }
    return {lines.data(), count};
  }

  void run_block(void* const* buffers, const Phase& phase, int64_t group, int64_t block,
                 const Parts& parts) const {
    const Blocks cut = blocks(phase);
    const int64_t begin = cut.begin(block), width = cut.end(block) - begin;
    std::array<Line, kMostColumns> all;
    const std::span<const Line> lines = lines_of(phase, begin, begin + width, all);
    const int64_t inner = g_.group_inputs(), outputs = g_.group_outputs();
    const T* x = static_cast<const T*>(buffers[0]) + group * inner * input_;
    const P* weight = kCopiesWeight ? parts.weight
                                    : reinterpret_cast<const P*>(static_cast<const T*>(buffers[1]) +
                                                                 group * outputs * kernel_ * inner);
    const bool whole = lines.front().image == lines.back().image && !phase.apart();
    Sum* c = parts.sums;
    int64_t c_row = columns_;
    if (whole && std::is_same_v<Sum, T>) {
      c = static_cast<Sum*>(buffers[2]) + place(phase, group, lines.front());
      c_row = output_;
    }
    const int64_t depth = static_cast<int64_t>(phase.reads.size()) * inner / kDepth;
    if (depth == 0)
      for (int64_t o = 0; o < outputs; ++o) std::fill_n(c + o * c_row, width, Sum{0});
    for (int64_t from = 0; from < depth; from += depth_) {
      const int64_t to = std::min(depth, from + depth_);
      pack(x, phase, lines, from * kDepth, to * kDepth, parts.packed);
      for (int64_t d = from; d < to;) {
        const int64_t next = std::min(to, run_end(phase, d));
        loops_.multiply({.rows = outputs,
                         .columns = width,
                         .depth = next - d,
                         .a = weight + weight_at(phase, d * kDepth) / kDepth,
                         .a_row = kernel_ * inner / kDepth,
                         .b = parts.packed + (d - from) * columns_,
                         .b_depth = columns_,
                         .c = c,
                         .c_row = c_row,
                         .goes_on = d > 0});
        d = next;
      }
    }
    if (c == parts.sums) store(buffers[2], phase, group, lines, whole, width, c);
  }

  int64_t weight_at(const Phase& phase, int64_t d) const {
    const int64_t inner = g_.group_inputs();
    return phase.reads[static_cast<size_t>(d / inner)].k * inner + d % inner;
  }
  // How far the weights of a phase lie together from depth d on, in operands.
  int64_t run_end(const Phase& phase, int64_t d) const {
    const int64_t inner = g_.group_inputs();
    auto read = static_cast<size_t>(d * kDepth / inner);
    while (read + 1 < phase.reads.size() && phase.reads[read + 1].k == phase.reads[read].k + 1)
      ++read;
    return static_cast<int64_t>(read + 1) * inner / kDepth;
  }

  // Rows [begin, end) of depth, of the columns of `lines`.
  void pack(const T* x, const Phase& phase, std::span<const Line> lines, int64_t begin, int64_t end,
            P* packed) const {
    const int64_t inner = g_.group_inputs();
    for (int64_t d = begin; d < end;) {
      const PhaseRead& read = phase.reads[static_cast<size_t>(d / inner)];
      const int64_t channel = d % inner, count = std::min(inner - channel, end - d);
      P* rows = packed + (d - begin) / kDepth * columns_;
      for (const Line& line : lines) pack_line(x, phase, line, read, channel, count, rows);
      d += count;
    }
  }
  void pack_line(const T* x, const Phase& phase, const Line& line, const PhaseRead& read,
                 int64_t channel, int64_t count, P* rows) const {
    const int64_t a = line.at[0] * phase.axes[0].step + read.shift[0];
    const int64_t b = line.at[1] * phase.axes[1].step + read.shift[1];
    const int64_t step = phase.axes[2].step, first = line.at[2];
    const bool inside = a >= 0 && a < g_.axes[0].input && b >= 0 && b < g_.axes[1].input;
    const ReadRange range =
        inside ? reads_within(first, line.count, step, read.shift[2], g_.axes[2].input)
               : ReadRange{first, first};
    const int64_t skipped = range.begin - first, reads = range.end - range.begin;
    const T* from = x + (line.image * g_.inputs + channel) * input_ +
                    (a * g_.axes[1].input + b) * g_.axes[2].input + range.begin * step +
                    read.shift[2];
    P* to = rows + line.column;
    if (reads < line.count)
      for (int64_t c = 0; c < count; c += kDepth) {
        P* row = to + c / kDepth * columns_;
        std::fill_n(row, skipped, P{});
        std::fill_n(row + skipped + reads, line.count - skipped - reads, P{});
      }
    to += skipped;
    if (reads == 0) return;
    if (step == 1) return loops_.copy({from, in_, input_, count, reads}, to, columns_);
    for (int64_t c = 0; c < count; c += kDepth, from += kDepth * input_, to += columns_)
      for (int64_t i = 0; i < reads; ++i) {
        if constexpr (kVnni)
          to[i] = {from[i * step].bits, from[input_ + i * step].bits};
        else
          to[i] = load(from[i * step]);
      }
  }

  // Where an output of the group's first channel lies in y.
  int64_t place(const Phase& phase, int64_t group, const Line& line) const {
    const auto at = [&](size_t i) {
      return phase.axes[i].first + line.at[i] * phase.axes[i].apart;
    };
    return (line.image * g_.outputs + group * g_.group_outputs()) * output_ +
           (at(0) * g_.axes[1].output + at(1)) * g_.axes[2].output + at(2);
  }

  void store(void* y, const Phase& phase, int64_t group, std::span<const Line> lines, bool whole,
             int64_t width, const Sum* sums) const {
    if (whole) return store_run(y, place(phase, group, lines.front()), width, 1, sums);
    for (const Line& line : lines)
      store_run(y, place(phase, group, line), line.count, phase.axes[2].apart, sums + line.column);
  }
  void store_run(void* y, int64_t at, int64_t count, int64_t apart, const Sum* sums) const {
    const int64_t outputs = g_.group_outputs();
    char* to = static_cast<char*>(y) + at * dtype_bytes(out_);
    if (apart == 1 && dtype_bytes(out_) != sizeof(Sum))
      return loops_.round(sums, columns_, to, output_, out_, outputs, count);
    with_numeric(out_, [&](auto element) {
      using Out = decltype(element);
      if constexpr (std::is_same_v<fullbore::cpu::Sum<Out>, Sum>)
        for (int64_t o = 0; o < outputs; ++o) {
          Out* row = reinterpret_cast<Out*>(to) + o * output_;
          for (int64_t i = 0; i < count; ++i)
            row[i * apart] = fullbore::cpu::store<Out>(sums[o * columns_ + i]);
        }
    });
  }

  ConvGeometry g_;
  DType in_, out_;
  const GemmUnit<P>& loops_;
  std::vector<Phase> phases_;
  std::vector<int64_t> ends_;  ///< items of a phase and those before it
  int64_t kernel_, input_, output_;
  int64_t columns_;
  int64_t depth_;  ///< of packed columns, in operands
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_convolution(KernelRequest& request) {
  const ConvGeometry g = in_three_axes(ConvGeometry::of_convolution(
      request.input(0).shape, request.input(1).shape, request.node().attributes));
  const DType in = request.input(0).dtype, out = request.output().dtype;
  const VectorUnit unit = this_processor().vector_unit;
  const auto make = [&]<class P, class T>(const GemmUnit<P>& loops, std::string_view name,
                                          T) -> std::unique_ptr<Kernel> {
    return std::make_unique<Convolution<P, T>>(
        g, in, out, loops,
        fmt::format("convolution {} {} {}", name, request.input(0).text(),
                    request.input(1).shape.text()));
  };
  const std::string_view name = vector_unit_name(unit);
  const GemmUnit<VnniPair>* vnni = gemm_unit<VnniPair>(VectorUnit::avx512);
  if (in == DType::bf16 && vnni && g.group_inputs() % 2 == 0)
    return make(*vnni, "avx512_bf16", Bf16{});
  return make_for_operands(
      in, unit, [&](const auto& loops, auto element) { return make(loops, name, element); });
}

}  // namespace fullbore::cpu
