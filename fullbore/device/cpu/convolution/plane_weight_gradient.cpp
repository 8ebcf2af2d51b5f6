#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/convolution/convolution.h"
#include "fullbore/device/cpu/convolution/phases.h"
#include "fullbore/device/cpu/convolution/planes.h"
#include "fullbore/device/cpu/gemm/amx_tiles.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

// Bytes of sums that an item keeps.
constexpr int64_t kSumsBytes = 512 << 10;
constexpr int64_t kTile = 16;
constexpr int64_t kStep = 32;  // positions that a tile of bf16 is deep

/// x [N,C,H,W], dy [N,O,*P] -> dweight [parts,O,*K,C/G], bf16 by tiles. Rows of inputs are planes with zeros around them;
/// those of dy, transposed to VNNI pairs of positions, have zeros where a plane's row ends. Then all positions of a block are
/// one sum for each element of the kernel.
class PlaneWeightGradient final : public CpuKernel {
 public:
  PlaneWeightGradient(const ConvGeometry& geometry, int64_t parts, DType out,
                      const GemmUnit<VnniPair>& loops, std::string text)
      : g_(geometry),
        out_(out),
        loops_(loops),
        planes_(geometry, 2 * geometry.group_inputs() + 2 * geometry.group_outputs()),
        kernel_(geometry.kernel_elements()),
        input_(geometry.input_elements()),
        output_(geometry.output_elements()),
        parts_(parts),
        images_(divide_up(geometry.batch, parts)),
        outputs_{g_.group_outputs(), std::min<int64_t>(g_.group_outputs(), 4 * kTile)},
        inputs_{g_.group_inputs(), inputs_at_a_time()},
        text_(std::move(text)) {
    for (int64_t p = 0; p < depth(); p += kStep)
      steps_.push_back({p * 2, p / 2 * outputs_.size * 4});
  }

