#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/convolution/convolution.h"
#include "fullbore/device/cpu/convolution/operand_types.h"
#include "fullbore/device/cpu/convolution/phases.h"
#include "fullbore/device/cpu/convolution/plane_fill.h"
#include "fullbore/device/cpu/convolution/planes.h"
#include "fullbore/device/cpu/gemm/amx_tiles.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

// Fewer channels make sums too short for a call: columns are packed together with those of other kernel positions.
constexpr int64_t kFewestChannels = 16;
// Channels that tiles of columns are multiplied by at a time: what a tile reads of their planes stays in the first cache for
// all outputs.
constexpr int64_t kTileChannels = 32;
// Of a block's planes. Lines are never cut here: longer ones are left to the packed kernel, but for many channels without
// strides, which it is slower with.
constexpr int64_t kMostElements = 4 << 20;
// Bytes of packed columns that are multiplied at a time: they stay in the first cache.
constexpr int64_t kPackedBytes = 32 << 10;

// Of one channel without strides a line of the kernel reads overlapping columns, which few outputs do not pay to pack.
bool packs_columns(const ConvGeometry& g) {
  constexpr int64_t kFewOutputs = 8;
  return g.group_inputs() < kFewestChannels &&
         (g.group_inputs() > 1 || g.axes[2].stride > 1 || g.group_outputs() >= kFewOutputs);
}

/// x [N,C,*S], weight [O,*K,C/G] -> y [N,O,*P]. P is what operands are multiplied as, T what they lie as.
template <class P, class T>
class PlaneConvolution final : public CpuKernel {
 public:
  PlaneConvolution(const ConvGeometry& geometry, DType in, DType out, const GemmUnit<P>& loops,
                   bool tiles, std::string text)
      : g_(geometry),
        in_(in),
        out_(out),
        loops_(loops),
        tiles_(tiles),
        planes_(geometry, geometry.group_inputs() * static_cast<int64_t>(sizeof(P)) / kDepth),
        kernel_(geometry.kernel_elements()),
        input_(geometry.input_elements()),
        output_(geometry.output_elements()),
        columns_(std::min<int64_t>(kBeyondPlanes / 2, loops.block_columns)),
        in_place_(std::is_same_v<P, T> && reads_own_positions(geometry)),
        packs_(packs_columns(geometry)),
        is_seamless_(planes_.width() == geometry.axes[2].output),
        by_lines_(!is_seamless_ && !tiles && geometry.axes[2].output % loops.lanes == 0),
        depth_(packs_
                   ? std::max<int64_t>(1, kPackedBytes / columns_ / static_cast<int64_t>(sizeof(P)))
                   : 0),
        whole_vectors_(!packs_ && geometry.group_inputs() > 1 &&
                       geometry.axes[2].output % loops.lanes == 0 && !tiles),
        text_(std::move(text)) {
    if (whole_vectors_)
      for (int64_t c = 0; c < g_.group_inputs(); c += kTileChannels)
        for (int64_t k = 0; k < kernel_; ++k)
          parts_.push_back({(k * g_.group_inputs() + c) / kDepth,
                            planes_.offsets()[static_cast<size_t>(k)] + c / kDepth * plane()});
    if (tiles)
      for (int64_t k = 0; k < kernel_; ++k)
        for (int64_t c = 0; c < g_.group_inputs(); c += 32)
          steps_.push_back({(k * g_.group_inputs() + c) * 2,
                            (planes_.offsets()[static_cast<size_t>(k)] + c / 2 * plane()) * 4});
  }

