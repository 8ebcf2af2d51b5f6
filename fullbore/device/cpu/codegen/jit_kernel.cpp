#include "fullbore/device/cpu/codegen/jit_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "fullbore/base/check.h"
#include "fullbore/device/cpu/codegen/code_store.h"
#include "fullbore/device/cpu/codegen/epilogue.h"
#include "fullbore/device/cpu/codegen/jit_piece.h"
#include "fullbore/device/kernel_ir/loop_placement.h"
#include "fullbore/device/kernel_ir/lower.h"
#include "fullbore/device/kernel_ir/partition.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace jit {
namespace {

class JitKernel : public CpuKernel {
 public:
  std::vector<Piece> pieces;
  std::vector<Piece> in_place;  // instead, where in_place_input is in_place_output
  int in_place_input = -1;
  int in_place_output = -1;
  KernelWork work;
  std::vector<std::vector<bool>> aliases;  // per input, per output
  std::string text;

  int64_t scratch_each = 0;  // bytes per worker
  int scratch_buffer = 0;    // where the node's buffers end

  int64_t items() const override { return count(pieces); }
  int64_t scratch_bytes(int workers) const override { return scratch_each * workers; }
  double nanoseconds() const override { return work.nanoseconds(); }
  bool may_alias(int input, int output) const override {
    return aliases[static_cast<size_t>(input)][static_cast<size_t>(output)];
  }
  std::string description() const override { return text; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    if (in_place.empty() || buffers[in_place_input] != buffers[in_place_output]) {
      char* scratch = scratch_each == 0 ? nullptr : static_cast<char*>(buffers[scratch_buffer]);
      run_range(pieces, buffers, scratch + scratch_each * worker, begin, end);
      return;
    }
    const int64_t all = count(pieces);
    const int64_t fewer = count(in_place);
    run_range(in_place, buffers, nullptr, fewer * begin / all, fewer * end / all);
  }

 private:
  static int64_t count(const std::vector<Piece>& list) {
    int64_t sum = 0;
    for (const Piece& piece : list) sum += piece.items;
    return sum;
  }
  // Items of all pieces, one after the other.
  static void run_range(const std::vector<Piece>& list, void* const* buffers, void* scratch,
                        int64_t begin, int64_t end) {
    for (const Piece& piece : list) {
      const int64_t from = std::max<int64_t>(begin, 0);
      const int64_t to = std::min(end, piece.items);
      if (from < to) piece.run(buffers, scratch, from, to);
      begin -= piece.items;
      end -= piece.items;
    }
  }
};

std::string describe(const Graph& graph, const Node& node) {
  return fmt::format("jit {} {}",
                     node.body ? ops_text(node.body->nodes()) : std::string(node.op->name),
                     graph.type(node.outputs[0]).text());
}

}  // namespace
}  // namespace jit

bool can_lower(const Graph& graph, const Node& node, std::string* why_not) {
  return jit::lower(graph, node, why_not).has_value();
}

struct JitCompiler::Implementation {
  jit::CodeStore* store;
  std::map<std::string, std::shared_ptr<jit::Slot>> slots;
  JitStatistics statistics;
  bool row_invariant = false;

  std::shared_ptr<const jit::Slot> slot_of(const jit::KernelIr& kernel) {
    std::string text = jit::text(kernel);
    std::shared_ptr<jit::Slot>& slot = slots[text];
    if (slot == nullptr)
      slot = std::make_shared<jit::Slot>(jit::Slot{std::move(text), kernel, nullptr});
    return slot;
  }

  void settle_order(jit::KernelIr& kernel) const {
    kernel.one_order = row_invariant && jit::sums_along_lanes(kernel);
  }

  jit::Piece piece(jit::LoweredPiece lowered) {
    FB_CHECK(lowered.buffers.size() <= jit::kMostBuffers, "{} buffers", lowered.buffers.size());
    const jit::Partition partition = jit::make_partition(lowered.kernel);
    jit::Piece result;
    result.items = partition.items;
    result.parameters = jit::parameters(lowered.kernel, partition);
    result.buffers = std::move(lowered.buffers);
    result.slot = slot_of(lowered.kernel);
    return result;
  }
};

