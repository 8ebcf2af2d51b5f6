#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace power_cut {

/// A file, folder or symbolic link as it is read now.
struct Node {
  enum class Kind { file, folder, link };
  uint64_t id = 0;
  Kind kind = Kind::file;
  unsigned mode = 0;
  std::string data;                                    ///< of a file; of a link: what it says
  std::map<std::string, std::shared_ptr<Node>> names;  ///< of a folder
};
using NodePtr = std::shared_ptr<Node>;

/// One thing that was done to the disk.
struct Operation {
  enum class Kind { write, resize, name, sync, sync_folder, mark };
  Kind kind = Kind::mark;
  uint64_t id = 0;       ///< the file, or the folder
  uint64_t offset = 0;   ///< of a write; a new size
  std::string text;      ///< bytes written; a name; a mark
  NodePtr node;          ///< what the name stands for from now on; none: nothing
  uint64_t entered = 0;  ///< of a rename, both of its names have one number, else 0
  std::string note;      ///< for people: "rename a b"
};

/// A disk in memory that remembers what was done to it since begin(), and can be put into any state that a power
/// cut after the first n of these operations may leave behind.
///
/// Until fsync of a file, each sector of each of its writes, and its size, may be on the disk or not, whatever their
/// order. Until fsync of a folder, each name in it may stand for what it stood for at the last fsync, or for anything
/// since; a rename may be there by half, in one of its two names.
class Disk {
 public:
  Disk();
  NodePtr root() const { return root_; }
  /// The node at "/a/b", or none.
  NodePtr find(const std::string& path) const;
  /// The folder that `path` is in, and its last name.
  std::pair<NodePtr, std::string> parent(const std::string& path) const;

  NodePtr make(Node::Kind kind, unsigned mode);
  void set_name(const NodePtr& folder, const std::string& name, const NodePtr& node,
                const std::string& note, uint64_t entered = 0);
  void write(Node& file, uint64_t offset, std::string_view bytes);
  void resize(Node& file, uint64_t bytes);
  void sync(const Node& node);
  void mark(const std::string& text);
  uint64_t next_number() { return ++numbers_; }

  /// A careless disk says that it has synced and has not: whoever tests with it must see losses.
  void set_careless(bool careless) { careless_ = careless; }

  /// What is there now is on the disk for certain; recording begins.
  void begin();
  /// Recording ends.
  void end() { recording_ = false; }
  size_t operations() const { return journal_.size(); }
  /// A line for each mark, and for each operation on names.
  std::string history() const;
  /// As after a power cut behind the first `count` operations. Returns which kind of cut it was.
  std::string cut(size_t count, uint64_t seed);

 private:
  struct Image;  ///< what is on the disk of a node
  void record(Operation operation);
  NodePtr root_;
  NodePtr base_;  ///< a copy from begin()
  std::vector<Operation> journal_;
  bool recording_ = false;
  bool careless_ = false;
  uint64_t ids_ = 0;
  uint64_t numbers_ = 0;
};

}  // namespace power_cut
