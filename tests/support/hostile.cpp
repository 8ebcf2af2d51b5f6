#include "tests/support/hostile.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/siphash.h"
#include "fullbore/ckpt/manifest.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

constexpr auto kLimit = std::chrono::seconds(60);
/// Code, libraries and the stacks of threads are most of it; a few hundred MiB are for the file.
constexpr SipKey kStranger{'s', 't', 'r', 'a', 'n', 'g', 'e', 'r'};

/// Address sanitizers reserve terabytes.
constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(FB_SANITIZED)
  return true;
#else
  return false;
#endif
}

int open_output(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/// The gift of which every test spoils a copy, made once a process.
class Prototype : public ::testing::Environment {
 public:
  static const std::string& folder() { return path(); }
  void TearDown() override {
    if (!path().empty()) fs::remove_all(path());
  }
  static void make(const std::string& job) {
    if (!path().empty()) return;
    path() = fmt::format("{}fullbore_gift.{}", ::testing::TempDir(), ::getpid());
    fs::create_directories(path());
    for (const char* name : {"job.yaml", "text.txt"})
      fs::copy_file(job + "/" + name, path() + "/" + name);
    const CommandResult made =
        run_command(path(), {"train", "job.yaml", "data.path=text.txt", "run.dir=gift"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    // Their kernels and plans are in the cache then, of which planted ones are copies.
    for (const char* command : {"generate", "eval"})
      ASSERT_EQ(run_command(path(), {command, "gift"}).exit_code, 0) << command;
  }

 private:
  static std::string& path() {
    static std::string path;
    return path;
  }
};
const auto* const prototype = ::testing::AddGlobalTestEnvironment(new Prototype);

// Overwrites the machine code of an object file by breakpoints. False: it is none.
bool put_breakpoints(std::string& object) {
  Elf64_Ehdr header;
  if (object.size() < sizeof header || !object.starts_with(ELFMAG)) return false;
  std::memcpy(&header, object.data(), sizeof header);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, object.data() + header.e_shoff + i * sizeof section, sizeof section);
    if ((section.sh_flags & SHF_EXECINSTR) == 0) continue;
    constexpr char kBreakpoint = '\xcc';
    object.replace(section.sh_offset, section.sh_size, section.sh_size, kBreakpoint);
  }
  return true;
}

}  // namespace

bool limits_memory() { return !sanitized(); }

LimitedResult run_limited(const std::string& folder, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment, uint64_t address_space) {
  const int out = open_output(folder + "/../.out"), err = open_output(folder + "/../.err");
  const pid_t child = fork();
  if (child == 0) {
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (!sanitized()) {
      const rlimit limit{address_space, address_space};
      setrlimit(RLIMIT_AS, &limit);
    }
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    for (const std::string& text : environment) {
      const size_t equals = text.find('=');
      if (equals == text.npos)
        unsetenv(text.c_str());
      else
        setenv(text.substr(0, equals).c_str(), text.c_str() + equals + 1, 1);
    }
    if (chdir(folder.c_str()) != 0) _exit(127);
    std::vector<std::string> copies = arguments;
    std::vector<char*> words = {const_cast<char*>(testing::command_path().c_str())};
    for (std::string& argument : copies) words.push_back(argument.data());
    words.push_back(nullptr);
    execv(testing::command_path().c_str(), words.data());
    _exit(127);
  }
  close(out);
  close(err);
  LimitedResult result;
  const int status = wait_at_most(child, kLimit);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(folder + "/../.out").value();
  result.err = read_file(folder + "/../.err").value();
  fs::remove(folder + "/../.out");
  fs::remove(folder + "/../.err");
  return result;
}

std::string snapshot(const std::string& folder, const std::vector<std::string>& except) {
  std::vector<std::string> lines;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name =
        (fs::relative(entry.path().parent_path(), folder) / entry.path().filename()).string();
    const std::string relative = name.starts_with("./") ? name.substr(2) : name;
    if (std::ranges::any_of(except, [&](const auto& e) { return relative.starts_with(e); }))
      continue;
    struct stat status {};
    ::lstat(entry.path().c_str(), &status);
    std::string contents;
    if (S_ISLNK(status.st_mode)) contents = fs::read_symlink(entry.path()).string();
    if (S_ISREG(status.st_mode))
      contents = hash_hex(hash_text(read_file(entry.path().string()).value()));
    lines.push_back(fmt::format("{} {:o} {}", relative, status.st_mode, contents));
  }
  std::ranges::sort(lines);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

