#include "fullbore/device/cuda/measure_peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace fullbore::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocksPerMultiprocessor = 8;
constexpr int kChains = 8;  ///< of a thread, so that no instruction waits for the one before
constexpr double kLongEnoughMs = 20;
constexpr double kProductFlops = 2.0 * 16 * 8 * 16;     ///< of one mma.m16n8k16, by a warp
constexpr double kTf32ProductFlops = 2.0 * 16 * 8 * 8;  ///< of one mma.m16n8k8

std::string repeated(const std::string& line) {
  std::string text;
  for (int i = 0; i < kChains; ++i)
    text += fmt::format(fmt::runtime(line), i, i + 8, i + 16, i + 24);
  return text;
}

/// A kernel that makes `body` as often as its second parameter says, and stores what becomes of it where nobody looks.
std::string loop_of(const std::string& body) {
  return ".version 7.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry peak(.param .u64 out, .param .u32 times)\n{\n"
         ".reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<40>; .reg .b64 %l<4>;\n"
         "ld.param.u64 %l0, [out];\nld.param.u32 %r0, [times];\nmov.u32 %r1, %tid.x;\n"
         "cvt.rn.f32.u32 %f39, %r1;\nmov.b32 %r2, 0;\nmov.b32 %r3, 0;\nmov.b32 %r4, 0;\n" +
         repeated(
             "mov.f32 %f{0}, %f39;\nmov.f32 %f{1}, %f39;\nmov.f32 %f{2}, %f39;\nmov.f32 "
             "%f{3}, %f39;\n") +
         "$again:\n" + body +
         "add.u32 %r0, %r0, -1;\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 bra $again;\n" +
         repeated("add.f32 %f39, %f39, %f{0};\n") +
         "mov.u32 %r5, %ctaid.x;\nmov.u32 %r6, %ntid.x;\nmad.lo.s32 %r7, %r5, %r6, %r1;\n"
         "mul.wide.u32 %l1, %r7, 4;\nadd.s64 %l2, %l0, %l1;\nst.global.f32 [%l2], %f39;\nret;\n}\n";
}

class Timer {
 public:
  explicit Timer(const std::shared_ptr<Context>& context)
      : context_(*context), begin_(context, 0), end_(context, 0) {}
  template <class Work>
  double milliseconds(const Work& work) const {
    const Driver& driver = context_.enter();
    driver.record_event(begin_.get(), context_.main());
    work(driver);
    driver.record_event(end_.get(), context_.main());
    driver.wait_for_event(end_.get());
    float time = 0;
    driver.milliseconds(&time, begin_.get(), end_.get());
    return std::max(1e-6, double{time});
  }

 private:
  const Context& context_;
  Event begin_, end_;
};

/// Flops a second of a loop whose body makes `flops` in all threads of a launch.
double rate_of(const std::shared_ptr<Context>& context, const std::string& name,
               const std::string& body, double flops_of_thread) {
  const auto module = std::make_shared<const Module>(Module{name, loop_of(body)});
  const FunctionHandle function = context->function(module, "peak", 0);
  const unsigned blocks =
      static_cast<unsigned>(context->card().facts.multiprocessors) * kBlocksPerMultiprocessor;
  const CardMemory results(context, int64_t{4} * blocks * kThreads);
  const Timer timer(context);
  const DevicePointer out = results.get();
  for (uint32_t times = 1;; times *= 4) {
    const double ms = timer.milliseconds([&](const Driver& driver) {
      DevicePointer first = out;
      uint32_t second = times;
      void* arguments[] = {&first, &second};
      driver.launch(function, blocks, 1, 1, kThreads, 1, 1, 0, context->main(), arguments, nullptr);
    });
    if (ms > kLongEnoughMs || times >= (1U << 24))
      return flops_of_thread * times * blocks * kThreads / (ms / 1e3);
  }
}

