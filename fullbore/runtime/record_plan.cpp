#include "fullbore/runtime/record_plan.h"

#include <map>
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
  }

  void launches(const std::vector<PlannedLaunch>& launches) {
    for (const PlannedLaunch& launch : launches) {
      const int id = next_id_++;
      switch (launch.kind) {
        case PlannedLaunch::Kind::kernel: {
          std::vector<LaunchOperand> operands;
          for (const int buffer : launch.buffers) operands.push_back(operand(buffer));
          recorder_.launch(id, *plan_.kernels[static_cast<size_t>(launch.kernel)], operands,
                           launch.waits);
          break;
        }
        case PlannedLaunch::Kind::copy:
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
    switch (buffer(at).space) {
      case Space::batch: result.batch_input = batch_.at(buffer(at).index); break;
      case Space::thread_group:  // of the first thread group
        result.base = addresses_[static_cast<size_t>(buffer(at).base)] + buffer(at).offset;
        break;
      default: result.base = addresses_[static_cast<size_t>(at)];
    }
    return result;
  }
  std::optional<LaunchOperand> operand_or_none(int index) const {
    if (index < 0) return std::nullopt;
    return operand(index);
  }

  void loop(int id, const LoopPlan& plan) {
    for (const int cleared : plan.cleared)
      recorder_.clear(operand(cleared), buffer(cleared).bytes, true);
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
    ++depth_;
    range.index = operand_or_none(plan.index);
    range.stop = operand_or_none(plan.stop);
    recorder_.begin_loop(id, range);
    launches(plan.body);
    for (const LoopPlan::Carry& carry : plan.carries)
      recorder_.carry(operand(carry.from), operand(carry.to), buffer(carry.to).bytes);
    recorder_.end_loop();
    --depth_;
  }

  const Plan& plan_;
  BufferAddresses addresses_;
  Recorder& recorder_;
  std::map<int, int> batch_;      ///< graph input -> number among those of the batch
  std::map<int, size_t> depths_;  ///< slice -> depth of the loop that moves it
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
