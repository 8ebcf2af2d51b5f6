#include "fullbore/device/cpu/kernels/dropout_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fullbore/base/draw_unit.h"
#include "fullbore/ops/random.h"

namespace fullbore::cpu {
namespace {

constexpr int64_t kItemElements = 2048;
constexpr int64_t kItemDraws = kItemElements / kDrawElements;
constexpr size_t kLaneElements = kDrawElements * kDrawLanes;

class DropoutMaskKernel final : public CpuKernel {
 public:
  explicit DropoutMaskKernel(const KernelRequest& request)
      : elements_(request.output().elements()),
        site_(static_cast<uint64_t>(request.attribute<int64_t>("site"))),
        threshold_(
            static_cast<uint16_t>(dropout_threshold(request.attribute<double>("probability")))),
        inputs_(request.node().inputs.size()),
        unit_(draw_units().front()),
        text_(fmt::format("dropout_mask {} {}", unit_.name, request.output().shape.text())) {}

  int64_t items() const override { return (elements_ + kItemElements - 1) / kItemElements; }
  double nanoseconds() const override { return static_cast<double>(elements_) / 8; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int) const override {
    const auto scalar = [&](size_t i) {
      uint64_t value = 0;
      std::memcpy(&value, buffers[i], sizeof(value));
      return value;
    };
    const uint64_t stream = scalar(1) + (site_ << 40);
    const uint64_t first = inputs_ == 3 ? scalar(2) << 32 : 0;
    auto* const kept = static_cast<uint8_t*>(buffers[inputs_]);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t from = item * kItemElements;
      const int64_t count = std::min(kItemElements, elements_ - from);
      const auto position = first + static_cast<uint64_t>(item * kItemDraws);
      const auto whole = static_cast<size_t>(count) / kLaneElements * kDrawLanes;
      unit_.compare(scalar(0), stream, position, threshold_, kept + from, whole);
      const int64_t done = static_cast<int64_t>(whole) * kDrawElements;
      if (done == count) continue;
      uint8_t rest[kLaneElements];
      unit_.compare(scalar(0), stream, position + whole, threshold_, rest, kDrawLanes);
      std::copy_n(rest, count - done, kept + from + done);
    }
  }

 private:
  const int64_t elements_;
  const uint64_t site_;
  const uint16_t threshold_;
  const size_t inputs_;
  const DrawUnit& unit_;
  const std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_dropout_mask(KernelRequest& request) {
  return std::make_unique<DropoutMaskKernel>(request);
}

}  // namespace fullbore::cpu
