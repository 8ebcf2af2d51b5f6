#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/convolution/convolution.h"
#include "fullbore/device/cpu/convolution/operand_types.h"
#include "fullbore/device/cpu/convolution/phases.h"
#include "fullbore/device/cpu/convolution/plane_fill.h"
#include "fullbore/device/cpu/convolution/winograd_unit.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"
#include "fullbore/ops/winograd_convolution.h"

namespace fullbore::cpu {
namespace {

// Of the transformed inputs of an item, which stay in the second cache, and of the sums of a block of outputs, which nearly stay
// in the first. Twice and half as much of either is slower.
constexpr int64_t kInputBytes = 256 << 10;
constexpr int64_t kSumBytes = 48 << 10;
// Of the transformed weights that a worker has: a block of outputs, whose items all read them, and inputs again for the next.
constexpr int64_t kWeightBytes = 2 << 20;
// Elements that keep matrices of one item out of each other's sets of the first cache; more than a vector.
constexpr int64_t kApart = 16;
constexpr int64_t kCopied = 4;  // channels whose pixels are copied at a time
constexpr int64_t kTile = kWinogradTile;

/// x [N,C,S1,S2], weight [O,3,3,C/G] -> y [N,O,P1,P2]; T is what x and weight lie as.
template <class T>
class WinogradConvolution final : public CpuKernel {
 public:
  WinogradConvolution(const ConvGeometry& geometry, DType in, DType out,
                      const GemmUnit<float>& loops, const WinogradUnit& unit, std::string text)
      : g_(geometry),
        in_(in),
        out_(out),
        loops_(loops),
        unit_(unit),
        down_{geometry.axes[0], 1},
        across_{geometry.axes[1], unit.lanes},
        text_(std::move(text)) {
    const int64_t channel = kWinogradElements * static_cast<int64_t>(sizeof(float));
    const int64_t fit = kInputBytes / channel / std::max<int64_t>(1, g_.group_inputs());
    const int64_t tiles = std::max<int64_t>(2 * unit.lanes, fit / unit.lanes * unit.lanes);
    across_.cut(tiles);
    down_.cut(tiles / across_.block);
    if (down_.blocks() * across_.blocks() == 1)
      images_ = std::clamp<int64_t>(tiles / (down_.tiles * across_.tiles), 1,
                                    std::max<int64_t>(1, g_.batch));
    most_tiles_ = round_up(images_ * down_.block * across_.block, unit.lanes);
    block_outputs_ = even_part(g_.group_outputs(),
                               kWeightBytes / channel / std::max<int64_t>(1, g_.group_inputs()));
    outputs_ = even_part(block_outputs_, kSumBytes / channel / most_tiles_);
  }

  int64_t items() const override {
    return g_.groups * output_blocks() * image_blocks() * down_.blocks() * across_.blocks();
  }
  double nanoseconds() const override {
    return winograd_flops(g_) / (0.7 * loops_.flops_per_nanosecond) +
           500 * static_cast<double>(items());
  }
  int64_t scratch_bytes(int workers) const override { return own_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const Parts own = parts_of(static_cast<char*>(buffers[3]) + own_bytes() * worker);
    int64_t transformed = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % across_.blocks(), rest = item / across_.blocks();
      const int64_t row = rest % down_.blocks(), images = rest / down_.blocks();
      const int64_t output_block = images / image_blocks();  // weights stay for all images
      const int64_t group = output_block / output_blocks(),
                    first = output_block % output_blocks() * block_outputs_;
      const int64_t count = std::min(block_outputs_, g_.group_outputs() - first);
      if (output_block != transformed)
        transform_weights(buffers[1], group * g_.group_outputs() + first, count, own);
      transformed = output_block;
      const int64_t image = images % image_blocks() * images_;
      const Block block{.group = group,
                        .image = image,
                        .images = std::min(images_, g_.batch - image),
                        .down = down_.range(row),
                        .across = across_.range(column)};
      transform_inputs(static_cast<const T*>(buffers[0]), block, own);
      for (int64_t o = 0; o < count; o += outputs_) {
        const int64_t outputs = std::min(outputs_, count - o);
        multiply(block, o, outputs, own);
        for (int64_t i = 0; i < outputs; ++i)
          transform_output(block, first + o + i, own.sums + i * pitch(), own, buffers[2]);
      }
    }
  }

