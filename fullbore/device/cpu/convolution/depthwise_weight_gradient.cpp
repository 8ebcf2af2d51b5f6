#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/convolution/convolution.h"
#include "fullbore/device/cpu/convolution/operand_types.h"
#include "fullbore/device/cpu/convolution/phases.h"
#include "fullbore/device/cpu/convolution/planes.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

/// x [N,G,H,W], dy [N,O,*P] -> dweight [parts,O,*K,1]: groups of one input channel. P is what is multiplied and summed, T
/// what operands lie as.
template <class P, class T>
class DepthwiseWeightGradient final : public CpuKernel {
 public:
  DepthwiseWeightGradient(const ConvGeometry& geometry, int64_t parts, DType in, DType out,
                          const GemmUnit<P>& loops, std::string text)
      : g_(geometry),
        in_(in),
        out_(out),
        loops_(loops),
        planes_(geometry, 2 * static_cast<int64_t>(sizeof(P))),
        kernel_(geometry.kernel_elements()),
        input_(geometry.input_elements()),
        output_(geometry.output_elements()),
        parts_(parts),
        images_(divide_up(geometry.batch, parts)),
        text_(std::move(text)) {}

  int64_t items() const override { return parts_ * g_.outputs; }
  double nanoseconds() const override {
    return g_.flops() / (0.2 * loops_.flops_per_nanosecond) + 200 * static_cast<double>(items());
  }
  int64_t scratch_bytes(int workers) const override { return own_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const Parts own = parts_of(static_cast<char*>(buffers[3]) + own_bytes() * worker);
    for (int64_t item = begin; item < end; ++item)
      run_channel(buffers, item / g_.outputs, item % g_.outputs, own);
  }

 private:
  struct Parts {
    P* x;     ///< a plane of inputs
    P* dy;    ///< positions of a block, zeros where a plane's row ends
    P* sums;  ///< [K], and those of one block
  };
  Parts parts_of(char* base, int64_t* bytes = nullptr) const {
    Scratch scratch(base);
    Parts parts{scratch.take<P>(planes_.elements() + kMostLanes),
                scratch.take<P>(planes_.elements()), scratch.take<P>(2 * kernel_)};
    if (bytes) *bytes = scratch.bytes();
    return parts;
  }
  int64_t own_bytes() const {
    int64_t bytes = 0;
    parts_of(nullptr, &bytes);
    return bytes;
  }

  void run_channel(void* const* buffers, int64_t part, int64_t o, const Parts& own) const {
    std::fill_n(own.sums, kernel_, P{0});
    const T* x = static_cast<const T*>(buffers[0]) + o / g_.group_outputs() * input_;
    const T* dy = static_cast<const T*>(buffers[1]) + o * output_;
    const int64_t end = std::min(g_.batch, (part + 1) * images_);
    for (int64_t image = part * images_; image < end; ++image)
      for (int64_t b = 0; b < planes_.blocks(); ++b)
        add_rows(x + image * g_.inputs * input_, dy + image * g_.outputs * output_,
                 planes_.block(b), own);
    with_numeric(out_, [&](auto element) {
      using Out = decltype(element);
      if constexpr (std::is_same_v<Sum<Out>, P>)
        for (int64_t k = 0; k < kernel_; ++k)
          static_cast<Out*>(buffers[2])[(part * g_.outputs + o) * kernel_ + k] =
              store<Out>(own.sums[k]);
    });
  }

  void add_rows(const T* x, const T* dy, const PlaneBlock& plane_block, const Parts& own) const {
    const Planes::Rows rows = planes_.rows_of(plane_block), columns = planes_.columns();
    const int64_t width = planes_.width(), outputs = g_.axes[2].output, line = g_.axes[2].kernel;
    std::fill_n(own.x, planes_.elements(), P{0});
    std::fill_n(own.dy, plane_block.count * width, P{0});
    loops_.copy_rows({x + rows.input * g_.axes[2].input + columns.input, in_, g_.axes[2].input,
                      columns.count > 0 ? rows.count : 0, columns.count},
                     own.x + rows.row * width + columns.row, width);
    loops_.copy_rows({dy + plane_block.first * outputs, in_, outputs, plane_block.count, outputs},
                     own.dy, width);
    for (int64_t k = 0; k < kernel_; k += line)
      loops_.dot({.rows = line,
                  .columns = 1,
                  .depth = planes_.positions(plane_block),
                  .a = own.x + planes_.offsets()[static_cast<size_t>(k)],
                  .a_row = g_.axes[2].dilation,
                  .b = own.dy,
                  .b_dtype = std::is_same_v<P, double> ? DType::f64 : DType::f32,
                  .b_column = 0,
                  .c = own.sums + kernel_ + k,
                  .c_row = 1});
    for (int64_t k = 0; k < kernel_; ++k) own.sums[k] += own.sums[kernel_ + k];
  }

  static constexpr int64_t kMostLanes = 16;
  ConvGeometry g_;
  DType in_, out_;
  const GemmUnit<P>& loops_;
  Planes planes_;
  int64_t kernel_, input_, output_;
  int64_t parts_, images_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_depthwise_weight_gradient(KernelRequest& request) {
  const Attributes& attributes = request.node().attributes;
  const ConvGeometry g = in_three_axes(
      ConvGeometry::of_weight_gradient(request.input(0).shape, request.input(1).shape, attributes),
      false);
  if (g.group_inputs() != 1) return request.decline("groups of several channels");
  if (!Planes::serve_by_one(g)) return request.decline("strides or three axes");
  const DType in = request.input(0).dtype, out = request.output().dtype;
  const VectorUnit unit = this_processor().vector_unit;
  const auto make = [&]<class P, class T>(const GemmUnit<P>& loops, T) -> std::unique_ptr<Kernel> {
    return std::make_unique<DepthwiseWeightGradient<P, T>>(
        g, attributes.get<int64_t>("parts"), in, out, loops,
        fmt::format("convolution_weight_gradient depthwise {} {} {}", vector_unit_name(unit),
                    request.input(0).text(), request.input(1).text()));
  };
  return make_for_operands(in, unit, make);
}

}  // namespace fullbore::cpu
