#include "kernel_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fullbore/base/check.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/kernel.h"
#include "guarded_memory.h"

namespace fullbore::testing_support {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kGuardBytes = 128;
constexpr char kNoise = static_cast<char>(0xA5);
// What no kernel has written yet: NaN in every dtype that has one, which times 0 is not 0.
constexpr char kUnwritten = static_cast<char>(0xFF);

/// Memory that is not written yet, between guards of noise.
class GuardedBuffer {
 public:
  GuardedBuffer(int64_t bytes, int64_t misalignment) : bytes_(bytes) {
    storage_.assign(static_cast<size_t>(bytes + 2 * kGuardBytes + 2 * kAlignment), kNoise);
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    const auto past = static_cast<int64_t>(address % kAlignment);
    first_ = (kAlignment - past) % kAlignment + kGuardBytes + misalignment;
    std::fill_n(data(), bytes, kUnwritten);
  }
  char* data() { return storage_.data() + first_; }
  std::vector<char> contents() const {
    return {storage_.begin() + first_, storage_.begin() + first_ + bytes_};
  }
  void fill(const std::vector<char>& bytes) {
    std::copy(bytes.begin(), bytes.end(), storage_.begin() + first_);
  }
  bool guards_intact() const {
    const auto is_noise = [](char c) { return c == kNoise; };
    return std::all_of(storage_.begin(), storage_.begin() + first_, is_noise) &&
           std::all_of(storage_.begin() + first_ + bytes_, storage_.end(), is_noise);
  }

 private:
  std::vector<char> storage_;
  int64_t bytes_;
  int64_t first_;
};

struct Share {
  int64_t begin;
  int64_t end;
  int worker;
};

std::vector<Share> shares(int64_t items, const RunOptions& options) {
  std::vector<Share> result;
  if (options.cuts_seed == 0) {
    for (int worker = 0; worker < options.workers; ++worker)
      result.push_back(
          {items * worker / options.workers, items * (worker + 1) / options.workers, worker});
  } else {
    PhiloxStream draws(options.cuts_seed);
    int64_t begin = 0;
    while (begin < items) {
      const auto length = static_cast<int64_t>(draws.uniform(1, 8));
      const int64_t end = std::min(items, begin + length);
      result.push_back({begin, end, static_cast<int>(draws.uniform(0, options.workers))});
      begin = end;
    }
    std::reverse(result.begin(), result.end());
  }
  std::erase_if(result, [](const Share& share) { return share.begin >= share.end; });
  return result;
}

}  // namespace

std::string RunOptions::text() const {
  std::string text = fmt::format("{} workers", workers);
  if (cuts_seed != 0) text += fmt::format(", cut at random (seed {})", cuts_seed);
  if (misaligned) text += ", misaligned";
  if (at_page_ends) text += ", inputs at the ends of pages";
  if (alias_input >= 0) text += fmt::format(", output {} on input {}", alias_output, alias_input);
  return text;
}

RunResult run_kernel(const Kernel& kernel, const std::vector<const Literal*>& inputs,
                     const std::vector<TensorType>& outputs, const RunOptions& options) {
  FB_CHECK(!options.at_page_ends || options.alias_input < 0, "outputs do not lie at page ends");
  const auto off = [&](DType dtype) { return options.misaligned ? dtype_bytes(dtype) : 0; };
  std::vector<GuardedBuffer> buffers;
  std::vector<std::vector<char>> given;
  for (const Literal* input : inputs) {
    given.push_back(input->bytes());
    buffers.emplace_back(static_cast<int64_t>(given.back().size()), off(input->dtype()));
    buffers.back().fill(given.back());
  }
  for (const TensorType& output : outputs) buffers.emplace_back(output.bytes(), off(output.dtype));
  buffers.emplace_back(kernel.scratch_bytes(options.workers), 0);

  std::vector<void*> table;
  for (GuardedBuffer& buffer : buffers) table.push_back(buffer.data());
  std::vector<GuardedMemory> at_page_ends;
  for (size_t i = 0; options.at_page_ends && i < inputs.size(); ++i)
    table[i] = at_page_ends.emplace_back(given[i]).data();
  size_t aliased = buffers.size();
  if (options.alias_input >= 0) {
    aliased = inputs.size() + static_cast<size_t>(options.alias_output);
    table[aliased] = table[static_cast<size_t>(options.alias_input)];
  }
  if (kernel.scratch_bytes(options.workers) == 0) table.pop_back();

  const auto& runnable = dynamic_cast<const CpuKernel&>(kernel);
  for (const Share& share : shares(runnable.items(), options))
    runnable.run(table.data(), share.begin, share.end, share.worker);

  RunResult result;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (!buffers[i].guards_intact())
      result.problem = fmt::format("{}: wrote outside of {} {}", options.text(),
                                   i < inputs.size()                    ? "input"
                                   : i < inputs.size() + outputs.size() ? "output"
                                                                        : "scratch",
                                   i < inputs.size() ? i : i - inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (static_cast<int>(i) == options.alias_input) continue;
    if ((options.at_page_ends ? at_page_ends[i].contents() : buffers[i].contents()) != given[i])
      result.problem = fmt::format("{}: wrote into input {}", options.text(), i);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t from =
        inputs.size() + i == aliased ? static_cast<size_t>(options.alias_input) : inputs.size() + i;
    result.outputs.push_back(buffers[from].contents());
  }
  return result;
}

RunResult run_kernel_in_all_ways(const Kernel& kernel, const std::vector<const Literal*>& inputs,
                                 const std::vector<TensorType>& outputs) {
  RunResult result = run_kernel(kernel, inputs, outputs, {});
  std::vector<RunOptions> ways(5);
  ways[0].workers = 2;
  ways[1].workers = 3;
  ways[2].workers = 3;
  ways[2].cuts_seed = 17;
  ways[3].misaligned = true;
  ways[4].at_page_ends = true;
  for (size_t input = 0; input < inputs.size(); ++input)
    for (size_t output = 0; output < outputs.size(); ++output) {
      if (inputs[input]->type().bytes() != outputs[output].bytes() ||
          !kernel.may_alias(static_cast<int>(input), static_cast<int>(output)))
        continue;
      RunOptions in_place;
      in_place.workers = 2;
      in_place.alias_input = static_cast<int>(input);
      in_place.alias_output = static_cast<int>(output);
      ways.push_back(in_place);
    }
  for (const RunOptions& way : ways) {
    if (!result.problem.empty()) break;
    const RunResult other = run_kernel(kernel, inputs, outputs, way);
    result.problem = other.problem;
    for (size_t i = 0; i < outputs.size() && result.problem.empty(); ++i) {
      const auto [a, b] = std::mismatch(result.outputs[i].begin(), result.outputs[i].end(),
                                        other.outputs[i].begin());
      if (a == result.outputs[i].end()) continue;
      const auto element =
          (a - result.outputs[i].begin()) / static_cast<ptrdiff_t>(dtype_bytes(outputs[i].dtype));
      result.problem = fmt::format("{}: other bits than one worker makes, output {} element {}",
                                   way.text(), i, element);
    }
  }
  return result;
}

}  // namespace fullbore::testing_support
