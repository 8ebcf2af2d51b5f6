// A file system that loses what was not synced: `power_cut_disk FOLDER` mounts it (FUSE) until it is unmounted.
// Orders are written to FOLDER/.power, a line each, and its contents tell what is there:
//   begin         all that is there is safe; from now on operations are remembered
//   end           and no more
//   careless      fsync does nothing from now on; careful: it does again
//   mark TEXT     remember that TEXT was promised
//   cut N SEED    the power goes behind the first N operations
#define FUSE_USE_VERSION 31
#include <fuse.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "disk.h"

namespace power_cut {
namespace {

constexpr const char* kOrders = "/.power";

Disk disk;  // one thread serves: fuse_loop()
std::string last_cut;

std::string report() {
  return "operations " + std::to_string(disk.operations()) + "\ncut " + last_cut + '\n' +
         disk.history();
}

void obey(std::istringstream orders) {
  for (std::string line; std::getline(orders, line);) {
    std::istringstream words(line);
    std::string order;
    words >> order;
    if (order == "begin") disk.begin();
    if (order == "end") disk.end();
    if (order == "careless" || order == "careful") disk.set_careless(order == "careless");
    if (order == "mark") disk.mark(line.substr(std::min<size_t>(5, line.size())));
    size_t count = 0;
    uint64_t seed = 0;
    if (order == "cut" && words >> count >> seed)
      last_cut = disk.cut(std::min(count, disk.operations()), seed);
  }
}

/// What an open file is; it stays when its name goes.
NodePtr& opened(fuse_file_info* info) { return *reinterpret_cast<NodePtr*>(info->fh); }
void open_as(fuse_file_info* info, const NodePtr& node) {
  info->fh = reinterpret_cast<uint64_t>(new NodePtr(node));
}
bool is_orders(const char* path) { return path != nullptr && std::strcmp(path, kOrders) == 0; }
bool is_orders(const fuse_file_info* info) { return info->fh == 0; }
NodePtr node_of(const char* path, fuse_file_info* info) {
  return info != nullptr && info->fh != 0 ? opened(info)
         : path != nullptr                ? disk.find(path)
                                          : nullptr;
}

int get_attributes(const char* path, struct stat* status, fuse_file_info* info) {
  *status = {};
  status->st_uid = getuid();
  status->st_gid = getgid();
  status->st_nlink = 1;
  if (is_orders(path)) {
    status->st_mode = S_IFREG | 0600;
    return 0;
  }
  const NodePtr node = node_of(path, info);
  if (!node) return -ENOENT;
  status->st_ino = node->id;
  status->st_size = static_cast<off_t>(node->data.size());
  status->st_blocks = (status->st_size + 511) / 512;
  status->st_mode = node->mode & 07777;
  status->st_mode |= node->kind == Node::Kind::folder ? S_IFDIR
                     : node->kind == Node::Kind::link ? S_IFLNK
                                                      : S_IFREG;
  return 0;
}

int add(const char* path, Node::Kind kind, unsigned mode, const std::string& note,
        const std::string& data, NodePtr* made) {
  const auto [folder, name] = disk.parent(path);
  if (!folder) return -ENOENT;
  if (folder->names.contains(name)) return -EEXIST;
  const NodePtr node = disk.make(kind, mode);
  node->data = data;
  disk.set_name(folder, name, node, note + ' ' + path + (data.empty() ? "" : ' ' + data));
  if (made != nullptr) *made = node;
  return 0;
}

int create(const char* path, mode_t mode, fuse_file_info* info) {
  NodePtr node;
  if (const int failed = add(path, Node::Kind::file, mode, "create", "", &node)) return failed;
  open_as(info, node);
  return 0;
}
int make_folder(const char* path, mode_t mode) {
  return add(path, Node::Kind::folder, mode, "mkdir", "", nullptr);
}
int make_link(const char* target, const char* path) {
  return add(path, Node::Kind::link, 0777, "symlink", target, nullptr);
}

int open_file(const char* path, fuse_file_info* info) {
  if (is_orders(path)) {
    info->direct_io = 1;
    return 0;
  }
  const NodePtr node = disk.find(path);
  if (!node) return -ENOENT;
  open_as(info, node);
  if ((info->flags & O_TRUNC) != 0 && !node->data.empty()) disk.resize(*node, 0);
  return 0;
}
int close_file(const char*, fuse_file_info* info) {
  if (info->fh != 0) delete &opened(info);
  return 0;
}

int copy_part(const std::string& data, char* to, size_t size, off_t offset) {
  if (static_cast<size_t>(offset) >= data.size()) return 0;
  const size_t count = std::min(size, data.size() - static_cast<size_t>(offset));
  std::memcpy(to, data.data() + offset, count);
  return static_cast<int>(count);
}
int read_file(const char*, char* to, size_t size, off_t offset, fuse_file_info* info) {
  if (is_orders(info)) return copy_part(report(), to, size, offset);
  return copy_part(opened(info)->data, to, size, offset);
}
int write_file(const char*, const char* from, size_t size, off_t offset, fuse_file_info* info) {
  if (is_orders(info))
    obey(std::istringstream(std::string(from, size)));
  else
    disk.write(*opened(info), static_cast<uint64_t>(offset), {from, size});
  return static_cast<int>(size);
}
int resize_file(const char* path, off_t size, fuse_file_info* info) {
  if (is_orders(path)) return 0;
  const NodePtr node = node_of(path, info);
  if (!node) return -ENOENT;
  disk.resize(*node, static_cast<uint64_t>(size));
  return 0;
}
int sync_file(const char*, int, fuse_file_info* info) {
  if (info->fh != 0) disk.sync(*opened(info));
  return 0;
}

int rename_file(const char* from, const char* to, unsigned flags) {
  if (flags != 0) return -EINVAL;
  const auto [old_folder, old_name] = disk.parent(from);
  const auto [new_folder, new_name] = disk.parent(to);
  const NodePtr node = disk.find(from);
  if (!node || !new_folder) return -ENOENT;
  const NodePtr there = disk.find(to);
  if (there && there->kind == Node::Kind::folder && !there->names.empty()) return -ENOTEMPTY;
  const uint64_t number = disk.next_number();
  disk.set_name(new_folder, new_name, node, std::string("rename ") + from + ' ' + to, number);
  disk.set_name(old_folder, old_name, nullptr, "", number);
  return 0;
}
int remove_name(const char* path) {
  const auto [folder, name] = disk.parent(path);
  const NodePtr node = disk.find(path);
  if (!node) return -ENOENT;
  if (node->kind == Node::Kind::folder && !node->names.empty()) return -ENOTEMPTY;
  disk.set_name(folder, name, nullptr, std::string("remove ") + path);
  return 0;
}

int read_link(const char* path, char* to, size_t size) {
  const NodePtr node = disk.find(path);
  if (!node) return -ENOENT;
  const size_t count = std::min(size - 1, node->data.size());
  std::memcpy(to, node->data.data(), count);
  to[count] = '\0';
  return 0;
}
int list_folder(const char*, void* list, fuse_fill_dir_t fill, off_t, fuse_file_info* info,
                fuse_readdir_flags) {
  const NodePtr node = opened(info);
  const auto plain = static_cast<fuse_fill_dir_flags>(0);
  fill(list, ".", nullptr, 0, plain);
  fill(list, "..", nullptr, 0, plain);
  for (const auto& [name, inner] : node->names) fill(list, name.c_str(), nullptr, 0, plain);
  return 0;
}
int change_mode(const char* path, mode_t mode, fuse_file_info* info) {
  const NodePtr node = node_of(path, info);
  if (!node) return -ENOENT;
  node->mode = mode;
  return 0;
}
int change_owner(const char*, uid_t, gid_t, fuse_file_info*) { return 0; }
int change_times(const char*, const timespec*, fuse_file_info*) { return 0; }
int free_space(const char*, struct statvfs* status) {
  *status = {};
  status->f_bsize = status->f_frsize = 4096;
  status->f_blocks = status->f_bfree = status->f_bavail = 1 << 20;
  status->f_namemax = 255;
  return 0;
}

void* begin(fuse_conn_info*, fuse_config* config) {
  config->use_ino = 1;
  config->hard_remove = 1;
  config->nullpath_ok = 1;
  // After a cut another disk is there: nothing is kept.
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
  return nullptr;
}

}  // namespace
}  // namespace power_cut

int main(int argc, char** argv) {
  using namespace power_cut;
  fuse_operations calls{};
  calls.init = begin;
  calls.getattr = get_attributes;
  calls.readlink = read_link;
  calls.mkdir = make_folder;
  calls.unlink = remove_name;
  calls.rmdir = remove_name;
  calls.symlink = make_link;
  calls.rename = rename_file;
  calls.chmod = change_mode;
  calls.chown = change_owner;
  calls.truncate = resize_file;
  calls.open = open_file;
  calls.read = read_file;
  calls.write = write_file;
  calls.statfs = free_space;
  calls.release = close_file;
  calls.fsync = sync_file;
  calls.opendir = open_file;
  calls.readdir = list_folder;
  calls.releasedir = close_file;
  calls.fsyncdir = sync_file;
  calls.create = create;
  calls.utimens = change_times;
  char single[] = "-s";
  char foreground[] = "-f";
  char* arguments[] = {argv[0], single, foreground, argc > 1 ? argv[1] : nullptr, nullptr};
  return fuse_main(4, arguments, &calls, nullptr);
}