 private:
  struct TileRange {
    int64_t first, count;
  };
  /// One axis in tiles, and in blocks of these.
  struct TiledAxis {
    TiledAxis(const ConvAxis& of, int64_t of_multiple)
        : axis(of), tiles((of.output + kTile - 1) / kTile), block(tiles), multiple(of_multiple) {}
    /// Blocks of at most so many tiles, as equal as multiples are.
    void cut(int64_t most) {
      const int64_t count = std::max<int64_t>(1, (tiles + most - 1) / std::max<int64_t>(1, most));
      block = (tiles + count - 1) / count;
      if (count > 1) block = std::max(multiple, round_up(block, multiple));
    }
    int64_t blocks() const { return block > 0 ? (tiles + block - 1) / block : 0; }
    TileRange range(int64_t index) const {
      return {index * block, std::min(block, tiles - index * block)};
    }
    ConvAxis axis;
    int64_t tiles, block, multiple;
  };
  /// Tiles [images, rows, columns] of one group.
  struct Block {
    int64_t group, image, images;
    TileRange down, across;
    int64_t tiles() const { return images * down.count * across.count; }
  };
  struct Parts {
    float* pixels;   ///< of some channels: padded rows, or lines [2, 4, 2 tiles]
    float* inputs;   ///< [16, C/G, tiles]
    float* weight;   ///< [16, a block of outputs, C/G]
    float* sums;     ///< [16, some of these, tiles]
    float* results;  ///< [2, 2 tiles] of one output
    float* widened;  ///< [a block of outputs, 9, C/G]
  };

  Parts parts_of(char* base, int64_t* bytes = nullptr) const {
    Scratch scratch(base);
    Parts parts{scratch.take<float>(kCopied * pixel_elements()),
                scratch.take<float>(kWinogradElements * input_product()),
                scratch.take<float>(kWinogradElements * weight_product()),
                scratch.take<float>(kWinogradElements * sum_product()),
                scratch.take<float>(4 * most_tiles_),
                scratch.take<float>(kWidens ? block_outputs_ * 9 * g_.group_inputs() : 0)};
    if (bytes) *bytes = scratch.bytes();
    return parts;
  }
  int64_t own_bytes() const {
    int64_t bytes = 0;
    parts_of(nullptr, &bytes);
    return bytes;
  }
  static constexpr bool kWidens = !std::is_same_v<T, float>;

  // The largest of as many equal parts as parts of at most `most`, or of a few, are.
  static int64_t even_part(int64_t all, int64_t most) {
    constexpr int64_t kLeast = 8;
    const int64_t parts = (all + std::max(kLeast, most) - 1) / std::max(kLeast, most);
    return parts > 0 ? (all + parts - 1) / parts : 0;
  }
  int64_t output_blocks() const {
    return block_outputs_ > 0 ? (g_.group_outputs() + block_outputs_ - 1) / block_outputs_ : 0;
  }
  int64_t image_blocks() const { return (g_.batch + images_ - 1) / images_; }
  int64_t pitch() const { return most_tiles_; }
  int64_t input_product() const { return g_.group_inputs() * pitch() + kApart; }
  int64_t weight_product() const { return block_outputs_ * g_.group_inputs() + kApart; }
  int64_t sum_product() const { return outputs_ * pitch() + kApart; }
  // Of one channel: lines, or padded rows.
  int64_t pixel_elements() const {
    return std::max(16 * most_tiles_, (kTile * down_.block + 2) * row_pitch(across_.block));
  }
  // Of padded rows that tiles are read from.
  static int64_t row_pitch(int64_t tiles) { return kTile * tiles + kApart; }
  // Do halves of vectors lie within rows of tiles, and vectors within images?
  bool is_straight(const Block& block) const {
    return 2 * block.across.count % unit_.lanes == 0 &&
           (block.images == 1 || block.down.count * block.across.count % unit_.lanes == 0);
  }

  // Of outputs [first, first + count) of all groups.
  void transform_weights(const void* weight, int64_t first, int64_t count, const Parts& own) const {
    const int64_t row = 9 * g_.group_inputs();
    const T* from = static_cast<const T*>(weight) + first * row;
    const float* kernels = own.widened;
    if constexpr (kWidens)
      loops_.copy_rows({from, in_, row, count, row}, own.widened, row);
    else
      kernels = from;
    unit_.weights({.from = kernels,
                   .outputs = count,
                   .inputs = g_.group_inputs(),
                   .to = own.weight,
                   .product = weight_product()});
  }