/// Bytes a second that are read and written.
double bandwidth_of(const std::shared_ptr<Context>& context, const PeakMemory& memory,
                    bool* in_caches) {
  constexpr int64_t kWanted = int64_t{288} << 20;
  constexpr int64_t kLeast = 1 << 20;
  const bool is_lent = memory.lent_bytes >= std::min(kWanted, std::max(kLeast, memory.bytes));
  const int64_t bytes =
      std::min(kWanted, is_lent ? memory.lent_bytes : std::max(kLeast, memory.bytes));
  std::unique_ptr<CardMemory> own;
  if (!is_lent) own = std::make_unique<CardMemory>(context, bytes);
  const DevicePointer begin = is_lent ? memory.lent.value : own->get();
  const auto half = static_cast<size_t>(bytes / 2);
  *in_caches = bytes < kWanted;
  const Timer timer(context);
  const auto copies = [&](int times) {
    return timer.milliseconds([&](const Driver& driver) {
      for (int i = 0; i < times; ++i) driver.copy(begin + half, begin, half, context->main());
    });
  };
  copies(1);
  int times = 1;
  for (;; times *= 2)
    if (const double ms = copies(times); ms > kLongEnoughMs || times >= 1024)
      return 2.0 * static_cast<double>(half) * times / (ms / 1e3);
}

/// Bytes a second from the host's pinned memory to the card's.
double host_rate_of(const std::shared_ptr<Context>& context, const PeakMemory& memory) {
  constexpr int64_t kWanted = int64_t{32} << 20;
  const int64_t bytes = std::max<int64_t>(1 << 20, std::min(kWanted, memory.bytes));
  const PinnedMemory host(context, bytes);
  std::unique_ptr<CardMemory> own;
  if (memory.lent_bytes < bytes) own = std::make_unique<CardMemory>(context, bytes);
  const DevicePointer to = own ? own->get() : memory.lent.value;
  const Timer timer(context);
  const auto copies = [&](int times) {
    return timer.milliseconds([&](const Driver& driver) {
      for (int i = 0; i < times; ++i)
        driver.copy_in(to, host.get(), static_cast<size_t>(bytes), context->main());
    });
  };
  copies(1);
  int times = 1;
  for (;; times *= 2)
    if (const double ms = copies(times); ms > kLongEnoughMs || times >= 64)
      return static_cast<double>(bytes) * times / (ms / 1e3);
}

}  // namespace

MeasuredPeaks measure_peaks(const std::shared_ptr<Context>& context, const PeakMemory& memory) {
  MeasuredPeaks measured;
  measured.peaks.bytes_per_second = bandwidth_of(context, memory, &measured.in_caches);
  measured.peaks.fp32_flops = rate_of(
      context, "peak of fp32", repeated("fma.rn.f32 %f{0}, %f{0}, %f{0}, %f39;\n"), 2.0 * kChains);
  measured.peaks.bf16_flops =
      rate_of(context, "peak of bf16",
              repeated("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{%f{0},%f{1},%f{2},"
                       "%f{3}}}, {{%r2,%r3,%r4,%r2}}, {{%r3,%r4}}, {{%f{0},%f{1},%f{2},%f{3}}};\n"),
              kProductFlops * kChains / 32);
  measured.peaks.tf32_flops =
      rate_of(context, "peak of tf32",
              repeated("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{%f{0},%f{1},%f{2},"
                       "%f{3}}}, {{%r2,%r3,%r4,%r2}}, {{%r3,%r4}}, {{%f{0},%f{1},%f{2},%f{3}}};\n"),
              kTf32ProductFlops * kChains / 32);
  measured.peaks.host_bytes_per_second = host_rate_of(context, memory);
  measured.fp32_method = "fma";
  measured.bf16_method = "mma.sync";
  measured.tf32_method = "mma.sync";
  measured.native_bf16 = true;
  return measured;
}

}  // namespace fullbore::cuda
