#include <fmt/format.h>

#include <memory>
#include <string>

#include "fullbore/base/error.h"
#include "fullbore/device/cuda/cuda_compiler.h"
#include "fullbore/device/cuda/known_cards.h"
#include "fullbore/device/device.h"
#include "fullbore/device/registry.h"

namespace fullbore::cuda {
namespace {

/// "RTX 4090" of "card:RTX 4090".
const KnownCard& card_of(const std::string& name) {
  const size_t colon = name.find(':');
  return known_card(colon == std::string::npos ? "" : std::string_view(name).substr(colon + 1));
}

/// A card by what its maker says of it: programs are planned for it, with the kernels that it would get, and none can
/// run.
class PlannedCard final : public Device {
 public:
  PlannedCard(const std::string& name, bool moments_in_host)
      : name_(name), card_(card_of(name)), moments_in_host_(moments_in_host) {}

  Target target() const override { return cuda_target(card_.facts()); }
  DeviceFacts facts() const override {
    return {.name = name_,
            .hardware = fmt::format("{}, as published", card_.name),
            .alignment = 256,
            .group_alignment = 256,
            .workers = 1,
            .moments_in_host = moments_in_host_};
  }
  std::unique_ptr<DeviceMemory> allocate(int64_t) override { refuse(); }
  std::unique_ptr<HostMemory> allocate_host(int64_t) override { refuse(); }
  void write(Address, std::span<const std::byte>) override { refuse(); }
  void read(Address, std::span<std::byte>) const override { refuse(); }
  void copy(Address, Address, int64_t) override { refuse(); }
  void produce(Address, int64_t, Pieces, const Produce&) override { refuse(); }
  void consume(Address, int64_t, Pieces, const Consume&) const override { refuse(); }
  void snapshot(std::span<const SnapshotPart>, HostMemory&, bool) override { refuse(); }
  std::unique_ptr<Compiler> compiler() override {
    return std::make_unique<CudaCompiler>(card_.facts());
  }
  std::unique_ptr<Recorder> record() override { refuse(); }
  MeasuredPeaks measure_peaks(const PeakMemory&) override {
    return {.peaks = {.fp32_flops = card_.fp32_flops,
                      .bf16_flops = card_.bf16_flops,
                      .bytes_per_second = card_.bytes_per_second,
                      .tf32_flops = card_.tf32_flops,
                      .host_bytes_per_second = card_.host_bytes_per_second},
            .fp32_method = "published",
            .bf16_method = "published",
            .native_bf16 = true,
            .tf32_method = "published"};
  }

 private:
  [[noreturn]] void refuse() const {
    throw UsageError(fmt::format(
        "engine.device={} is a card to plan for, which is not at hand: `plan` alone takes it",
        name_));
  }

  std::string name_;
  const KnownCard& card_;
  bool moments_in_host_;
};

const RegisteredDevice registered(
    {.name = "card",
     .summary = "to plan for: card:4090 and others, by what their makers publish",
     .open = [](const std::string& name, int) -> std::shared_ptr<Device> {
       return std::make_shared<PlannedCard>(name, false);
     },
     .own_memory_bytes =
         [](const std::string& name) { return static_cast<int64_t>(card_of(name).memory_bytes); },
     .open_with_moments_in_host = [](const std::string& name, int) -> std::shared_ptr<Device> {
       return std::make_shared<PlannedCard>(name, true);
     }});

}  // namespace
}  // namespace fullbore::cuda
