#include "fullbore/runtime/record_plan.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace fullbore {
namespace {

/// One walk over a plan.
class Walk {
 public:
  Walk(const Plan& plan, BufferAddresses addresses, Recorder& recorder)
      : plan_(plan), addresses_(addresses), recorder_(recorder) {
    for (size_t i = 0; i < plan.graph.inputs().size(); ++i)
      if (!is_kept(plan.graph.inputs()[i].role))
        batch_.emplace(static_cast<int>(i), static_cast<int>(batch_.size()));
    if (std::ranges::any_of(plan.launches, &PlannedLaunch::behind))
      first_waiting_ = &plan.launches[plan.first_waiting];
  }

  void launches(const std::vector<PlannedLaunch>& launches) {
    for (const PlannedLaunch& launch : launches) {
      const int id = next_id_++;
      if (&launch == first_waiting_) recorder_.wait_for_copies_behind();
      switch (launch.kind) {
        case PlannedLaunch::Kind::kernel: {
          std::vector<LaunchOperand> operands;
          for (const int buffer : launch.buffers) operands.push_back(operand(buffer));
          recorder_.launch(id, *plan_.kernels[static_cast<size_t>(launch.kernel)], operands,
                           launch.waits);
          break;
        }
        case PlannedLaunch::Kind::copy:
          if (launch.behind) {
            recorder_.copy_behind(id, operand(launch.buffers[0]), operand(launch.buffers[1]),
                                  buffer(launch.buffers[1]).bytes);
            break;
          }
          recorder_.copy(id, operand(launch.buffers[0]), operand(launch.buffers[1]),
                         buffer(launch.buffers[1]).bytes, launch.waits);
          break;
        case PlannedLaunch::Kind::loop: loop(id, *launch.loop); break;
      }
    }
  }

 private:
  const Buffer& buffer(int index) const { return plan_.buffers[static_cast<size_t>(index)]; }

  /// Rows of rows: each loop on the way moves the operand by its own stride.
  LaunchOperand operand(int index) const {
    LaunchOperand result;
    int at = index;
    for (; buffer(at).space == Space::slice; at = buffer(at).base) {
      const size_t depth = depths_.at(at);
      if (result.strides.size() <= depth) result.strides.resize(depth + 1, 0);
      result.strides[depth] += buffer(at).stride;
    }
    if (buffer(at).space == Space::batch)
      result.batch_input = batch_.at(buffer(at).index);
    else
      find_bases(at, result);
    return result;
  }
  Address address(int at) const {
    if (buffer(at).space != Space::thread_group) return addresses_[static_cast<size_t>(at)];
    return addresses_[static_cast<size_t>(buffer(at).base)] + buffer(at).offset;  // of the first
  }
  /// The innermost loop that exchanges a buffer decides first, and what it decides for may be exchanged by another around.
  void find_bases(int at, LaunchOperand& operand) const {
    const auto follow = [&](auto& self, int buffer, size_t below, size_t bits) -> int {
      for (size_t i = exchanges_.size(); i-- > 0;) {
        const Exchange& each = exchanges_[i];
        if (each.depth >= below || (each.from != buffer && each.to != buffer)) continue;
        const auto known = std::ranges::find(operand.exchanged_by, each.depth);
        const auto bit = static_cast<size_t>(known - operand.exchanged_by.begin());
        if (known == operand.exchanged_by.end()) operand.exchanged_by.push_back(each.depth);
        const bool odd = (bits >> bit) % 2 != 0;
        return self(self, odd ? each.from + each.to - buffer : buffer, each.depth, bits);
      }
      return buffer;
    };
    // Which loops decide is found on the way through all of the parities known so far.
    for (size_t bits = 0; bits < (size_t{1} << operand.exchanged_by.size()); ++bits)
      (void)follow(follow, at, depth_, bits);
    operand.base = address(at);
    for (size_t bits = 0;
         !operand.exchanged_by.empty() && bits < (size_t{1} << operand.exchanged_by.size()); ++bits)
      operand.exchanged_bases.push_back(address(follow(follow, at, depth_, bits)));
  }
  std::optional<LaunchOperand> operand_or_none(int index) const {
    if (index < 0) return std::nullopt;
    return operand(index);
  }

  void loop(int id, const LoopPlan& plan) {
    std::vector<LaunchOperand> cleared;  // as seen from outside, like what is exchanged
    for (const int stacked : plan.cleared) cleared.push_back(operand(stacked));
    std::vector<std::pair<LaunchOperand, LaunchOperand>> exchanged;
    for (const LoopPlan::Carry& carry : plan.carries)
      if (carry.exchanged) exchanged.emplace_back(operand(carry.from), operand(carry.to));
    LoopRange range;
    range.iterations = plan.iterations;
    range.reverse = plan.reverse;
    range.count = operand_or_none(plan.count);
    range.executed = operand_or_none(plan.executed);
    if (plan.memory >= 0) {
      range.groups = thread_group_count(plan_, plan);
      range.group_memory = addresses_[static_cast<size_t>(plan.memory)];
      range.group_stride = buffer(plan.memory).stride;
    }
    for (const int slice : plan.slices) depths_[slice] = depth_;
    for (const LoopPlan::Carry& carry : plan.carries)
      if (carry.exchanged) exchanges_.push_back({carry.from, carry.to, depth_});
    ++depth_;
    range.index = operand_or_none(plan.index);
    range.stop = operand_or_none(plan.stop);
    recorder_.begin_loop(id, range);
    launches(plan.body);
    size_t next = 0;
    for (const LoopPlan::Carry& carry : plan.carries)
      if (carry.exchanged) {
        recorder_.exchange(exchanged[next].first, exchanged[next].second, buffer(carry.to).bytes);
        ++next;
      } else {
        recorder_.carry(operand(carry.from), operand(carry.to), buffer(carry.to).bytes);
      }
    for (size_t i = 0; i < cleared.size(); ++i)
      recorder_.clear_rows(cleared[i], buffer(plan.cleared[i]).bytes / plan.iterations);
    recorder_.end_loop();
    exchanges_.resize(exchanges_.size() - exchanged.size());
    --depth_;
  }

  const Plan& plan_;
  BufferAddresses addresses_;
  Recorder& recorder_;
  const PlannedLaunch* first_waiting_ = nullptr;  ///< null: no copies go on beside the next run
  std::map<int, int> batch_;      ///< graph input -> number among those of the batch
  std::map<int, size_t> depths_;  ///< slice -> depth of the loop that moves it
  struct Exchange {
    int from;
    int to;
    size_t depth;
  };
  std::vector<Exchange> exchanges_;  ///< of the loops around, outermost first
  size_t depth_ = 0;
  int next_id_ = 0;
};

}  // namespace

std::unique_ptr<Replayable> record_plan(const Plan& plan, BufferAddresses addresses,
                                        Device& device) {
  const std::unique_ptr<Recorder> recorder = device.record();
  Walk(plan, addresses, *recorder).launches(plan.launches);
  return recorder->finish();
}

}  // namespace fullbore
