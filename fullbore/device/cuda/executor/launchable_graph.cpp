#include "fullbore/device/cuda/executor/launchable_graph.h"

#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/device/cuda/executor/library_calls.h"

namespace fullbore::cuda {

OwnedGraph::OwnedGraph(std::shared_ptr<Context> context) : context_(std::move(context)) {
  context_->enter().make_graph(&handle_, 0);
}
OwnedGraph::~OwnedGraph() {
  if (const Driver* const driver = context_->enter_to_destroy())
    driver->destroy_graph.attempt(handle_);
}

LaunchableGraph::LaunchableGraph(std::shared_ptr<Context> context, GraphContents contents,
                                 bool moves)
    : context_(std::move(context)), kernel_nodes_(context_) {
  context_->enter().instantiate_graph(&handle_, contents.graph->get(), 0);
  FB_CHECK(!moves || !contents.has_conditional_nodes, "a graph with conditional nodes moves");
  // The driver keeps the bodies of conditional nodes as long as their graph.
  if (contents.has_conditional_nodes) contents_.graph = std::move(contents.graph);
  if (!moves) return;
  contents_ = std::move(contents);
  made_of_.resize(contents_.nodes.size());
  for (size_t i = 0; i < contents_.made.size(); ++i)
    for (const int member : contents_.made[i].members) made_of_[static_cast<size_t>(member)] = i;
}
LaunchableGraph::~LaunchableGraph() {
  if (const Driver* const driver = context_->enter_to_destroy())
    driver->destroy_graph_exec.attempt(handle_);
}

LaunchSink& LaunchableGraph::begin() {
  next_ = 0;
  return *this;
}

// The node that the program has next, of which something will change.
NodeContent& LaunchableGraph::next() {
  FB_CHECK(next_ < contents_.nodes.size(), "a graph of {} nodes is told of more",
           contents_.nodes.size());
  return contents_.nodes[next_++];
}

void LaunchableGraph::kernel(const LoadedKernel& kernel, std::span<const Place> operands) {
  if (kernel.is_empty()) return;
  const size_t made = made_of_[next_];
  auto& call = std::get<KernelCall>(next());
  FB_CHECK(call.kernel == &kernel, "a graph of '{}' is told of '{}'", call.kernel->node->node(),
           kernel.node->node());
  bool is_other = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    is_other |= call.operands[i].address.value != operands[i].address.value;
    call.operands[i].address = operands[i].address;
  }
  if (!is_other || std::exchange(contents_.made[made].is_changed, true)) return;
  changed_.push_back(made);
}

void LaunchableGraph::copy(const Place& from, const Place& to, int64_t bytes) {
  for (const CopyNode& copy : copy_nodes(*context_, from.address, to.address, bytes)) {
    const size_t made = made_of_[next_];
    auto& known = std::get<CopyNode>(next());
    if (known.from.device == copy.from.device && known.to.device == copy.to.device) continue;
    known = copy;
    changed_.push_back(made);
  }
}

void LaunchableGraph::set_fill(const FillNode& fill) {
  const size_t made = made_of_[next_];
  auto& known = std::get<FillNode>(next());
  if (known.to == fill.to && known.value == fill.value) return;
  known = fill;
  changed_.push_back(made);
}

void LaunchableGraph::clear(const Place& to, int64_t bytes) {
  if (bytes > 0) set_fill(fill_node(to.address, 0, 1, bytes));
}

void LaunchableGraph::set_number(const Place& to, int64_t value) {
  for (const FillNode& each : number_nodes(to.address, value)) set_fill(each);
}

int64_t LaunchableGraph::number(const Place&, int64_t) {
  FB_CHECK(false, "a graph does not know what a number in memory will be");
  return 0;
}

void LaunchableGraph::graph(LaunchableGraph&, int, int) {
  FB_CHECK(false, "a graph has no graphs in it");
}

void LaunchableGraph::set(const Driver& driver, const GraphContents::Made& made) {
  const NodeContent& first = contents_.nodes[static_cast<size_t>(made.members.front())];
  if (const auto* const copy = std::get_if<CopyNode>(&first))
    return driver.set_copy(handle_, made.handles.front(), copy, context_->handle());
  if (const auto* const fill = std::get_if<FillNode>(&first))
    return driver.set_fill(handle_, made.handles.front(), fill, context_->handle());
  calls_.clear();
  for (const int member : made.members)
    calls_.push_back(&std::get<KernelCall>(contents_.nodes[static_cast<size_t>(member)]));
  const LoadedKernel& kernel = *calls_.front()->kernel;
  for (size_t i = 0; i < kernel.launches.size(); ++i)
    driver.set_kernel(handle_, made.handles[i],
                      made.kind == nullptr ? &kernel_nodes_.alone(*calls_.front(), i)
                                           : &kernel_nodes_.merged(calls_, *made.kind, i));
  // The same algorithm makes the same nodes, which the driver asks for.
  if (kernel.node->library() != nullptr)
    driver.set_graph(handle_, made.handles.back(), captured_call(context_, *calls_.front())->get());
}

void LaunchableGraph::launch(StreamHandle stream) {
  const Driver& driver = context_->enter();
  for (const size_t made : changed_) {
    set(driver, contents_.made[made]);
    contents_.made[made].is_changed = false;
  }
  changed_.clear();
  driver.launch_graph(handle_, stream);
}

}  // namespace fullbore::cuda