HostileTest::HostileTest() {
  Prototype::make(folder_.path());
  fs::copy(Prototype::folder() + "/gift", folder_ / "gift",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  for (const char* name : {"work", "victim", "victim/folder", "victim/empty"})
    fs::create_directories(folder_ / name);
  folder_.put("victim/file", "of great value\n");
  folder_.put("victim/folder/inner", "of value too\n");
}

std::string HostileTest::checkpoint(const std::string& name) const {
  return gift("checkpoints/step-00000020/" + name);
}

void HostileTest::write(const std::string& path, const std::string& contents) const {
  fs::remove_all(path);
  ASSERT_TRUE(write_file_atomically(path, contents).ok());
}

void HostileTest::replace(const std::string& path, const std::string& from,
                          const std::string& to) const {
  std::string text = read_file(path).value();
  const size_t at = text.find(from);
  ASSERT_NE(at, text.npos) << from << " in " << path;
  write(path, text.replace(at, from.size(), to));
}

void HostileTest::link(const std::string& path, const std::string& target) const {
  fs::remove_all(path);
  fs::create_symlink(target, path);
}

void HostileTest::pipe(const std::string& path) const {
  fs::remove_all(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
}

void HostileTest::sign_checkpoint() const {
  Manifest manifest;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint())) {
    const std::string name = entry.path().filename().string();
    if (name == kManifestName || !entry.is_regular_file()) continue;
    const std::string bytes = read_file(entry.path().string()).value();
    manifest[name] = {bytes.size(), hash_text(bytes)};
  }
  write(checkpoint(kManifestName), encode_manifest(manifest));
}

void HostileTest::write_weights(const std::string& header, const std::string& data) const {
  const uint64_t bytes = header.size();
  std::string text(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  write(checkpoint("weights.safetensors"), text + header + data);
  sign_checkpoint();
}

std::string HostileTest::state_of_stranger() const {
  std::string folder = folder_ / "stranger";
  fs::create_directories(folder + "/fullbore");
  fs::permissions(folder + "/fullbore", fs::perms::owner_all);
  write(folder + "/fullbore/cache.key",
        std::string(reinterpret_cast<const char*>(kStranger.data()), kStranger.size()));
  fs::permissions(folder + "/fullbore/cache.key", fs::perms::owner_read | fs::perms::owner_write);
  return folder;
}

void HostileTest::plant_cache(const std::string& folder, bool keyed) const {
  struct {
    uint64_t key_bytes, content_bytes;
    SipTag tag;
  } header;
  constexpr size_t kMagicBytes = 18;
  for (const char* kind : {"kernels", "plans"}) {
    fs::create_directories(folder + "/" + kind);
    fs::permissions(folder, fs::perms::owner_all);
    fs::permissions(folder + "/" + kind, fs::perms::owner_all);
    const std::string own = fmt::format("{}/{}", getenv("FULLBORE_CACHE"), kind);
    for (const fs::directory_entry& entry : fs::directory_iterator(own)) {
      const std::string bytes = read_file(entry.path().string()).value();
      std::memcpy(&header, bytes.data() + kMagicBytes, sizeof header);
      const std::string key = bytes.substr(kMagicBytes + sizeof header, header.key_bytes);
      std::string content = bytes.substr(kMagicBytes + sizeof header + header.key_bytes);
      if (!put_breakpoints(content)) content.assign(content.size(), 'x');
      std::string planted = bytes.substr(0, kMagicBytes);
      if (keyed) {
        SipHash tag(kStranger);
        tag.add({reinterpret_cast<const char*>(&header), 16});
        tag.add(key);
        tag.add(content);
        header.tag = tag.finish();
        planted.append(reinterpret_cast<const char*>(&header), sizeof header);
      } else {
        planted[kMagicBytes - 2] = '1';
        const uint64_t old[] = {key.size(), content.size(), hash_text(content, hash_text(key))};
        planted.append(reinterpret_cast<const char*>(old), sizeof old);
      }
      const std::string path =
          fmt::format("{}/{}/{}", folder, kind, entry.path().filename().string());
      planted.append(key).append(content);
      write(path, planted);
      fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    }
  }
}

}  // namespace fullbore
