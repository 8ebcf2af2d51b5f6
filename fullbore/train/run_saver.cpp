#include "fullbore/train/run_saver.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace fullbore {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr int64_t kPage = 4096;
constexpr int64_t kBlock = int64_t{2} << 20;  // one of the pages that State asks for

const char* group_of(Role role) {
  switch (role) {
    case Role::parameter:
    case Role::frozen: return "weights";
    case Role::average: return "averages";
    default: return "optimizer";
  }
}

}  // namespace

Compression compression(std::string_view name) {
  if (name == "optimizer") return Compression::optimizer;
  if (name == "all") return Compression::all;
  FB_CHECK(name == "none", "no compression '{}'", name);
  return Compression::none;
}

std::vector<TensorGroup> tensor_groups(const State& state, Compression compression) {
  std::vector<TensorGroup> groups;
  for (const char* name : {"weights", "averages", "optimizer"}) {
    TensorGroup group{name, {}, compression == Compression::all};
    if (group.name == "optimizer") group.packed |= compression == Compression::optimizer;
    for (size_t i = 0; i < state.entries().size(); ++i) {
      const StateEntry& entry = state.entries()[i];
      if (group_of(entry.role) == group.name)
        group.tensors.push_back({entry.name, entry.type, state.data(static_cast<int>(i))});
    }
    if (!group.tensors.empty() || group.name != "averages") groups.push_back(std::move(group));
  }
  return groups;
}

RunSaver::RunSaver(CheckpointStore& store, const State& state, Team& team, SaveOptions options)
    : store_(store), state_(state), team_(team), options_(options) {
  if (options_.background) snapshot_ = State(state.entries());
}

void RunSaver::take_snapshot() {
  for (size_t i = 0; i < state_.arenas().size(); ++i) {
    const State::Arena& from = state_.arenas()[i];
    const State::Arena& to = snapshot_.arenas()[i];
    team_.parallel_for((from.bytes + kBlock - 1) / kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * kBlock; at < std::min(end * kBlock, from.bytes); at += kBlock) {
        const int64_t bytes = std::min(kBlock, from.bytes - at);
        // Before the first step most of State is zero, as the snapshot is: no page is met for that.
        if (saves_ > 0 || !is_zero(from.data + at, bytes))
          std::memcpy(to.data + at, from.data + at, static_cast<size_t>(bytes));
      }
    });
  }
}

/// The pages that take_snapshot() left out, so that the loop does not wait for them at the next save.
void RunSaver::meet_snapshot() {
  for (const State::Arena& arena : snapshot_.arenas())
    for (int64_t at = 0; at < arena.bytes && !wanted_; at += kPage) meet_page(arena.data + at);
}

void RunSaver::save(const RunRecord& record, bool best, std::function<Status()> before) {
  const auto start = std::chrono::steady_clock::now();
  finish();
  if (options_.background) take_snapshot();
  const State& source = options_.background ? snapshot_ : state_;
  auto write = [this, &source, best, before = std::move(before), step = record.step,
                texts = to_texts(record)]() -> Status {
    if (before)
      if (Status status = before(); !status.ok()) return status;
    return store_.save(step, {tensor_groups(source, options_.compression), texts}, best);
  };
  if (options_.background)
    task_.start([this, first = saves_ == 0, write = std::move(write)] {
      Status status = write();
      if (first && status.ok()) meet_snapshot();
      return status;
    });
  else
    write().take_or_throw();
  ++saves_;
  stall_seconds_ += seconds_since(start);
}

void RunSaver::finish() {
  wanted_ = true;
  task_.wait().take_or_throw();
  wanted_ = false;
}

void RunSaver::check() {
  if (task_.pending() && !task_.running()) finish();
}

}  // namespace fullbore
