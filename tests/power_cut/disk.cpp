#include "disk.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace power_cut {
namespace {

constexpr size_t kSector = 512;

void write_into(std::string& data, uint64_t offset, std::string_view bytes) {
  if (data.size() < offset + bytes.size()) data.resize(offset + bytes.size(), '\0');
  std::copy(bytes.begin(), bytes.end(), data.begin() + static_cast<std::ptrdiff_t>(offset));
}

NodePtr copy_of(const NodePtr& node) {
  auto copy = std::make_shared<Node>(*node);
  for (auto& [name, inner] : copy->names) inner = copy_of(inner);
  return copy;
}

}  // namespace

struct Disk::Image {
  Node::Kind kind = Node::Kind::file;
  unsigned mode = 0;
  std::string data;
  std::map<std::string, uint64_t> names;  ///< 0: nothing
  std::vector<const Operation*> waiting;  ///< not synced
};

Disk::Disk() {
  root_ = make(Node::Kind::folder, 0755);
  begin();
}

NodePtr Disk::find(const std::string& path) const {
  NodePtr node = root_;
  for (size_t begin = 1; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const auto inner = node->names.find(path.substr(begin, end - begin));
    if (inner == node->names.end()) return nullptr;
    node = inner->second;
    begin = end + 1;
  }
  return node;
}

std::pair<NodePtr, std::string> Disk::parent(const std::string& path) const {
  const size_t slash = path.rfind('/');
  return {find(slash == 0 ? "/" : path.substr(0, slash)), path.substr(slash + 1)};
}

NodePtr Disk::make(Node::Kind kind, unsigned mode) {
  auto node = std::make_shared<Node>();
  node->id = ++ids_;
  node->kind = kind;
  node->mode = mode;
  return node;
}

void Disk::record(Operation operation) {
  if (recording_) journal_.push_back(std::move(operation));
}

void Disk::set_name(const NodePtr& folder, const std::string& name, const NodePtr& node,
                    const std::string& note, uint64_t entered) {
  if (node)
    folder->names[name] = node;
  else
    folder->names.erase(name);
  record({Operation::Kind::name, folder->id, 0, name, node, entered, note});
}

void Disk::write(Node& file, uint64_t offset, std::string_view bytes) {
  write_into(file.data, offset, bytes);
  record({Operation::Kind::write, file.id, offset, std::string(bytes), nullptr, 0, ""});
}

void Disk::resize(Node& file, uint64_t bytes) {
  file.data.resize(bytes, '\0');
  record({Operation::Kind::resize, file.id, bytes, "", nullptr, 0, ""});
}

void Disk::sync(const Node& node) {
  if (careless_) return;
  const bool folder = node.kind == Node::Kind::folder;
  record({folder ? Operation::Kind::sync_folder : Operation::Kind::sync, node.id, 0, "", nullptr, 0,
          ""});
}

void Disk::mark(const std::string& text) {
  record({Operation::Kind::mark, 0, 0, text, nullptr, 0, "mark " + text});
}

void Disk::begin() {
  base_ = copy_of(root_);
  journal_.clear();
  recording_ = true;
}

std::string Disk::history() const {
  std::string text;
  for (size_t i = 0; i < journal_.size(); ++i)
    if (!journal_[i].note.empty()) text += std::to_string(i) + ' ' + journal_[i].note + '\n';
  return text;
}

std::string Disk::cut(size_t count, uint64_t seed) {
  recording_ = false;
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t limit) { return random() % limit; };
  enum Cut { lost, pages, names_only, data_only, halves, everything, cuts };
  static const char* const kCuts[cuts] = {"lost",      "pages",  "names only",
                                          "data only", "halves", "everything"};
  const auto which = static_cast<Cut>(below(cuts));

  std::unordered_map<uint64_t, Image> images;
  const auto add = [&](const Node& node) -> Image& {
    Image& image = images[node.id];
    image.kind = node.kind;
    image.mode = node.mode;
    // A link says what it says from the moment that it has a name.
    if (node.kind == Node::Kind::link) image.data = node.data;
    return image;
  };
  const auto add_all = [&](const auto& self, const NodePtr& node) -> void {
    Image& image = add(*node);
    image.data = node->data;
    for (const auto& [name, inner] : node->names) image.names[name] = inner->id;
    for (const auto& [name, inner] : node->names) self(self, inner);
  };
  add_all(add_all, base_);

  const auto apply = [](Image& image, const Operation& operation) {
    if (operation.kind == Operation::Kind::write)
      write_into(image.data, operation.offset, operation.text);
    else if (operation.kind == Operation::Kind::resize)
      image.data.resize(operation.offset, '\0');
    else
      image.names[operation.text] = operation.node ? operation.node->id : 0;
  };
  for (size_t i = 0; i < count; ++i) {
    const Operation& operation = journal_[i];
    if (operation.kind == Operation::Kind::mark) continue;
    if (operation.node && !images.contains(operation.node->id)) add(*operation.node);
    Image& image = images[operation.id];
    if (operation.kind == Operation::Kind::sync || operation.kind == Operation::Kind::sync_folder) {
      for (const Operation* waiting : image.waiting) apply(image, *waiting);
      image.waiting.clear();
    } else {
      image.waiting.push_back(&operation);
    }
  }

  // Of a rename that stays whole, whether it is on the disk.
  std::map<uint64_t, bool> renames;
  for (auto& [id, image] : images) {
    std::map<std::string, std::vector<const Operation*>> by_name;
    for (const Operation* waiting : image.waiting) {
      if (waiting->kind == Operation::Kind::name) {
        by_name[waiting->text].push_back(waiting);
        continue;
      }
      if (which == lost || which == names_only) continue;
      if (which == data_only || which == everything) {
        apply(image, *waiting);
      } else if (waiting->kind == Operation::Kind::resize) {
        if (below(2) == 0) apply(image, *waiting);
      } else {
        for (size_t begin = 0; begin < waiting->text.size();) {
          const size_t at = waiting->offset + begin;
          const size_t size = std::min(kSector - at % kSector, waiting->text.size() - begin);
          if (below(2) == 0)
            write_into(image.data, at, std::string_view(waiting->text).substr(begin, size));
          begin += size;
        }
      }
    }
    if (which == lost || which == data_only) continue;
    for (const auto& [name, operations] : by_name) {
      // Each name stands for what it stood for at the last sync, or for anything since.
      size_t taken = which == names_only || which == everything ? operations.size()
                                                                : below(operations.size() + 1);
      if (which == pages)
        while (taken > 0 && operations[taken - 1]->entered != 0 &&
               !renames.emplace(operations[taken - 1]->entered, below(2) == 0).first->second)
          --taken;
      if (taken > 0) apply(image, *operations[taken - 1]);
    }
  }

  const auto build = [&](const auto& self, uint64_t id) -> NodePtr {
    const Image& image = images.at(id);
    NodePtr node = make(image.kind, image.mode);
    node->data = image.data;
    for (const auto& [name, inner] : image.names)
      if (inner != 0) node->names[name] = self(self, inner);
    return node;
  };
  root_ = build(build, base_->id);
  return kCuts[which];
}

}  // namespace power_cut
