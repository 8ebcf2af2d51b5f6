#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/convolution/convolution.h"
#include "fullbore/device/cpu/convolution/operand_types.h"
#include "fullbore/device/cpu/convolution/phases.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

constexpr int64_t kMostChannels = 15;
// Of an image with its channels side by side: it stays near.
constexpr int64_t kMostImageBytes = 8 << 20;

// Inputs of a line that outputs read, padding included.
int64_t line_positions(const ConvAxis& axis) {
  return (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
}

/// x [N,C,H,W], dy [N,O,*P] -> dweight [parts,O,*K,C/G]. P is what is multiplied and summed, T what operands lie as.
template <class P, class T>
class FewChannelWeightGradient final : public CpuKernel {
 public:
  FewChannelWeightGradient(const ConvGeometry& geometry, int64_t parts, DType in, DType out,
                           const GemmUnit<P>& loops, std::string text)
      : g_(geometry),
        rows_(geometry.axes[1]),
        columns_(geometry.axes[2]),
        in_(in),
        out_(out),
        loops_(loops),
        parts_(parts),
        images_(divide_up(geometry.batch, parts)),
        channels_(geometry.group_inputs()),
        outputs_(geometry.group_outputs()),
        line_(line_positions(columns_) * channels_),
        text_(std::move(text)) {}

  int64_t items() const override { return parts_ * g_.groups; }
  double nanoseconds() const override {
    return g_.flops() / (0.6 * loops_.flops_per_nanosecond) + 100 * static_cast<double>(items());
  }
  int64_t scratch_bytes(int workers) const override { return own_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const Parts own = parts_of(static_cast<char*>(buffers[3]) + own_bytes() * worker);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t group = item % g_.groups, part = item / g_.groups;
      std::fill_n(own.sums, kernel() * channels_ * row(), P{0});
      const int64_t last = std::min(g_.batch, (part + 1) * images_);
      for (int64_t image = part * images_; image < last; ++image)
        add_image(static_cast<const T*>(buffers[0]) +
                      (image * g_.inputs + group * channels_) * g_.input_elements(),
                  static_cast<const T*>(buffers[1]) +
                      (image * g_.outputs + group * outputs_) * g_.output_elements(),
                  own);
      store(buffers[2], part, group, own.sums);
    }
  }

 private:
  struct Parts {
    P* sums;  ///< [K, C/G, row]
    P* dy;    ///< [outputs of a line, row]
    P* x;     ///< [H, positions of a line, C/G]
  };
  Parts parts_of(char* base, int64_t* bytes = nullptr) const {
    Scratch scratch(base);
    Parts parts{scratch.take<P>(kernel() * channels_ * row()),
                scratch.take<P>(columns_.output * row()), scratch.take<P>(rows_.input * line_)};
    if (bytes) *bytes = scratch.bytes();
    return parts;
  }
  int64_t own_bytes() const {
    int64_t bytes = 0;
    parts_of(nullptr, &bytes);
    return std::max<int64_t>(64, bytes);
  }
  int64_t kernel() const { return rows_.kernel * columns_.kernel; }
  int64_t row() const { return round_up(outputs_, loops_.lanes); }

  void add_image(const T* x, const T* dy, const Parts& own) const {
    std::fill_n(own.x, rows_.input * line_, P{0});
    const int64_t skipped = std::max<int64_t>(0, columns_.before);
    const int64_t first = std::max<int64_t>(0, -columns_.before);
    const int64_t count = std::min(columns_.input - first, line_ / channels_ - skipped);
    if (count > 0)
      for (int64_t i = 0; i < rows_.input; ++i)
        loops_.copy_transposed(
            {x + i * columns_.input + first, in_, g_.input_elements(), channels_, count},
            own.x + i * line_ + skipped * channels_, channels_);
    for (int64_t b = 0; b < rows_.output; ++b) {
      loops_.copy_transposed(
          {dy + b * columns_.output, in_, g_.output_elements(), outputs_, columns_.output}, own.dy,
          row());
      for (int64_t k = 0; k < rows_.kernel; ++k)
        if (const int64_t read = rows_.read(b, k); read >= 0)
          add_line(own.x + read * line_, own.dy,
                   own.sums + k * columns_.kernel * channels_ * row());
    }
  }

  // One line of outputs with a line of inputs: where the kernel has no holes, its elements and their channels are rows side
  // by side of one product.
  void add_line(const P* x, const P* dy, P* sums) const {
    const bool joined = columns_.dilation == 1;
    const int64_t rows = joined ? columns_.kernel * channels_ : channels_;
    for (int64_t o = 0; o < outputs_; o += loops_.block_columns)
      for (int64_t k = 0; k < (joined ? 1 : columns_.kernel); ++k)
        loops_.multiply({.rows = rows,
                         .columns = std::min<int64_t>(loops_.block_columns, outputs_ - o),
                         .depth = columns_.output,
                         .a = x + k * columns_.dilation * channels_,
                         .a_row = 1,
                         .a_depth = columns_.stride * channels_,
                         .b = dy + o,
                         .b_depth = row(),
                         .c = sums + k * channels_ * row() + o,
                         .c_row = row(),
                         .goes_on = true});
  }

  void store(void* dweight, int64_t part, int64_t group, const P* sums) const {
    const int64_t each = kernel() * channels_;
    with_numeric(out_, [&](auto element) {
      using Out = decltype(element);
      if constexpr (std::is_same_v<Sum<Out>, P>) {
        Out* to = static_cast<Out*>(dweight) + (part * g_.outputs + group * outputs_) * each;
        for (int64_t o = 0; o < outputs_; ++o)
          for (int64_t i = 0; i < each; ++i)
            to[o * each + i] = fullbore::cpu::store<Out>(sums[i * row() + o]);
      }
    });
  }

  ConvGeometry g_;
  ConvAxis rows_, columns_;
  DType in_, out_;
  const GemmUnit<P>& loops_;
  int64_t parts_, images_;
  int64_t channels_, outputs_;  ///< of a group
  int64_t line_;                ///< elements of a line of inputs
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_few_channel_weight_gradient(KernelRequest& request) {
  const Attributes& attributes = request.node().attributes;
  const ConvGeometry g = in_three_axes(
      ConvGeometry::of_weight_gradient(request.input(0).shape, request.input(1).shape, attributes));
  const ConvAxis &idle = g.axes[0], &columns = g.axes[2];
  if (idle.input != 1 || idle.output != 1 || idle.kernel != 1 || idle.before != 0)
    return request.decline("three axes");
  if (g.group_inputs() > kMostChannels || g.group_inputs() == 0)
    return request.decline("many channels, or none");
  if (columns.input_dilation != 1 || g.axes[1].input_dilation != 1 || columns.output == 0)
    return request.decline("zeros between inputs, or no outputs");
  const DType in = request.input(0).dtype, out = request.output().dtype;
  // Lines are multiplied where they lie, without a copy of the image: it is what lines would widen again and again that pays.
  if (dtype_bytes(in) > 2) return request.decline("operands that are multiplied as they lie");
  if (g.axes[1].input * line_positions(columns) * g.group_inputs() * 8 > kMostImageBytes)
    return request.decline("images that are large");
  const VectorUnit unit = this_processor().vector_unit;
  const auto make = [&]<class P, class T>(const GemmUnit<P>& loops, T) -> std::unique_ptr<Kernel> {
    return std::make_unique<FewChannelWeightGradient<P, T>>(
        g, attributes.get<int64_t>("parts"), in, out, loops,
        fmt::format("convolution_weight_gradient few channels {} {} {}", vector_unit_name(unit),
                    request.input(0).text(), request.input(1).text()));
  };
  return make_for_operands(in, unit, make);
}

}  // namespace fullbore::cpu