  // Pixels of some channels are copied before the first is transformed: what was stored a moment ago, in other pieces, is
  // slow to load.
  void transform_inputs(const T* x, const Block& block, const Parts& own) const {
    const int64_t channels = g_.group_inputs();
    const Pixels pixels = is_straight(block) ? rows_of(block) : lines_of(block);
    std::fill_n(own.pixels, kCopied * pixel_elements(),
                0.0F);  // the padding, which is that of all channels
    for (int64_t image = 0; image < pixels.images; ++image) {
      const T* of_image =
          x + ((block.image + image) * g_.inputs + block.group * channels) * input();
      WinogradInputs inputs{.tiles = pixels.tiles,
                            .row_step = pixels.row_step,
                            .row = pixels.row,
                            .shift = pixels.shift,
                            .product = input_product()};
      for (int64_t c = 0; c < channels; c += kCopied) {
        const int64_t count = std::min(kCopied, channels - c);
        for (int64_t i = 0; i < count; ++i)
          copy_channel(of_image + (c + i) * input(), block, pixels,
                       own.pixels + i * pixel_elements());
        for (int64_t i = 0; i < count; ++i) {
          inputs.from = own.pixels + i * pixel_elements();
          inputs.to =
              own.inputs + (c + i) * pitch() + image * block.down.count * block.across.count;
          unit_.inputs(inputs);
        }
      }
    }
  }

  /// How tiles are read.
  struct Pixels {
    WinogradTiles tiles;
    int64_t row_step, row, shift;
    int64_t images;  ///< that are read one by one, or 1: all at once
  };
  // From the padded rows of one image.
  Pixels rows_of(const Block& block) const {
    const int64_t row = row_pitch(block.across.count),
                  across = 2 * block.across.count / unit_.lanes;
    return {.tiles = {block.down.count * across, across},
            .row_step = kTile * row,
            .row = row,
            .shift = 2,
            .images = block.images};
  }
  // From lines of the tiles of all rows and images, one behind the other: what the i-th row of tiles reads in columns 0 and 1
  // is a line, and what it reads in columns 2 and 3 another.
  Pixels lines_of(const Block& block) const {
    const int64_t line = kTile * most_tiles_;
    return {.tiles = vectors_of(block), .row_step = 0, .row = line, .shift = 4 * line, .images = 1};
  }
  // Whole ones. Of what fills the last nothing is read.
  WinogradTiles vectors_of(const Block& block) const {
    const int64_t halves = 2 * ((block.tiles() + unit_.lanes - 1) / unit_.lanes);
    return {halves, halves};
  }

  void copy_channel(const T* channel, const Block& block, const Pixels& pixels, float* to) const {
    const int64_t columns = kTile * block.across.count;
    if (pixels.shift == 2)
      return copy_pixels(channel, kTile * block.down.first, kTile * block.across.first, 1,
                         kTile * block.down.count + 2, columns + 2, to, pixels.row);
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < 4; ++i, to += pixels.row)
        for (int64_t image = 0; image < block.images; ++image)
          copy_pixels(channel + image * g_.inputs * input(), kTile * block.down.first + i,
                      kTile * (block.across.first + half), kTile, block.down.count, columns,
                      to + image * block.down.count * columns, columns);
  }

  // What lies within the input of rows `row`, row + step, ... by what outputs of [row, column] read first.
  void copy_pixels(const T* channel, int64_t row, int64_t column, int64_t step, int64_t rows,
                   int64_t columns, float* to, int64_t to_row) const {
    const ReadRange down = reads_within(0, rows, step, row - down_.axis.before, down_.axis.input);
    const ReadRange across =
        reads_within(0, columns, 1, column - across_.axis.before, across_.axis.input);
    if (down.begin >= down.end || across.begin >= across.end) return;
    const T* from = channel + (row - down_.axis.before + down.begin * step) * across_.axis.input +
                    column - across_.axis.before + across.begin;
    loops_.copy(
        {from, in_, step * across_.axis.input, down.end - down.begin, across.end - across.begin},
        to + down.begin * to_row + across.begin, to_row);
  }