  int64_t items() const override { return parts_ * g_.groups * outputs_.parts() * inputs_.parts(); }
  double nanoseconds() const override {
    return g_.flops() / 400 + 1000 * static_cast<double>(items());
  }
  int64_t scratch_bytes(int workers) const override { return own_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const Parts own = parts_of(static_cast<char*>(buffers[3]) + own_bytes() * worker);
    const AmxTiles tiles;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t c = item % inputs_.parts(), rest = item / inputs_.parts();
      const int64_t o = rest % outputs_.parts(), group = rest / outputs_.parts() % g_.groups;
      run_block(buffers,
                {.part = rest / outputs_.parts() / g_.groups,
                 .input = group * g_.group_inputs() + inputs_.begin(c),
                 .first = inputs_.begin(c),
                 .inputs = inputs_.end(c) - inputs_.begin(c),
                 .output = group * g_.group_outputs() + outputs_.begin(o),
                 .outputs = outputs_.end(o) - outputs_.begin(o)},
                own, tiles);
    }
  }

 private:
  /// Channels of x and dy of an item; `first`: of x's within the group.
  struct Block {
    int64_t part, input, first, inputs, output, outputs;
  };
  struct Parts {
    float* sums;     ///< [K, inputs, outputs]
    uint16_t* x;     ///< [inputs, plane]
    VnniPair* dy;    ///< [positions / 2, outputs]
    uint16_t* line;  ///< [outputs, depth]: dy with zeros at the ends of rows
  };
  Parts parts_of(char* base, int64_t* bytes = nullptr) const {
    Scratch scratch(base);
    // Tiles read beyond the last plane's end.
    Parts parts{scratch.take<float>(kernel_ * inputs_.size * outputs_.size),
                scratch.take<uint16_t>(inputs_.size * planes_.elements() + 2 * kStep),
                scratch.take<VnniPair>(depth() / 2 * outputs_.size),
                scratch.take<uint16_t>(outputs_.size * depth())};
    if (bytes) *bytes = scratch.bytes();
    return parts;
  }
  int64_t own_bytes() const {
    int64_t bytes = 0;
    parts_of(nullptr, &bytes);
    return bytes;
  }
  int64_t inputs_at_a_time() const {
    const int64_t fit = kSumsBytes / (4 * kernel_ * outputs_.size) / kTile * kTile;
    return std::min(std::max(fit, 2 * kTile), g_.group_inputs());
  }
  /// Positions of the largest block, in whole steps.
  int64_t depth() const { return round_up(planes_.positions(planes_.block(0)), kStep); }

  void run_block(void* const* buffers, const Block& block, const Parts& own,
                 const AmxTiles& tiles) const {
    std::fill_n(own.sums, kernel_ * block.inputs * outputs_.size, 0.0F);
    const auto* x = static_cast<const uint16_t*>(buffers[0]) + block.input * input_;
    const auto* dy = static_cast<const uint16_t*>(buffers[1]) + block.output * output_;
    const int64_t end = std::min(g_.batch, (block.part + 1) * images_);
    for (int64_t image = block.part * images_; image < end; ++image)
      for (int64_t b = 0; b < planes_.blocks(); ++b) {
        const PlaneBlock plane_block = planes_.block(b);
        fill_planes(x + image * g_.inputs * input_, plane_block, block.inputs, own.x);
        fill_gradients(dy + image * g_.outputs * output_, plane_block, block.outputs, own);
        for (int64_t k = 0; k < kernel_; ++k)
          tiles.multiply({.rows = block.inputs,
                          .columns = block.outputs,
                          .steps = std::span(steps_).first(static_cast<size_t>(
                              divide_up(planes_.positions(plane_block), kStep))),
                          .a = reinterpret_cast<const char*>(
                              own.x + planes_.offsets()[static_cast<size_t>(k)]),
                          .a_row = planes_.elements() * 2,
                          .b = reinterpret_cast<const char*>(own.dy),
                          .b_row = outputs_.size * 4,
                          .c = own.sums + k * block.inputs * outputs_.size,
                          .c_row = outputs_.size,
                          .goes_on = true});
      }
    store(buffers[2], block, own.sums);
  }

  void fill_planes(const uint16_t* x, const PlaneBlock& plane_block, int64_t inputs,
                   uint16_t* to) const {
    const Planes::Rows rows = planes_.rows_of(plane_block), columns = planes_.columns();
    std::fill_n(to, inputs * planes_.elements() + 2 * kStep, uint16_t{0});
    for (int64_t c = 0; c < inputs; ++c)
      for (int64_t r = 0; r < rows.count; ++r)
        std::copy_n(x + c * input_ + (rows.input + r) * g_.axes[2].input + columns.input,
                    columns.count,
                    to + c * planes_.elements() + (rows.row + r) * planes_.width() + columns.row);
  }

  void fill_gradients(const uint16_t* dy, const PlaneBlock& plane_block, int64_t outputs,
                      const Parts& own) const {
    const int64_t width = g_.axes[2].output;
    const int64_t used = round_up(planes_.positions(plane_block), kStep);
    std::fill_n(own.line, outputs * depth(), uint16_t{0});
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t r = 0; r < plane_block.count; ++r)
        std::copy_n(dy + o * output_ + (plane_block.first + r) * width, width,
                    own.line + o * depth() + r * planes_.width());
    loops_.copy_transposed({own.line, DType::bf16, depth(), outputs, used}, own.dy, outputs_.size);
  }

  void store(void* dweight, const Block& block, const float* sums) const {
    const int64_t inner = g_.group_inputs();
    with_numeric(out_, [&](auto element) {
      using Out = decltype(element);
      if constexpr (std::is_same_v<Sum<Out>, float>)
        for (int64_t o = 0; o < block.outputs; ++o)
          for (int64_t k = 0; k < kernel_; ++k) {
            Out* to = static_cast<Out*>(dweight) +
                      ((block.part * g_.outputs + block.output + o) * kernel_ + k) * inner +
                      block.first;
            for (int64_t c = 0; c < block.inputs; ++c)
              to[c] = fullbore::cpu::store<Out>(sums[(k * block.inputs + c) * outputs_.size + o]);
          }
    });
  }

  ConvGeometry g_;
  DType out_;
  const GemmUnit<VnniPair>& loops_;
  Planes planes_;
  int64_t kernel_, input_, output_;
  int64_t parts_, images_;
  Blocks outputs_, inputs_;  ///< channels of a group
  std::vector<AmxStep> steps_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_plane_weight_gradient(KernelRequest& request) {
  if (request.input(0).dtype != DType::bf16 || !this_processor().amx_bf16)
    return request.decline("no tiles for such elements");
  const Attributes& attributes = request.node().attributes;
  const ConvGeometry g = in_three_axes(
      ConvGeometry::of_weight_gradient(request.input(0).shape, request.input(1).shape, attributes),
      false);
  if (!Planes::serve_by_one(g)) return request.decline("strides or three axes");
  if (g.group_inputs() % kTile != 0 || g.group_outputs() % kTile != 0)
    return request.decline("channels do not fill tiles");
  return std::make_unique<PlaneWeightGradient>(
      g, attributes.get<int64_t>("parts"), request.output().dtype,
      *gemm_unit<VnniPair>(VectorUnit::avx512),
      fmt::format("convolution_weight_gradient amx {} {}", request.input(0).text(),
                  request.input(1).text()));
}

}  // namespace fullbore::cpu
