#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/convolution/convolution.h"
#include "fullbore/device/cpu/convolution/operand_types.h"
#include "fullbore/device/cpu/convolution/phases.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

// Bytes of sums that an item keeps: they stay in the second cache beside lines of both operands.
constexpr int64_t kSumsBytes = 256 << 10;
// Bytes of transposed gradients that are multiplied at a time: they stay in the first cache for all of the kernel.
constexpr int64_t kGradientBytes = 16 << 10;

/// x [N,C,*S], dy [N,O,*P] -> dweight [parts,O,*K,C/G]. P is what is multiplied and summed, T what operands lie as.
template <class P, class T>
class ConvolutionWeightGradient final : public CpuKernel {
 public:
  ConvolutionWeightGradient(const ConvGeometry& geometry, int64_t parts, DType in, DType out,
                            const GemmUnit<P>& loops, std::string text)
      : g_(geometry),
        in_(in),
        out_(out),
        loops_(loops),
        kernel_(geometry.kernel_elements()),
        input_(geometry.input_elements()),
        output_(geometry.output_elements()),
        parts_(parts),
        images_(divide_up(geometry.batch, parts)),
        outputs_{
            geometry.group_outputs(),
            std::min<int64_t>(loops.block_columns, std::max<int64_t>(1, geometry.group_outputs()))},
        inputs_{geometry.group_inputs(), inputs_at_a_time()},
        lines_(lines_at_a_time()),
        text_(std::move(text)) {}

