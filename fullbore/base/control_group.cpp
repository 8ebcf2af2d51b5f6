#include "fullbore/base/control_group.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace fullbore {
namespace {

/// A mounted hierarchy, or a part of one.
struct Mount {
  std::string
      root;  ///< the group of the hierarchy that the mount point shows; "" for the root group
  std::string point;    ///< where
  std::string type;     ///< "cgroup" (v1) or "cgroup2"
  std::string options;  ///< of the file system: the controllers of v1, between commas
};

/// The group of this process in one hierarchy.
struct Membership {
  std::string controllers;  ///< between commas; "" for v2
  std::string group;        ///< "/a/b"; "" for the root group
};

std::string without_trailing_slash(std::string path) {
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path;
}

/// /proc writes blanks, tabs, line ends and backslashes of paths as \040 and so on.
std::string unescaped(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                  (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

bool holds_word(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string each; std::getline(words, each, ',');)
    if (each == word) return true;
  return false;
}

// "35 31 0:32 /root /point rw,relatime shared:1 - cgroup cgroup rw,memory"
std::vector<Mount> mounts(const std::string& root) {
  std::vector<Mount> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string id, parent, device, source;
    Mount mount;
    before >> id >> parent >> device >> mount.root >> mount.point;
    after >> mount.type >> source >> mount.options;
    if (mount.type != "cgroup" && mount.type != "cgroup2") continue;
    mount.root = without_trailing_slash(unescaped(mount.root));
    mount.point = without_trailing_slash(unescaped(mount.point));
    found.push_back(mount);
  }
  return found;
}

// "4:memory:/group", "0::/group". Without the file, as in some sandboxes: what the mounts show.
std::vector<Membership> memberships(const std::string& root, const std::vector<Mount>& mounted) {
  std::vector<Membership> found;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    found.push_back({line.substr(first + 1, second - first - 1),
                     without_trailing_slash(line.substr(second + 1))});
  }
  if (found.empty())
    for (const Mount& mount : mounted)
      found.push_back({mount.type == "cgroup2" ? "" : mount.options, mount.root});
  return found;
}

bool is_below(const std::string& group, const std::string& ancestor) {
  return group.starts_with(ancestor) &&
         (group.size() == ancestor.size() || group[ancestor.size()] == '/');
}

/// The folders of a group and of all above it that a mount of its hierarchy shows, its own first. Where the group
/// is outside of what the mounts show (a container that has the host's paths in /proc/self/cgroup), the mount
/// point stands for it.
std::vector<std::string> group_folders(const std::vector<Mount>& hierarchy,
                                       const std::string& group) {
  if (hierarchy.empty()) return {};
  const auto shows = [&](const Mount& mount) { return is_below(group, mount.root); };
  const auto mount = std::find_if(hierarchy.begin(), hierarchy.end(), shows);
  if (mount == hierarchy.end()) return {hierarchy.front().point};
  std::vector<std::string> folders;
  std::string relative = group.substr(mount->root.size());
  while (!relative.empty()) {
    // "/.." begins the path of a group above a cgroup namespace's root, which no mount shows.
    if (relative.find("/..") == std::string::npos) folders.push_back(mount->point + relative);
    relative.resize(relative.rfind('/'));
  }
  folders.push_back(mount->point);
  return folders;
}

/// The next number of a stream; none for "max", -1 (v1's "no limit") and what is no number.
std::optional<double> positive(std::istream& stream) {
  std::string word;
  if (!(stream >> word)) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (end == word.c_str() || *end != '\0' || !(value > 0)) return std::nullopt;
  return value;
}

std::optional<double> positive_in(const std::string& path) {
  std::ifstream file(path);
  return positive(file);
}

void limit_memory(ControlGroupLimits& limits, std::optional<double> bytes) {
  if (bytes && *bytes < 0x1p62)
    limits.memory_bytes = std::min(limits.memory_bytes, static_cast<int64_t>(*bytes));
}

void limit_processors(ControlGroupLimits& limits, std::optional<double> quota,
                      std::optional<double> period) {
  if (quota && period) limits.processors = std::min(limits.processors, *quota / *period);
}

std::optional<double> hierarchical_limit(const std::string& folder) {
  std::ifstream file(folder + "/memory.stat");
  for (std::string word; file >> word;)
    if (word == "hierarchical_memory_limit") return positive(file);
  return std::nullopt;
}

/// Calls visit(folder, kinds) for each folder of this process's groups that counts, its own first.
struct GroupKinds {
  bool unified, memory, processors;
};
void visit_groups(const std::string& root,
                  const std::function<void(const std::string& folder, GroupKinds kinds)>& visit) {
  const std::vector<Mount> mounted = mounts(root);
  for (const Membership& membership : memberships(root, mounted)) {
    const bool unified = membership.controllers.empty();
    const bool memory = unified || holds_word(membership.controllers, "memory");
    const bool processors = unified || holds_word(membership.controllers, "cpu");
    if (!memory && !processors) continue;
    std::vector<Mount> hierarchy;
    for (const Mount& mount : mounted) {
      const bool same =
          unified ? mount.type == "cgroup2"
                  : mount.type == "cgroup" && holds_word(mount.options, memory ? "memory" : "cpu");
      if (same) hierarchy.push_back(mount);
    }
    for (const std::string& group : group_folders(hierarchy, membership.group))
      visit(root + group, {unified, memory, processors});
  }
}

}  // namespace

ControlGroupLimits control_group_limits(const std::string& root) {
  ControlGroupLimits limits;
  visit_groups(root, [&](const std::string& folder, GroupKinds kinds) {
    if (kinds.unified) {
      limit_memory(limits, positive_in(folder + "/memory.max"));
      limit_memory(limits, positive_in(folder + "/memory.high"));
      std::ifstream file(folder + "/cpu.max");
      const std::optional<double> quota = positive(file);
      limit_processors(limits, quota, positive(file));
      return;
    }
    if (kinds.memory) {
      limit_memory(limits, positive_in(folder + "/memory.limit_in_bytes"));
      limit_memory(limits, hierarchical_limit(folder));
    }
    if (kinds.processors)
      limit_processors(limits, positive_in(folder + "/cpu.cfs_quota_us"),
                       positive_in(folder + "/cpu.cfs_period_us"));
  });
  return limits;
}

ControlGroupFolders control_group_folders(const std::string& root) {
  ControlGroupFolders found;
  visit_groups(root, [&](const std::string& folder, GroupKinds kinds) {
    // In a mixture the controllers are of version 1, and the group of version 2 has none of their files.
    const auto take = [&](std::string& place, const char* file) {
      if (place.empty() && std::ifstream(folder + file).good()) place = folder;
    };
    if (kinds.memory)
      take(found.memory, kinds.unified ? "/memory.current" : "/memory.usage_in_bytes");
    if (kinds.processors) take(found.processors, "/cpu.stat");
    if (kinds.unified && found.memory == folder) found.unified = true;
  });
  return found;
}

}  // namespace fullbore
