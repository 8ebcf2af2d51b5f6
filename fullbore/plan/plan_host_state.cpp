// State in the host's memory: where the arena has it meanwhile, and where the copies stand.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/plan/planner.h"

namespace fullbore {
namespace {

// What copies may take of the arena beyond what it has anyway: an eighth of what lies in the host's memory, and no more
// than this.
constexpr int64_t kMostExtraBytes = int64_t{128} << 20;
constexpr int64_t kExtraShare = 8;

}  // namespace

// Readers and writers of the value have its place in the arena; State's own is for copies alone.
void Planner::stage_host_state(Level& level) {
  for (size_t i = 0; i < plan_.graph.inputs().size(); ++i) {
    if (!plan_.buffers[i].in_host) continue;
    const Graph::Input& input = plan_.graph.inputs()[i];
    const int staged =
        new_buffer(Space::arena, plan_.buffers[i].bytes, fmt::format("staged {}", input.name));
    host_entries_.push_back(
        {.input = static_cast<int>(i), .host = static_cast<int>(i), .staged = staged});
    level.bind(input.value, staged, true);
  }
}

// Null: that input is no State in the host's memory.
Planner::HostEntry* Planner::host_entry(int input) {
  const auto found = std::ranges::find(host_entries_, input, &HostEntry::input);
  return found == host_entries_.end() ? nullptr : &*found;
}

void Planner::read_from_host(const Level& level, const std::vector<Value>& values) {
  if (host_entries_.empty() || !is_whole(level)) return;
  for (const Value value : values) {
    const int buffer = level.buffer_of(value);
    const auto entry = std::ranges::find(host_entries_, buffer, &HostEntry::staged);
    if (entry == host_entries_.end() || entry->is_read) continue;
    entry->is_read = true;
    host_copies_.push_back(
        {.from = entry->host, .to = entry->staged, .before = level.launches.size()});
    lifetimes_[static_cast<size_t>(buffer)].first = clock_;
    lifetimes_[static_cast<size_t>(buffer)].last = clock_;
  }
}

// What the node made of State in the host's memory goes there at once, unless somebody has yet to read the old value there.
void Planner::write_to_host(const Level& level, const Node& node) {
  if (host_entries_.empty() || !is_whole(level)) return;
  for (const Graph::Output& output : level.graph.outputs()) {
    if (std::ranges::find(node.outputs, level.root_of(output.value)) == node.outputs.end())
      continue;
    HostEntry* const entry = host_entry(output.updates);
    if (entry == nullptr || entry->is_written) continue;
    const Value slot = level.graph.inputs()[static_cast<size_t>(entry->input)].value;
    if (level.last_read_of(slot) >= 0 && !entry->is_read) continue;
    entry->is_written = true;
    host_copies_.push_back({.from = level.buffer_of(output.value),
                            .to = entry->host,
                            .before = level.launches.size()});
  }
}

// What remains: values that no node makes, other State's for example, and results that are State of the host.
void Planner::finish_host_state(Level& level) {
  for (const Graph::Output& output : level.graph.outputs()) {
    HostEntry* const entry = host_entry(output.updates);
    const Value root = level.root_of(output.value);
    if (entry != nullptr && entry->is_written) continue;
    if (entry != nullptr && root == level.graph.inputs()[static_cast<size_t>(entry->input)].value)
      continue;  // it stays as it is
    read_from_host(level, {root});
    touch(level.buffer_of(root), clock_);
    if (entry == nullptr) continue;
    entry->is_written = true;
    host_copies_.push_back({.from = level.buffer_of(root),
                            .to = entry->host,
                            .before = level.launches.size(),
                            .is_last = true});
  }
  for (const HostEntry& entry : host_entries_) {
    if (entry.is_read) continue;
    plan_.buffers[static_cast<size_t>(entry.staged)].bytes = 0;  // nobody looks at it
    lifetimes_[static_cast<size_t>(entry.staged)].bytes = 0;
  }
}

// A loop's begins with the copies of what it carries.
void Planner::note_launches(const Level& level, int begin) {
  if (is_whole(level)) begins_.resize(level.launches.size(), begin);
}

// Copies stand where they have to, and then as far from there as the arena holds it: what activations no longer take, or
// do not take yet, has moments in it that are on their way. The last ones to the host go on beside the next replay.
int64_t Planner::place_with_host_copies() {
  const int64_t least = place(Space::arena, -1);
  if (host_copies_.empty()) return least;
  const std::vector<Lifetime> lifetimes = lifetimes_;
  const std::vector<HostCopy> copies = host_copies_;
  const int64_t extra =
      options_.late_reuse ? std::min(kMostExtraBytes, plan_.host_bytes / kExtraShare) : 0;
  // Live bytes are what the arena would take without gaps.
  for (const int64_t share : {4, 2, 1, 0}) {
    lifetimes_ = lifetimes;
    host_copies_ = copies;
    first_waiting_ = 0;
    if (share > 0) spread_host_copies(least + extra, share);
    const int64_t bytes = place(Space::arena, -1);
    if (bytes > least + extra && share > 0) continue;
    insert_host_copies();
    return bytes;
  }
  FB_CHECK(false, "copies of the host's State have no place");
}

// Up to where copies of the replay before may go on: the later, the more time they have, and the less of the arena is free
// of activations until then. Where both together are the most.
void Planner::choose_first_waiting(const std::vector<int64_t>& room) {
  int64_t written = 0;
  int end = clock_;  // no copy of this replay has begun before it
  for (const HostCopy& copy : host_copies_) {
    const bool to_host = plan_.buffers[static_cast<size_t>(copy.to)].in_host;
    const auto on_device = static_cast<size_t>(to_host ? copy.from : copy.to);
    if (plan_.buffers[on_device].space != Space::arena) continue;
    if (to_host) written += aligned(plan_.buffers[on_device].bytes);
    end = std::min(end, lifetimes_[on_device].first);
  }
  first_waiting_ = 0;
  double best = 0;
  int64_t least = written;
  for (size_t i = 1; i < begins_.size() && begins_[i] <= end; ++i) {
    for (int t = begins_[i - 1]; t < begins_[i]; ++t)
      least = std::min(least, room[static_cast<size_t>(t)]);
    const double hidden = static_cast<double>(least) * begins_[i];
    if (begins_[i] == begins_[i - 1] || hidden <= best) continue;
    best = hidden;
    first_waiting_ = i;
  }
}

// `share`: of what is free at a moment, in quarters.
void Planner::spread_host_copies(int64_t allowed_bytes, int64_t share) {
  std::vector<int64_t> room(static_cast<size_t>(clock_) + 1, 0);
  for (size_t i = 0; i < plan_.buffers.size(); ++i)
    if (plan_.buffers[i].space == Space::arena)
      for (int t = lifetimes_[i].first; t <= std::min(lifetimes_[i].last, clock_); ++t)
        room[static_cast<size_t>(t)] += aligned(plan_.buffers[i].bytes);
  for (int64_t& each : room) each = std::max<int64_t>(0, allowed_bytes - each) * share / 4;
  // Does it fit at all of these moments? Then they have less room.
  const auto take = [&](int first, int last, int64_t bytes) {
    const auto begin = room.begin() + first, end = room.begin() + last + 1;
    if (std::any_of(begin, end, [&](int64_t free) { return free < bytes; })) return false;
    std::for_each(begin, end, [&](int64_t& free) { free -= bytes; });
    return true;
  };
  choose_first_waiting(room);
  // Those that are read first come first.
  for (HostCopy& copy : host_copies_) {
    if (!plan_.buffers[static_cast<size_t>(copy.from)].in_host) continue;
    Lifetime& staged = lifetimes_[static_cast<size_t>(copy.to)];
    while (copy.before > first_waiting_) {
      const int begin = begins_[copy.before - 1];
      if (begin < staged.first && !take(begin, staged.first - 1, aligned(staged.bytes))) break;
      staged.first = std::min(staged.first, begin);
      --copy.before;
    }
  }
  // Those that are written last have the least of this replay left.
  const int again = first_waiting_ > 0 ? begins_[first_waiting_] - 1 : -1;
  for (size_t i = host_copies_.size(); i-- > 0;) {
    HostCopy& copy = host_copies_[i];
    if (!plan_.buffers[static_cast<size_t>(copy.to)].in_host ||
        plan_.buffers[static_cast<size_t>(copy.from)].space != Space::arena)
      continue;
    Lifetime& made = lifetimes_[static_cast<size_t>(copy.from)];
    while (made.last < clock_ && take(made.last + 1, made.last + 1, aligned(made.bytes)))
      ++made.last;
    if (again < 0 || made.last < clock_) continue;
    copy.is_behind = made.again == again || take(0, again, aligned(made.bytes));
    if (copy.is_behind) made.again = again;
  }
}

// At one place those to the host come first, for their bytes may be those of what is brought there; but for those that
// have waited for what is read there. What goes on beside the next replay is the end.
void Planner::insert_host_copies() {
  std::vector<PlannedLaunch> launches;
  const auto add = [&](const HostCopy& copy) {
    PlannedLaunch& launch = launches.emplace_back();
    launch.kind = PlannedLaunch::Kind::copy;
    launch.buffers = {copy.from, copy.to};
    launch.behind = copy.is_behind;
  };
  const auto insert = [&](size_t before, bool to_host, bool is_last) {
    for (const HostCopy& copy : host_copies_)
      if (copy.before == before && copy.is_last == is_last && !copy.is_behind &&
          plan_.buffers[static_cast<size_t>(copy.to)].in_host == to_host)
        add(copy);
  };
  for (size_t i = 0; i <= plan_.launches.size(); ++i) {
    if (i == first_waiting_) plan_.first_waiting = launches.size();
    insert(i, true, false);
    insert(i, false, false);
    insert(i, true, true);
    if (i < plan_.launches.size()) launches.push_back(std::move(plan_.launches[i]));
  }
  for (const HostCopy& copy : host_copies_)
    if (copy.is_behind) add(copy);
  plan_.launches = std::move(launches);
}

}  // namespace fullbore