  int64_t items() const override {
    return g_.batch * g_.groups * g_.axes[0].output * planes_.blocks();
  }
  double nanoseconds() const override {
    const double rate = tiles_ ? 600 : 0.8 * loops_.flops_per_nanosecond;
    return g_.flops() / rate + 500 * static_cast<double>(items());
  }
  int64_t scratch_bytes(int workers) const override { return own_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const Parts own = parts_of(static_cast<char*>(buffers[3]) + own_bytes() * worker);
    std::optional<AmxTiles> tiles;
    if (tiles_) tiles.emplace();
    const int64_t places = planes_.blocks() * g_.axes[0].output;
    int64_t copied = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t slice = item / planes_.blocks() % g_.axes[0].output, rest = item / places;
      const int64_t group = rest / g_.batch;  // weights stay for all images
      if (kCopiesWeight && group != copied) copy_weight(buffers[1], group, own.weight);
      copied = group;
      run_rows(buffers,
               {.image = rest % g_.batch,
                .group = group,
                .slice = slice,
                .block = planes_.block(item % planes_.blocks()),
                .has_zeros = places == 1 && item > begin},
               own, tiles ? &*tiles : nullptr);
    }
  }

 private:
  using Sum = SumOf<P>;
  static constexpr bool kVnni = std::is_same_v<P, VnniPair>;
  static constexpr int64_t kDepth = kDepthOf<P>;
  static constexpr bool kCopiesWeight = !kVnni && !std::is_same_v<P, T>;

  /// Outputs of one image and group, of one place along the first axis.
  struct Rows {
    int64_t image, group, slice;
    PlaneBlock block;
    bool has_zeros;  ///< the planes' zeros are those of the item before
  };
  struct Parts {
    P* planes;  ///< [C/G, planes, rows, width]
    Sum* sums;  ///< [O/G, columns]
    P* weight;  ///< [O/G, K C/G], widened
    P* packed;  ///< [depth, columns]
  };
  Parts parts_of(char* base, int64_t* bytes = nullptr) const {
    Scratch scratch(base);
    // Blocks of columns read beyond the last plane's end.
    const int64_t planes = in_place_ ? 0 : g_.group_inputs() / kDepth * plane() + kBeyondPlanes;
    Parts parts{scratch.take<P>(planes), scratch.take<Sum>(g_.group_outputs() * columns_),
                scratch.take<P>(kCopiesWeight ? g_.group_outputs() * row() : 0),
                scratch.take<P>(depth_ * columns_)};
    if (bytes) *bytes = scratch.bytes();
    return parts;
  }
  int64_t own_bytes() const {
    int64_t bytes = 0;
    parts_of(nullptr, &bytes);
    return bytes;
  }
  int64_t plane() const { return in_place_ ? input_ : planes_.elements(); }
  int64_t row() const { return kernel_ * g_.group_inputs(); }

  void copy_weight(const void* weight, int64_t group, P* to) const {
    if constexpr (kCopiesWeight) {
      const T* from = static_cast<const T*>(weight) + group * g_.group_outputs() * row();
      loops_.copy_rows({from, in_, row(), g_.group_outputs(), row()}, to, row());
    }
  }

  void run_rows(void* const* buffers, const Rows& rows, const Parts& own,
                const AmxTiles* tiles) const {
    const int64_t channels = g_.group_inputs(), outputs = g_.group_outputs();
    const PlaneBlock& plane_block = rows.block;
    const T* x = static_cast<const T*>(buffers[0]) +
                 (rows.image * g_.inputs + rows.group * channels) * input_;
    const P* planes = own.planes;
    if constexpr (std::is_same_v<P, T>) {
      if (in_place_) planes = x;
    }
    if (!in_place_)
      fill_planes<P, T>({g_, planes_, loops_, in_}, x, rows.slice, plane_block, rows.has_zeros,
                        own.planes);
    const P* weight = kCopiesWeight ? own.weight
                                    : reinterpret_cast<const P*>(static_cast<const T*>(buffers[1]) +
                                                                 rows.group * outputs * row());
    const int64_t first = (rows.image * g_.outputs + rows.group * outputs) * output_ +
                          (rows.slice * g_.axes[1].output + plane_block.first) * g_.axes[2].output;
    if (whole_vectors_)
      return multiply_vectors(planes, weight, plane_block, buffers[2], first, own.sums);
    const int64_t positions = planes_.positions(plane_block);
    for (int64_t column = 0; column < positions;) {
      const int64_t place = column % planes_.width();
      if (by_lines_ && place >= g_.axes[2].output) {  // behind a line's end
        column += planes_.width() - place;
        continue;
      }
      const int64_t end = by_lines_ ? column + g_.axes[2].output - place : positions;
      const int64_t width = std::min(columns_, end - column);
      // Sums that several multiplications add to lie side by side: rows of y may be whole pages apart.
      const bool direct = std::is_same_v<Sum, T> && (is_seamless_ || (by_lines_ && packs_));
      Sum* c = direct ? static_cast<Sum*>(buffers[2]) + first +
                            column / planes_.width() * g_.axes[2].output + place
                      : own.sums;
      const int64_t c_row = direct ? output_ : columns_;
      if (tiles)
        tiles->multiply({.rows = outputs,
                         .columns = round_up(width, 16),
                         .steps = steps_,
                         .a = reinterpret_cast<const char*>(weight),
                         .a_row = row() * 2,
                         .b = reinterpret_cast<const char*>(planes + column),
                         .b_row = plane() * 4,
                         .c = reinterpret_cast<float*>(c),
                         .c_row = c_row});
      else if (packs_)
        multiply_packed(planes + column, weight, width, c, c_row, own.packed);
      else
        multiply(planes, weight, column, width, c, c_row);
      if (!direct) store(buffers[2], first, column, width, own.sums);
      column += width;
    }
  }

  // By vectors of outputs, each within a row, so that none is in vain: the whole kernel is one depth of parts.
  void multiply_vectors(const P* planes, const P* weight, const PlaneBlock& plane_block, void* y,
                        int64_t first, Sum* sums) const {
    constexpr bool kDirect = std::is_same_v<Sum, T>;
    const int64_t width = g_.axes[2].output, positions = plane_block.count * width;
    for (int64_t at = 0; at < positions; at += columns_) {
      const int64_t columns = std::min(columns_, positions - at);
      PartedTile<P> tile{.rows = g_.group_outputs(),
                         .vectors = static_cast<int>(columns / loops_.lanes),
                         .parts = {},
                         .depth = 0,
                         .a = weight,
                         .a_row = row() / kDepth,
                         .b = planes,
                         .b_depth = plane(),
                         .c = kDirect ? static_cast<Sum*>(y) + first + at : sums,
                         .c_row = kDirect ? output_ : columns_};
      for (int v = 0; v < tile.vectors; ++v) {
        const int64_t place = at + v * loops_.lanes;
        tile.columns[static_cast<size_t>(v)] = place / width * planes_.width() + place % width;
      }
      const auto kernel = static_cast<size_t>(kernel_);
      for (int64_t c = 0; c < g_.group_inputs(); c += kTileChannels) {
        tile.parts =
            std::span(parts_).subspan(static_cast<size_t>(c / kTileChannels) * kernel, kernel);
        tile.depth = std::min(kTileChannels, g_.group_inputs() - c) / kDepth;
        tile.goes_on = c > 0;
        loops_.multiply_parts(tile);
      }
      if (!kDirect)
        store_run(static_cast<char*>(y) + (first + at) * dtype_bytes(out_), columns, sums);
    }
  }

  // By the loops of a matmul: an element of the kernel at a time or, of one channel, a line of the kernel, whose elements read
  // overlapping columns.
  void multiply(const P* planes, const P* weight, int64_t column, int64_t width, Sum* c,
                int64_t c_row) const {
    const int64_t channels = g_.group_inputs();
    const int64_t line = channels == 1 ? g_.axes[2].kernel : 1;
    for (int64_t k = 0; k < kernel_; k += line)
      loops_.multiply({.rows = g_.group_outputs(),
                       .columns = width,
                       .depth = channels == 1 ? line : channels / kDepth,
                       .a = weight + k * channels / kDepth,
                       .a_row = row() / kDepth,
                       .b = planes + planes_.offsets()[static_cast<size_t>(k)] + column,
                       .b_depth = channels == 1 ? g_.axes[2].dilation : plane(),
                       .c = c,
                       .c_row = c_row,
                       .goes_on = k > 0});
  }

  // The same of few channels: a line of depth, which is one channel at one element of the kernel, is packed beside the next.
  void multiply_packed(const P* planes, const P* weight, int64_t width, Sum* c, int64_t c_row,
                       P* packed) const {
    const int64_t channels = g_.group_inputs() / kDepth, depth = kernel_ * channels;
    for (int64_t from = 0; from < depth; from += depth_) {
      const int64_t to = std::min(depth, from + depth_);
      int64_t k = from / channels, channel = from % channels;
      for (P* line = packed; line < packed + (to - from) * columns_; line += columns_) {
        copy_in_steps<8>(planes + planes_.offsets()[static_cast<size_t>(k)] + channel * plane(),
                         width, line);
        if (++channel < channels) continue;
        channel = 0;
        ++k;
      }
      loops_.multiply({.rows = g_.group_outputs(),
                       .columns = width,
                       .depth = to - from,
                       .a = weight + from,
                       .a_row = depth,
                       .b = packed,
                       .b_depth = columns_,
                       .c = c,
                       .c_row = c_row,
                       .goes_on = from > 0});
    }
  }
  // Columns [column, column + width) of a block: those of a row's end are no outputs.
  void store(void* y, int64_t first, int64_t column, int64_t width, const Sum* sums) const {
    const int64_t outputs = g_.axes[2].output;
    for (int64_t at = column; at < column + width;) {
      const int64_t line = at / planes_.width(), place = at % planes_.width();
      const int64_t count = std::min(outputs - place, column + width - at);
      if (count > 0)
        store_run(static_cast<char*>(y) + (first + line * outputs + place) * dtype_bytes(out_),
                  count, sums + at - column);
      at += std::min(planes_.width() - place, column + width - at);
    }
  }
  void store_run(char* y, int64_t count, const Sum* sums) const {
    if (dtype_bytes(out_) != sizeof(Sum))
      return loops_.round(sums, columns_, y, output_, out_, g_.group_outputs(), count);
    for (int64_t o = 0; o < g_.group_outputs(); ++o)
      copy_in_steps<4>(sums + o * columns_, count, reinterpret_cast<Sum*>(y) + o * output_);
  }

  ConvGeometry g_;
  DType in_, out_;
  const GemmUnit<P>& loops_;
  bool tiles_;
  Planes planes_;
  int64_t kernel_, input_, output_;
  int64_t columns_;
  bool in_place_;                 ///< x is its own planes
  bool packs_;                    ///< columns of several elements of the kernel are packed
  bool is_seamless_;              ///< no columns in vain
  bool by_lines_;                 ///< blocks of columns end with lines
  int64_t depth_;                 ///< of packed columns, in operands
  bool whole_vectors_;            ///< rows of outputs are whole vectors, and multiplied by parts_
  std::vector<DepthPart> parts_;  ///< [blocks of channels, K]
  std::vector<AmxStep> steps_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_plane_convolution(KernelRequest& request) {
  // Where operands are multiplied as they lie, all positions of a kernel of one element are one line of x.
  const bool joined = request.input(0).dtype == DType::f32 || request.input(0).dtype == DType::f64;
  const ConvGeometry g =
      in_three_axes(ConvGeometry::of_convolution(request.input(0).shape, request.input(1).shape,
                                                 request.node().attributes),
                    joined);
  if (!Planes::serve(g)) return request.decline("zeros between inputs");
  if (g.group_inputs() == 0) return request.decline("no channels");
  const bool is_usual = Planes::serve_by_one(g) && !packs_columns(g);
  const Planes planes(g, 1);
  if (!is_usual && planes.elements() * g.group_inputs() > kMostElements)
    return request.decline("lines that are long");
  const DType in = request.input(0).dtype, out = request.output().dtype;
  const VectorUnit unit = this_processor().vector_unit;
  const GemmUnit<VnniPair>* vnni = gemm_unit<VnniPair>(VectorUnit::avx512);
  const bool tiles = in == DType::bf16 && vnni && this_processor().amx_bf16 &&
                     !request.row_invariant() && g.group_inputs() % 32 == 0 &&
                     g.group_outputs() % 16 == 0;
  const auto make = [&]<class P, class T>(const GemmUnit<P>& loops, std::string_view name,
                                          T) -> std::unique_ptr<Kernel> {
    return std::make_unique<PlaneConvolution<P, T>>(
        g, in, out, loops, tiles,
        fmt::format("convolution planes {} {} {}", name, request.input(0).text(),
                    request.input(1).shape.text()));
  };
  const std::string_view name = vector_unit_name(unit);
  if (in == DType::bf16 && vnni && g.group_inputs() % 2 == 0)
    return make(*vnni, tiles ? "amx" : "avx512_bf16", Bf16{});
  return make_for_operands(
      in, unit, [&](const auto& loops, auto element) { return make(loops, name, element); });
}

}  // namespace fullbore::cpu
