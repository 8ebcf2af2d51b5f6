#include "tests/support/memory_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fullbore/base/check.h"
#include "fullbore/base/philox.h"

namespace fullbore::testing {
namespace {

int fail(int reason) {
  errno = reason;
  return -1;
}

}  // namespace

MemoryDisk::MemoryDisk() : nodes_(1) { nodes_[0].kind = Kind::kFolder; }

bool MemoryDisk::goes_on() {
  if (operations_++ == stop_at_) stopped_ = true;
  if (stopped_) errno = EIO;
  return !stopped_;
}

int MemoryDisk::find(const Place& place) const {
  const Names& names = node(place.folder).names;
  const auto found = names.find(place.name);
  return found == names.end() ? -1 : found->second;
}

std::optional<MemoryDisk::Place> MemoryDisk::locate(const std::string& path) const {
  const size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const int folder = slash == std::string::npos || slash == 0 ? 0 : find(path.substr(0, slash));
  if (folder < 0 || node(folder).kind != Kind::kFolder || name.empty()) {
    errno = ENOENT;
    return std::nullopt;
  }
  return Place{folder, name};
}

int MemoryDisk::find(const std::string& path, bool follow, int depth) const {
  if (path.empty() || path == "." || path == "/") return 0;
  const std::optional<Place> place = locate(path);
  const int index = place ? find(*place) : -1;
  if (index < 0 || !follow || node(index).kind != Kind::kLink) {
    if (index < 0) errno = ENOENT;
    return index;
  }
  if (depth > 8) return fail(ELOOP);
  const size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return find(folder + node(index).data, true, depth + 1);
}

void MemoryDisk::change(int folder, const Change& change) {
  for (const auto& [name, index] : change) {
    if (index < 0)
      node(folder).names.erase(name);
    else
      node(folder).names[name] = index;
  }
  node(folder).pending.push_back(change);
}

int MemoryDisk::make(Kind kind, const Place& place, const std::string& data) {
  if (find(place) >= 0) return fail(EEXIST);
  const int index = static_cast<int>(nodes_.size());
  Node& made = nodes_.emplace_back();
  made.kind = kind;
  made.data = data;
  change(place.folder, {{place.name, index}});
  return index;
}

int MemoryDisk::enter(int index) {
  open_.push_back(index);
  return static_cast<int>(open_.size()) - 1;
}

int MemoryDisk::create(const std::string& path) {
  if (!goes_on()) return -1;
  const std::optional<Place> place = locate(path);
  const int index = place ? make(Kind::kFile, *place) : -1;
  return index < 0 ? -1 : enter(index);
}

int MemoryDisk::append(const std::string& path) {
  if (!goes_on()) return -1;
  int index = find(path);
  if (index < 0) {
    const std::optional<Place> place = locate(path);
    index = place ? make(Kind::kFile, *place) : -1;
  }
  return index < 0 ? -1 : enter(index);
}

ssize_t MemoryDisk::write(int file, const void* data, size_t bytes) {
  const bool was_stopped = stopped_;
  std::string& contents = node(open_[static_cast<size_t>(file)]).data;
  if (!goes_on()) {
    if (!was_stopped) contents.append(static_cast<const char*>(data), bytes / 2);
    return fail(EIO);
  }
  contents.append(static_cast<const char*>(data), bytes);
  return static_cast<ssize_t>(bytes);
}

int MemoryDisk::truncate(const std::string& path, uint64_t bytes) {
  if (!goes_on()) return -1;
  const int index = find(path);
  if (index < 0) return -1;
  node(index).data.resize(bytes);
  return 0;
}

int MemoryDisk::sync(int file) {
  if (!goes_on()) return -1;
  Node& synced = node(open_[static_cast<size_t>(file)]);
  synced.synced = synced.data;
  return 0;
}

int MemoryDisk::close(int file) {
  open_[static_cast<size_t>(file)] = -1;
  return 0;
}

int MemoryDisk::open(const std::string& path) {
  if (stopped_) return fail(EIO);
  const int index = find(path);
  return index < 0 ? -1 : enter(index);
}

int MemoryDisk::status(int file, FileStatus& status) {
  if (stopped_) return fail(EIO);
  const Node& found = node(open_[static_cast<size_t>(file)]);
  status = {found.kind == Kind::kFile, found.kind == Kind::kFolder, found.data.size()};
  return 0;
}

int MemoryDisk::status(const std::string& path, FileStatus& status) {
  if (stopped_) return fail(EIO);
  const int index = find(path);
  if (index < 0) return -1;
  status = {node(index).kind == Kind::kFile, node(index).kind == Kind::kFolder,
            node(index).data.size()};
  return 0;
}

ssize_t MemoryDisk::read(int file, void* data, size_t bytes, uint64_t offset) {
  if (stopped_) return fail(EIO);
  const std::string& contents = node(open_[static_cast<size_t>(file)]).data;
  const size_t count = std::min(bytes, contents.size() - std::min(contents.size(), offset));
  if (count > 0) std::memcpy(data, contents.data() + offset, count);
  return static_cast<ssize_t>(count);
}

int MemoryDisk::rename(const std::string& from, const std::string& to) {
  if (!goes_on()) return -1;
  const std::optional<Place> source = locate(from);
  const std::optional<Place> target = locate(to);
  if (!source || !target) return -1;
  FB_CHECK(source->folder == target->folder, "renames from folder to folder are not modelled");
  const int index = find(*source);
  if (index < 0) return fail(ENOENT);
  const int old = find(*target);
  if (old >= 0 && node(old).kind == Kind::kFolder && !node(old).names.empty())
    return fail(ENOTEMPTY);
  change(source->folder, {{source->name, -1}, {target->name, index}});
  return 0;
}

int MemoryDisk::remove(const std::string& path) {
  if (!goes_on()) return -1;
  const std::optional<Place> place = locate(path);
  const int index = place ? find(*place) : -1;
  if (index < 0) return fail(ENOENT);
  if (node(index).kind == Kind::kFolder) return fail(EISDIR);
  change(place->folder, {{place->name, -1}});
  return 0;
}

int MemoryDisk::make_folder(const std::string& path) {
  if (!goes_on()) return -1;
  const std::optional<Place> place = locate(path);
  return place && make(Kind::kFolder, *place) >= 0 ? 0 : -1;
}

int MemoryDisk::remove_folder(const std::string& path) {
  if (!goes_on()) return -1;
  const std::optional<Place> place = locate(path);
  const int index = place ? find(*place) : -1;
  if (index < 0) return fail(ENOENT);
  if (!node(index).names.empty()) return fail(ENOTEMPTY);
  change(place->folder, {{place->name, -1}});
  return 0;
}

int MemoryDisk::make_link(const std::string& target, const std::string& path) {
  if (!goes_on()) return -1;
  const std::optional<Place> place = locate(path);
  return place && make(Kind::kLink, *place, target) >= 0 ? 0 : -1;
}

std::string MemoryDisk::link_target(const std::string& path) {
  const int index = find(path, /*follow=*/false);
  return index >= 0 && node(index).kind == Kind::kLink ? node(index).data : "";
}

int MemoryDisk::sync_folder(const std::string& path) {
  if (!goes_on()) return -1;
  const int index = find(path);
  if (index < 0) return -1;
  node(index).synced_names = node(index).names;
  node(index).pending.clear();
  return 0;
}

std::vector<std::string> MemoryDisk::list(const std::string& folder) {
  const int index = stopped_ ? fail(EIO) : find(folder);
  std::vector<std::string> names;
  if (index >= 0) errno = 0;
  if (index >= 0)
    for (const auto& [name, inner] : node(index).names) names.push_back(name);
  return names;
}

// Whoever wrote a file on a disk whose power went does so no more.
void MemoryDisk::remove_unused(const std::string& path) {
  const int index = find(path);
  if (index >= 0 && std::find(open_.begin(), open_.end(), index) == open_.end()) remove(path);
}

MemoryDisk MemoryDisk::after(Cut cut, uint64_t seed) const {
  MemoryDisk disk;
  disk.nodes_ = nodes_;
  PhiloxStream lots(seed, 0x70776572);
  const auto drawn = [&] { return lots.below(2) == 0; };
  for (Node& left : disk.nodes_) {
    if (left.kind == Kind::kFile && left.data != left.synced) {
      // What was written since the sync lies behind what was there then, unless it was cut short.
      const size_t common = std::min(left.synced.size(), left.data.size());
      const size_t fresh = left.data.size() - common;
      const bool torn = cut == Cut::kDrawsLots && drawn();
      if (cut == Cut::kLosesAll || cut == Cut::kLosesData)
        left.data = left.synced;
      else if (torn)
        left.data.resize(common + lots.below(fresh + 1));
      else if (cut == Cut::kZeroesData || (cut == Cut::kDrawsLots && drawn()))
        left.data.replace(common, fresh, std::string(fresh, '\0'));
    }
    if (left.kind == Kind::kFolder && cut != Cut::kKeepsAll) {
      left.names = left.synced_names;
      for (const Change& change : left.pending) {
        if (cut == Cut::kLosesAll || (cut == Cut::kDrawsLots && drawn())) continue;
        for (const auto& [name, index] : change) {
          if (index < 0)
            left.names.erase(name);
          else
            left.names[name] = index;
        }
      }
    }
    if (left.kind == Kind::kFile) left.synced = left.data;
    left.synced_names = left.names;
    left.pending.clear();
  }
  return disk;
}

}  // namespace fullbore::testing
