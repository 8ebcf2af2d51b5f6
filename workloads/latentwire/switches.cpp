#include "workloads/latentwire/switches.h"

#include <algorithm>

namespace fullbore::latentwire {
namespace {

using Modes = LatentKeys::Switches;

// What makes one kernel of an update's operations. Every other sum of a step is as it was.
constexpr const char* kFusingPasses[] = {"fuse"};

void set_loader(Config& config, bool on) {
  config.data.workers = on ? std::max<int64_t>(1, config.data.workers) : 0;
}
void set_accumulation(Config& config, bool on) {
  config.engine.accumulate = on ? std::max<int64_t>(2, config.engine.accumulate) : 1;
}
void set_parallel(Config& config, bool on) {
  config.engine.parallel_microbatches =
      on ? std::max<int64_t>(2, config.engine.parallel_microbatches) : 1;
}
void set_precision(Config& config, bool on) { config.engine.precision = on ? "bf16" : "fp32"; }
void set_recompute(Config& config, bool on) { config.engine.recompute = on ? "full" : "off"; }
void set_attention(Config& config, bool on) {
  config.engine.attention = on ? "tiled" : "decomposed";
}
void set_teacher_cache(Config& config, bool on) {
  std::string& kept = config.get<LatentKeys>().loss.teacher_cache;
  if (!on)
    kept = "off";
  else if (kept == "off")
    kept = "f32";
}
void set_fusion(Config& config, bool on) {
  std::vector<std::string>& disabled = config.engine.disabled_passes;
  for (const char* pass : kFusingPasses) {
    std::erase(disabled, pass);
    if (!on) disabled.emplace_back(pass);
  }
}

constexpr Switch kSwitches[] = {
    {1, "non_blocking_transfers",
     "a CPU step reads batches where they lie: there is nothing to transfer"},
    {2, "loader_workers", "threads prepare batches ahead (data.workers, data.prefetch)",
     &Modes::loader_workers, set_loader},
    {3, "token_cache", "questions of a file are tokenized in the first epoch alone",
     &Modes::token_cache},
    {4, "gradient_accumulation", "parts of a batch add to one gradient (engine.accumulate)",
     &Modes::gradient_accumulation, set_accumulation},
    {5, "batch_size", "train.batch_size=auto: the largest whose plan fits engine.memory_budget"},
    {6, "one_pass", "the first K tokens are places of one pass", &Modes::one_pass},
    {7, "mixed_precision", "bf16 matmuls and activations (engine.precision)",
     &Modes::mixed_precision, set_precision},
    {8, "kv_reuse", "answers are written over a cache; a step has nothing that it could reuse"},
    {9, "fused_optimizer", "one kernel an update (the pass fuse)", &Modes::fused_optimizer,
     set_fusion},
    {10, "recompute", "activations are made again for the gradient (engine.recompute)",
     &Modes::recompute, set_recompute},
    {11, "tiled_attention", "no matrix of queries by keys (engine.attention)",
     &Modes::tiled_attention, set_attention},
    {12, "length_buckets", "answers are padded to the batch's longest", &Modes::length_buckets},
    {13, "zero",
     "not offered: what is trained takes a hundredth of the frozen weights, and those have no "
     "optimizer state"},
    {14, "cache_clearing",
     "not offered: a step's memory is one arena, planned before it and constant"},
    {15, "teacher_cache", "the teacher's states are kept in files (loss.teacher_cache)",
     &Modes::teacher_cache, set_teacher_cache},
    {16, "head_rows", "logits of needed places alone, a tile at a time", &Modes::head_rows},
    {17, "data_parallel", "parts of a batch side by side (engine.parallel_microbatches)",
     &Modes::data_parallel, set_parallel},
};

constexpr int kRollout[] = {6, 16, 12, 15, 3, 2, 4, 9, 7, 10, 11};

}  // namespace

std::span<const Switch> all_switches() { return kSwitches; }

std::vector<const Switch*> rollout() {
  std::vector<const Switch*> order;
  for (const int number : kRollout) {
    const Switch& each = kSwitches[number - 1];
    if (each.has_two_paths()) order.push_back(&each);
  }
  return order;
}

void set_switch(Config& config, const Switch& each, bool on) {
  std::string& mode = config.get<LatentKeys>().switches.*each.mode;
  if (each.set_engine == nullptr) {
    mode = on ? "on" : "off";
    return;
  }
  each.set_engine(config, on);
  mode = "as_set";
}

void settle_engine_switches(Config& config) {
  for (const Switch& each : all_switches()) {
    if (each.set_engine == nullptr) continue;
    const std::string mode = config.get<LatentKeys>().switches.*each.mode;
    if (mode == "on" || mode == "off") set_switch(config, each, mode == "on");
  }
}

}  // namespace fullbore::latentwire