  int64_t items() const override { return parts_ * g_.groups * outputs_.parts() * inputs_.parts(); }
  double nanoseconds() const override {
    return g_.flops() / (0.5 * loops_.flops_per_nanosecond) + 100 * static_cast<double>(items());
  }
  int64_t scratch_bytes(int workers) const override { return own_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const Parts own = parts_of(static_cast<char*>(buffers[3]) + own_bytes() * worker);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t c = item % inputs_.parts(), rest = item / inputs_.parts();
      const int64_t o = rest % outputs_.parts(), group = rest / outputs_.parts() % g_.groups;
      run_block(buffers,
                {.part = rest / outputs_.parts() / g_.groups,
                 .input = group * g_.group_inputs() + inputs_.begin(c),
                 .inputs = inputs_.end(c) - inputs_.begin(c),
                 .output = group * g_.group_outputs() + outputs_.begin(o),
                 .outputs = outputs_.end(o) - outputs_.begin(o)},
                own);
    }
  }

 private:
  static constexpr bool kNative = std::is_same_v<P, T>;

  /// Channels of x and dy of an item.
  struct Block {
    int64_t part, input, inputs, output, outputs;
  };
  struct Parts {
    P* sums;           ///< [K, inputs, outputs]
    P* dy;             ///< [lines, line, outputs]
    P* x;              ///< [inputs, lines, line], widened
    DepthPart* depth;  ///< [lines]
  };
  Parts parts_of(char* base, int64_t* bytes = nullptr) const {
    Scratch scratch(base);
    Parts parts{scratch.take<P>(kernel_ * inputs_.size * row()),
                scratch.take<P>(lines_ * g_.axes[2].output * row()),
                scratch.take<P>(kNative ? 0 : inputs_.size * lines_ * g_.axes[2].input),
                scratch.take<DepthPart>(lines_)};
    if (bytes) *bytes = scratch.bytes();
    return parts;
  }
  int64_t own_bytes() const {
    int64_t bytes = 0;
    parts_of(nullptr, &bytes);
    return std::max<int64_t>(64, bytes);
  }
  int64_t row() const { return round_up(outputs_.size, loops_.lanes); }
  int64_t inputs_at_a_time() const {
    const int64_t bytes = kernel_ * row() * static_cast<int64_t>(sizeof(P));
    return std::clamp<int64_t>(kSumsBytes / bytes, std::min<int64_t>(8, g_.group_inputs()),
                               std::max<int64_t>(1, g_.group_inputs()));
  }

  // Lines of outputs, along the second axis.
  int64_t lines_at_a_time() const {
    const int64_t bytes =
        std::max<int64_t>(1, g_.axes[2].output) * row() * static_cast<int64_t>(sizeof(P));
    return std::clamp<int64_t>(kGradientBytes / bytes, 1, std::max<int64_t>(1, g_.axes[1].output));
  }

  void run_block(void* const* buffers, const Block& block, const Parts& own) const {
    std::fill_n(own.sums, kernel_ * block.inputs * row(), P{0});
    const T* x = static_cast<const T*>(buffers[0]) + block.input * input_;
    const T* dy = static_cast<const T*>(buffers[1]) + block.output * output_;
    if (block.outputs < row()) std::fill_n(own.dy, lines_ * g_.axes[2].output * row(), P{0});
    const int64_t end = std::min(g_.batch, (block.part + 1) * images_);
    for (int64_t image = block.part * images_; image < end; ++image)
      for (int64_t a = 0; a < g_.axes[0].output; ++a)
        for (int64_t b = 0; b < g_.axes[1].output; b += lines_) {
          const int64_t lines = std::min(lines_, g_.axes[1].output - b);
          const int64_t line = (a * g_.axes[1].output + b) * g_.axes[2].output;
          loops_.copy_transposed({dy + image * g_.outputs * output_ + line, in_, output_,
                                  block.outputs, lines * g_.axes[2].output},
                                 own.dy, row());
          add_lines(x + image * g_.inputs * input_, {a, b, lines}, block, own);
        }
    store(buffers[2], block, own.sums);
  }

  /// Lines [first, first + count) of outputs, at one place along the first axis.
  struct Lines {
    int64_t slice, first, count;
  };

  // What some lines of outputs meet: for each line of the kernel, as many lines of inputs at most.
  void add_lines(const T* x, const Lines& lines, const Block& block, const Parts& own) const {
    const ConvAxis& last = g_.axes[2];
    for (int64_t ka = 0; ka < g_.axes[0].kernel; ++ka)
      for (int64_t kb = 0; kb < g_.axes[1].kernel; ++kb) {
        const int64_t slice = g_.axes[0].read(lines.slice, ka);
        if (slice < 0) continue;
        const T* plane = x + slice * g_.axes[1].input * last.input;
        int64_t count = 0;
        for (int64_t line = 0; line < lines.count; ++line) {
          const int64_t input = g_.axes[1].read(lines.first + line, kb);
          if (input < 0) continue;
          if constexpr (!kNative)
            loops_.copy_rows({plane + input * last.input, in_, input_, block.inputs, last.input},
                             own.x + count * last.input, lines_ * last.input);
          own.depth[count] = {(kNative ? input : count) * last.input, line * last.output * row()};
          ++count;
        }
        const P* rows = nullptr;
        if constexpr (kNative)
          rows = plane;
        else
          rows = own.x;
        for (int64_t kc = 0; kc < last.kernel; ++kc) {
          const int64_t shift = kc * last.dilation - last.before;
          const ReadRange range = reads_within(0, last.output, last.stride, shift, last.input);
          if (range.begin == range.end || count == 0) continue;
          const int64_t k = (ka * g_.axes[1].kernel + kb) * last.kernel + kc;
          PartedTile<P> tile{.rows = block.inputs,
                             .vectors = static_cast<int>(row() / loops_.lanes),
                             .parts = {own.depth, static_cast<size_t>(count)},
                             .depth = range.end - range.begin,
                             .a = rows + range.begin * last.stride + shift,
                             .a_row = kNative ? input_ : lines_ * last.input,
                             .a_depth = last.stride,
                             .b = own.dy + range.begin * row(),
                             .b_depth = row(),
                             .c = own.sums + k * block.inputs * row(),
                             .c_row = row(),
                             .goes_on = true};
          for (size_t v = 1; v < tile.columns.size(); ++v)
            tile.columns[v] = static_cast<int64_t>(v) * loops_.lanes;
          loops_.multiply_parts(tile);
        }
      }
  }

  void store(void* dweight, const Block& block, const P* sums) const {
    const int64_t inner = g_.group_inputs(), first = block.input % std::max<int64_t>(1, inner);
    with_numeric(out_, [&](auto element) {
      using Out = decltype(element);
      if constexpr (std::is_same_v<Sum<Out>, P>)
        for (int64_t o = 0; o < block.outputs; ++o)
          for (int64_t k = 0; k < kernel_; ++k) {
            Out* to = static_cast<Out*>(dweight) +
                      ((block.part * g_.outputs + block.output + o) * kernel_ + k) * inner + first;
            for (int64_t c = 0; c < block.inputs; ++c)
              to[c] = fullbore::cpu::store<Out>(sums[(k * block.inputs + c) * row() + o]);
          }
    });
  }

  ConvGeometry g_;
  DType in_, out_;
  const GemmUnit<P>& loops_;
  int64_t kernel_, input_, output_;
  int64_t parts_, images_;
  Blocks outputs_, inputs_;  ///< channels of a group
  int64_t lines_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_convolution_weight_gradient(KernelRequest& request) {
  const Attributes& attributes = request.node().attributes;
  const ConvGeometry g = in_three_axes(
      ConvGeometry::of_weight_gradient(request.input(0).shape, request.input(1).shape, attributes));
  const DType in = request.input(0).dtype, out = request.output().dtype;
  const VectorUnit unit = this_processor().vector_unit;
  const auto make = [&]<class P, class T>(const GemmUnit<P>& loops, T) -> std::unique_ptr<Kernel> {
    return std::make_unique<ConvolutionWeightGradient<P, T>>(
        g, attributes.get<int64_t>("parts"), in, out, loops,
        fmt::format("convolution_weight_gradient {} {} {}", vector_unit_name(unit),
                    request.input(0).text(), request.input(1).text()));
  };
  return make_for_operands(in, unit, make);
}

}  // namespace fullbore::cpu
