#include "fullbore/device/cpu/codegen/jit_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/device/cpu/codegen/code_store.h"
#include "fullbore/device/cpu/codegen/epilogue.h"
#include "fullbore/device/cpu/codegen/jit_piece.h"
#include "fullbore/device/cpu/kernels/reference.h"
#include "fullbore/device/kernel_ir/loop_placement.h"
#include "fullbore/device/kernel_ir/lower.h"
#include "fullbore/device/kernel_ir/overlay.h"
#include "fullbore/device/kernel_ir/partition.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace jit {
namespace {

using Slots = std::vector<std::shared_ptr<const Slot>>;

bool have_code(const Slots& slots) {
  return std::ranges::all_of(slots, [](const auto& slot) { return slot->code != nullptr; });
}

class JitKernel : public CpuKernel {
 public:
  explicit JitKernel(const Graph& graph, const Node& node) : reference(graph, node) {}

  cpu::ReferenceCpuKernel reference;
  Slots slots;  // of all pieces
  std::vector<Piece> pieces;
  std::vector<Piece> in_place;  // instead, where in_place_input is in_place_output
  int in_place_input = -1;
  int in_place_output = -1;
  KernelWork work;
  std::vector<std::vector<bool>> aliases;  // per input, per output
  std::string text;

  int64_t scratch_each = 0;  // bytes per worker
  int scratch_buffer = 0;    // where the node's buffers end

  int64_t items() const override { return have_code(slots) ? count(pieces) : reference.items(); }
  int64_t scratch_bytes(int workers) const override { return scratch_each * workers; }
  double nanoseconds() const override { return work.nanoseconds(); }
  bool may_alias(int input, int output) const override {
    return aliases[static_cast<size_t>(input)][static_cast<size_t>(output)];
  }
  std::string description() const override { return text; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    if (!have_code(slots)) return reference.run(buffers, begin, end, worker);
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

/// A kernel that calls an epilogue. What it says of itself while it is planned holds for the reference too, which reads
/// all operands before it writes any.
class MatmulKernel final : public CpuKernel {
 public:
  MatmulKernel(std::unique_ptr<Kernel> made, std::shared_ptr<const Slot> slot, const Graph& graph,
               const Node& node)
      : made_(std::move(made)),
        kernel_(dynamic_cast<const CpuKernel&>(*made_)),
        slots_({std::move(slot)}),
        reference_(graph, node) {}

  int64_t items() const override {
    return have_code(slots_) ? kernel_.items() : reference_.items();
  }
  double nanoseconds() const override { return kernel_.nanoseconds(); }
  int64_t scratch_bytes(int workers) const override { return kernel_.scratch_bytes(workers); }
  bool may_alias(int input, int output) const override { return kernel_.may_alias(input, output); }
  std::string description() const override { return kernel_.description(); }
  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    if (have_code(slots_)) return kernel_.run(buffers, begin, end, worker);
    reference_.run(buffers, begin, end, worker);
  }

 private:
  std::unique_ptr<Kernel> made_;
  const CpuKernel& kernel_;
  Slots slots_;
  cpu::ReferenceCpuKernel reference_;
};

std::string describe(const Graph& graph, const Node& node) {
  return fmt::format("jit {} {}",
                     node.body ? ops_text(node.body->nodes()) : std::string(node.op->name),
                     graph.type(node.outputs[0]).text());
}

struct Planted {
  std::mutex mutex;
  std::string name;  // "": nothing
};

Planted& planted() {
  static Planted failure;
  return failure;
}

bool is_planted(const Node& node) {
  Planted& failure = planted();
  const std::lock_guard lock(failure.mutex);
  if (failure.name.empty()) return false;
  const auto is_named = [&](const Node& each) {
    return each.op->name == failure.name || each.scope == failure.name;
  };
  return is_named(node) || (node.body && std::ranges::any_of(node.body->nodes(), is_named));
}

}  // namespace
}  // namespace jit

std::string node_text(const Graph& graph, const Node& node) {
  const std::string ops =
      node.body ? jit::ops_text(node.body->nodes()) : std::string(node.op->name);
  return fmt::format("{} {}{}{}", ops, graph.type(node.outputs[0]).text(),
                     node.scope.empty() ? "" : " in ", node.scope);
}

PlantedCodeFailure::PlantedCodeFailure(std::string op_or_scope) {
  const std::lock_guard lock(jit::planted().mutex);
  FB_CHECK(jit::planted().name.empty(), "a failure is planted already");
  jit::planted().name = std::move(op_or_scope);
}

PlantedCodeFailure::~PlantedCodeFailure() {
  const std::lock_guard lock(jit::planted().mutex);
  jit::planted().name.clear();
}

bool can_lower(const Graph& graph, const Node& node, std::string* why_not) {
  return jit::lower(graph, node, why_not).has_value();
}