  // Sums over channels, of outputs [first, first + outputs) of the block. Vectors have their tiles in an order of their own: whole ones.
  void multiply(const Block& block, int64_t first, int64_t outputs, const Parts& own) const {
    const int64_t tiles = round_up(block.tiles(), unit_.lanes);
    for (int64_t e = 0; e < kWinogradElements; ++e)
      for (int64_t t = 0; t < tiles; t += loops_.block_columns)
        loops_.multiply({.rows = outputs,
                         .columns = std::min<int64_t>(loops_.block_columns, tiles - t),
                         .depth = g_.group_inputs(),
                         .a = own.weight + e * weight_product() + first * g_.group_inputs(),
                         .a_row = g_.group_inputs(),
                         .b = own.inputs + e * input_product() + t,
                         .b_depth = pitch(),
                         .c = own.sums + e * sum_product() + t,
                         .c_row = pitch()});
  }

  // The results of one output's sums, to y where they lie as they do there.
  void transform_output(const Block& block, int64_t o, const float* sums, const Parts& own,
                        void* y) const {
    const ConvAxis &down = down_.axis, &across = across_.axis;
    const int64_t row = kTile * block.down.first, column = kTile * block.across.first;
    const int64_t wide = kTile * block.across.count;
    const int64_t first =
        (block.image * g_.outputs + block.group * g_.group_outputs() + o) * output() +
        row * across.output + column;
    WinogradOutputs outputs{.from = sums, .product = sum_product()};
    if (out_ == DType::f32 && is_straight(block) && column + wide <= across.output &&
        row + kTile * block.down.count <= down.output) {
      outputs.tiles = rows_of(block).tiles;
      outputs.row_step = kTile * across.output;
      outputs.row = across.output;
      for (int64_t image = 0; image < block.images; ++image) {
        outputs.to = static_cast<float*>(y) + first + image * g_.outputs * output();
        unit_.outputs(outputs);
        outputs.from += block.down.count * block.across.count;
      }
      return;
    }
    outputs.tiles = vectors_of(block);
    outputs.to = own.results;
    outputs.row = kTile * most_tiles_;
    unit_.outputs(outputs);
    const int64_t count = std::min(wide, across.output - column);
    for (int64_t image = 0; image < block.images; ++image)
      for (int64_t r = 0; r < kTile * block.down.count && row + r < down.output; ++r)
        store(own.results + r % kTile * outputs.row + (image * block.down.count + r / kTile) * wide,
              count,
              static_cast<char*>(y) +
                  (first + image * g_.outputs * output() + r * across.output) * dtype_bytes(out_));
  }
  void store(const float* from, int64_t count, char* to) const {
    if (out_ == DType::f32)
      copy_in_steps<4>(from, count, reinterpret_cast<float*>(to));
    else
      loops_.round(from, 0, to, 0, out_, 1, count);
  }

  int64_t input() const { return down_.axis.input * across_.axis.input; }
  int64_t output() const { return down_.axis.output * across_.axis.output; }

  ConvGeometry g_;
  DType in_, out_;
  const GemmUnit<float>& loops_;
  const WinogradUnit& unit_;
  TiledAxis down_, across_;
  int64_t images_ = 1;         ///< of an item
  int64_t most_tiles_ = 0;     ///< of an item, whole vectors
  int64_t block_outputs_ = 0;  ///< outputs whose weights are kept at a time
  int64_t outputs_ = 0;        ///< of these, whose sums are
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_winograd_convolution(KernelRequest& request) {
  const DType in = request.input(0).dtype, out = request.output().dtype;
  if (in == DType::f64) return request.decline("sums in f32");
  const ConvGeometry g = ConvGeometry::of_convolution(
      request.input(0).shape, request.input(1).shape, request.node().attributes);
  const VectorUnit unit = this_processor().vector_unit;
  const auto make = [&](auto element) -> std::unique_ptr<Kernel> {
    return std::make_unique<WinogradConvolution<decltype(element)>>(
        g, in, out, *gemm_unit<float>(unit), winograd_unit(unit),
        fmt::format("winograd_convolution {} {} {}", vector_unit_name(unit),
                    request.input(0).text(), request.input(1).shape.text()));
  };
  if (in == DType::bf16) return make(Bf16{});
  if (in == DType::f16) return make(F16{});
  return make(float{});
}

}  // namespace fullbore::cpu
