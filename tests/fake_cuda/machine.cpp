#include "tests/fake_cuda/machine.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace fullbore::fake_cuda {
namespace {

// "seed=3,fail_call=cuMemAlloc_v2": fields of FakeCuda.
void read_environment(FakeCuda& told) {
  const char* const text = std::getenv("FULLBORE_FAKE_CUDA");
  std::string_view left = text == nullptr ? "" : text;
  const std::pair<std::string_view, int64_t*> numbers[] = {
      {"version", &told.version},
      {"start", &told.start},
      {"cards", &told.cards},
      {"capability", &told.capability},
      {"multiprocessors", &told.multiprocessors},
      {"shared_bytes", &told.shared_bytes},
      {"memory_bytes", &told.memory_bytes},
      {"compiler", &told.compiler},
      {"lt_version", &told.lt_version},
      {"lt_smallest", &told.lt_smallest},
      {"fail_at", &told.fail_at},
      {"fail_code", &told.fail_code}};
  while (!left.empty()) {
    const std::string_view item = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), item.size() + 1));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) std::abort();
    const std::string_view name = item.substr(0, equals), value = item.substr(equals + 1);
    bool known = false;
    for (const auto& [field, place] : numbers)
      if (field == name)
        known = std::from_chars(value.begin(), value.end(), *place).ec == std::errc();
    if (name == "seed")
      known = std::from_chars(value.begin(), value.end(), told.seed).ec == std::errc();
    if (name == "fail_call") {
      known = value.size() < sizeof told.fail_call;
      std::memcpy(told.fail_call, value.data(), known ? value.size() : 0);
    }
    if (!known) std::abort();
  }
}

}  // namespace

Machine& machine() {
  static Machine* const only = new Machine;  // lives until the process ends, as a driver does
  return *only;
}

Machine::Machine() { read_environment(told); }

// splitmix64.
uint64_t Machine::random() {
  uint64_t x = drawn += 0x9e3779b97f4a7c15 + told.seed;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

OperationPointer Machine::enqueue(Stream& stream, std::function<void()> make,
                                  const OperationPointer& also, const char* name) {
  if (stream.captured) {
    std::vector<GraphNode>& nodes = stream.captured->nodes;
    GraphNode node{.name = name, .make = std::move(make)};
    node.is_lost = node.name == told.lose_nodes;
    told.lost_in_graphs += node.is_lost ? 1 : 0;
    if (!nodes.empty()) node.before.push_back(nodes.size() - 1);
    nodes.push_back(std::move(node));
    return {};
  }
  auto operation = std::make_shared<Operation>();
  operation->make = std::move(make);
  if (stream.last && !stream.last->is_made) operation->before.push_back(stream.last);
  if (also && !also->is_made) operation->before.push_back(also);
  stream.last = operation;
  waiting_.push_back(operation);
  if (told.seed != 0)
    make_some();
  else if (waiting_.size() > 4096)
    forget_made();
  return operation;
}

void Machine::make(Operation& operation) {
  operation.is_made = true;
  if (lost == 0 && operation.make) operation.make();
  operation.make = {};
  operation.before.clear();
  operation.made_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::steady_clock::now().time_since_epoch())
                          .count();
}

void Machine::complete(const OperationPointer& operation) {
  if (!operation) return;
  std::vector<OperationPointer> way = {operation};
  while (!way.empty()) {
    const OperationPointer next = way.back();
    bool is_ready = true;
    if (!next->is_made)
      for (const OperationPointer& each : next->before)
        if (!each->is_made) {
          way.push_back(each);
          is_ready = false;
        }
    if (!is_ready) continue;
    if (!next->is_made) make(*next);
    way.pop_back();
  }
}

void Machine::complete_all() {
  // Those waited for last come first, which nothing forbids.
  for (const std::weak_ptr<Operation>& each : std::exchange(waiting_, {})) complete(each.lock());
}

void Machine::forget_made() {
  std::erase_if(waiting_, [](const std::weak_ptr<Operation>& each) {
    const OperationPointer operation = each.lock();
    return !operation || operation->is_made;
  });
}

// What could happen by now, some of it.
void Machine::make_some() {
  forget_made();
  for (uint64_t times = random() % 4; times > 0 && !waiting_.empty(); --times) {
    const OperationPointer operation = waiting_[random() % waiting_.size()].lock();
    if (operation) complete(operation);
  }
}

void Machine::begin_conditions(const Graph& graph) {
  for (const GraphNode& node : graph.nodes) {
    if (!node.body) continue;
    condition_values_[node.body->condition] =
        node.body->at_launch ? *node.body->at_launch : static_cast<uint32_t>(random() % 2);
    begin_conditions(*node.body->graph);
  }
}

void Machine::make_graph(const Graph& graph) {
  begin_conditions(graph);
  make_nodes(graph.nodes);
  condition_values_.clear();
}

bool Machine::set_condition(uint64_t condition, uint32_t value) {
  const auto found = condition_values_.find(condition);
  if (found == condition_values_.end()) return false;
  found->second = value;
  return true;
}

void Machine::make_nodes(const std::vector<GraphNode>& nodes) {
  std::vector<size_t> missing(nodes.size());
  std::vector<std::vector<size_t>> behind(nodes.size());
  std::vector<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].before.size();
    for (const size_t before : nodes[i].before) behind[before].push_back(i);
    if (missing[i] == 0) ready.push_back(i);
  }
  while (!ready.empty() && lost == 0) {
    if (told.seed != 0) std::swap(ready[random() % ready.size()], ready.back());
    const size_t next = ready.back();  // of those that came last the first: not as they were added
    ready.pop_back();
    const GraphNode& node = nodes[next];
    if (node.body && !node.is_lost && condition_values_.at(node.body->condition) != 0) {
      ++told.conditional_bodies;
      make_nodes(node.body->graph->nodes);
    } else if (node.child && !node.is_lost) {
      make_nodes(node.child->nodes);
    } else if (node.make && !node.is_lost) {
      node.make();
    }
    for (const size_t each : behind[next])
      if (--missing[each] == 0) ready.push_back(each);
  }
}

bool Machine::is_pinned(const void* memory, size_t bytes) const {
  auto block = pinned.upper_bound(memory);
  if (block == pinned.begin()) return false;
  --block;
  const auto* const begin = static_cast<const std::byte*>(block->first);
  return static_cast<const std::byte*>(memory) + bytes <= begin + block->second;
}

void Machine::fail(int code, const std::string& what) {
  lost = code;
  std::strncpy(told.fault, what.c_str(), sizeof told.fault - 1);
}

}  // namespace fullbore::fake_cuda