JitCompiler::JitCompiler(jit::CodeStore* store)
    : implementation_(
          new Implementation{store != nullptr ? store : &jit::CodeStore::instance(), {}, {}}) {}

JitCompiler::~JitCompiler() = default;

const JitStatistics& JitCompiler::statistics() const { return implementation_->statistics; }

void JitCompiler::set_row_invariant(bool on) { implementation_->row_invariant = on; }

std::unique_ptr<Kernel> JitCompiler::add(const Graph& graph, const Node& node, int,
                                         std::string* why_not) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<jit::LoweredNode> lowered = jit::lower(graph, node, why_not);
  if (!lowered) return nullptr;
  for (const auto* list : {&lowered->pieces, &lowered->in_place_pieces})
    for (const jit::LoweredPiece& piece : *list)
      if (piece.buffers.size() > jit::kMostBuffers) {
        if (why_not != nullptr) *why_not = "it has too many operands";
        return nullptr;
      }
  for (auto* list : {&lowered->pieces, &lowered->in_place_pieces})
    for (jit::LoweredPiece& piece : *list) implementation_->settle_order(piece.kernel);
  auto kernel = std::make_unique<jit::JitKernel>();
  const auto inputs = static_cast<int>(node.inputs.size());
  kernel->aliases.assign(node.inputs.size(), std::vector<bool>(node.outputs.size(), false));
  for (int i = 0; lowered->pieces.size() == 1 && i < inputs; ++i)
    for (int o = 0; o < static_cast<int>(node.outputs.size()); ++o)
      kernel->aliases[static_cast<size_t>(i)][static_cast<size_t>(o)] =
          jit::overlays(lowered->pieces[0], i, inputs + o);
  kernel->text = jit::describe(graph, node);
  kernel->in_place_input = lowered->in_place_input;
  kernel->in_place_output = inputs;
  kernel->scratch_buffer = inputs + static_cast<int>(node.outputs.size());
  for (jit::LoweredPiece& piece : lowered->pieces) {
    const jit::KernelWork work = jit::kernel_work(piece.kernel);
    kernel->work.flops += work.flops;
    kernel->work.bytes += work.bytes;
    kernel->scratch_each = std::max(kernel->scratch_each, jit::scratch_bytes(piece.kernel));
    kernel->pieces.push_back(implementation_->piece(std::move(piece)));
  }
  for (jit::LoweredPiece& piece : lowered->in_place_pieces)
    kernel->in_place.push_back(implementation_->piece(std::move(piece)));
  JitStatistics& statistics = implementation_->statistics;
  ++statistics.nodes;
  statistics.lower_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return kernel;
}

std::unique_ptr<Epilogue> JitCompiler::add_epilogue(const Graph& graph, const Node& node,
                                                    std::string* why_not) {
  std::optional<jit::LoweredPiece> lowered = jit::lower_epilogue(graph, node, why_not);
  if (!lowered) return nullptr;
  if (lowered->buffers.size() > jit::kMostBuffers) {
    if (why_not != nullptr) *why_not = "it has too many operands";
    return nullptr;
  }
  implementation_->settle_order(lowered->kernel);
  auto epilogue = std::make_unique<Epilogue>(node, std::move(*lowered));
  epilogue->set_slot(implementation_->slot_of(epilogue->kernel()));
  ++implementation_->statistics.nodes;
  return epilogue;
}

void JitCompiler::finish() {
  std::vector<jit::CodeRequest> requests;
  std::vector<jit::Slot*> waiting;
  for (const auto& [text, slot] : implementation_->slots) {
    if (slot->code != nullptr) continue;
    requests.push_back({text, &slot->kernel, nullptr});
    waiting.push_back(slot.get());
  }
  const jit::CodeCounts counts = implementation_->store->provide(requests);
  for (size_t i = 0; i < requests.size(); ++i) waiting[i]->code = requests[i].code;
  JitStatistics& statistics = implementation_->statistics;
  statistics.kernels = static_cast<int>(implementation_->slots.size());
  statistics.from_memory += counts.from_memory;
  statistics.from_disk += counts.from_disk;
  statistics.compiled += counts.compiled;
  statistics.compile_seconds += counts.compile_seconds;
  statistics.load_seconds += counts.load_seconds;
}

}  // namespace fullbore