struct JitCompiler::Implementation {
  /// A node, by what a person reads of it, and the code that it needs.
  struct Request {
    KernelFallback node;
    jit::Slots slots;
  };
  jit::CodeStore* store;
  std::map<std::string, std::shared_ptr<jit::Slot>> slots;
  std::vector<Request> requests;
  JitStatistics statistics;
  bool row_invariant = false;

  std::shared_ptr<const jit::Slot> slot_of(const jit::KernelIr& kernel, bool fails) {
    std::string text = jit::text(kernel);
    std::shared_ptr<jit::Slot>& slot = slots[text];
    if (slot == nullptr)
      slot = std::make_shared<jit::Slot>(jit::Slot{std::move(text), kernel, nullptr, ""});
    if (fails && slot->code == nullptr) slot->problem = "a failure was planted";
    return slot;
  }

  void note(const Graph& graph, const Node& node, jit::Slots of_node) {
    ++statistics.nodes;
    requests.push_back({{node_text(graph, node), node.location, ""}, std::move(of_node)});
  }

  void settle_order(jit::KernelIr& kernel) const {
    kernel.one_order = row_invariant && jit::sums_along_lanes(kernel);
  }

  jit::Piece piece(jit::LoweredPiece lowered, bool fails) {
    FB_CHECK(lowered.buffers.size() <= jit::kMostBuffers, "{} buffers", lowered.buffers.size());
    const jit::Partition partition = jit::make_partition(lowered.kernel);
    jit::Piece result;
    result.items = partition.items;
    result.parameters = jit::parameters(lowered.kernel, partition);
    result.buffers = std::move(lowered.buffers);
    result.slot = slot_of(lowered.kernel, fails);
    return result;
  }
};

JitCompiler::JitCompiler(jit::CodeStore* store)
    : implementation_(
          new Implementation{store != nullptr ? store : &jit::CodeStore::instance(), {}, {}, {}}) {}

JitCompiler::~JitCompiler() = default;

const JitStatistics& JitCompiler::statistics() const { return implementation_->statistics; }

void JitCompiler::use_quick_code() { implementation_->store = &jit::CodeStore::instance(true); }

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
  const bool fails = jit::is_planted(node);
  auto kernel = std::make_unique<jit::JitKernel>(graph, node);
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
    kernel->pieces.push_back(implementation_->piece(std::move(piece), fails));
  }
  for (jit::LoweredPiece& piece : lowered->in_place_pieces)
    kernel->in_place.push_back(implementation_->piece(std::move(piece), fails));
  for (const auto* list : {&kernel->pieces, &kernel->in_place})
    for (const jit::Piece& piece : *list) kernel->slots.push_back(piece.slot);
  implementation_->note(graph, node, kernel->slots);
  implementation_->statistics.lower_seconds +=
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
  const std::shared_ptr<const jit::Slot> slot =
      implementation_->slot_of(epilogue->kernel(), jit::is_planted(node));
  epilogue->set_slot(slot);
  implementation_->note(graph, node, {slot});
  return epilogue;
}

std::unique_ptr<Kernel> JitCompiler::with_reference(std::unique_ptr<Kernel> made,
                                                    const Graph& graph, const Node& node) const {
  return std::make_unique<jit::MatmulKernel>(
      std::move(made), implementation_->requests.back().slots.front(), graph, node);
}

std::vector<KernelFallback> JitCompiler::fallbacks() const {
  std::vector<KernelFallback> nodes;
  for (const auto& [node, slots] : implementation_->requests) {
    const auto failed =
        std::ranges::find_if(slots, [](const auto& slot) { return slot->code == nullptr; });
    if (failed == slots.end()) continue;
    KernelFallback fallback = node;
    fallback.reason = (*failed)->problem;
    // A plan that is made once more asks for its kernels again.
    if (std::ranges::find(nodes, fallback) == nodes.end()) nodes.push_back(std::move(fallback));
  }
  return nodes;
}

void JitCompiler::finish() {
  std::vector<jit::CodeRequest> requests;
  std::vector<jit::Slot*> waiting;
  for (const auto& [text, slot] : implementation_->slots) {
    if (slot->code != nullptr || !slot->problem.empty()) continue;
    requests.push_back({text, &slot->kernel, nullptr, ""});
    waiting.push_back(slot.get());
  }
  const jit::CodeCounts counts = implementation_->store->provide(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    waiting[i]->code = requests[i].code;
    waiting[i]->problem = std::move(requests[i].problem);
  }
  JitStatistics& statistics = implementation_->statistics;
  statistics.kernels = static_cast<int>(implementation_->slots.size());
  statistics.from_memory += counts.from_memory;
  statistics.from_disk += counts.from_disk;
  statistics.compiled += counts.compiled;
  statistics.compile_seconds += counts.compile_seconds;
  statistics.load_seconds += counts.load_seconds;
  statistics.failed = static_cast<int>(std::ranges::count_if(
      implementation_->slots, [](const auto& entry) { return entry.second->code == nullptr; }));
}

}  // namespace fullbore
