// A bounded sample of a fuzz target for ordinary builds, which know nothing of coverage: the kept corpus as
// it is, then mutations of it in an order that a seed decides. usage: fuzz_sample_<target> CORPUS_FOLDER
//
// FB_FUZZ_SECONDS (default 2) says for how long, FB_FUZZ_SEED (default 1) which mutations. What fails is
// written to a file, whose name is printed: also an input that wants more than 256 MiB of memory, or a second of the
// processor. Afterwards memory must be within 64 MiB and twice the input.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/philox.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using fullbore::PhiloxStream;
using namespace std::string_view_literals;

constexpr size_t kLongest = size_t{1} << 16;
constexpr size_t kMostMemory = size_t{256} << 20;
#ifdef FB_SANITIZED
constexpr time_t kMostSeconds = 20;  // everything is slower there, and by how much nobody promises
#else
constexpr time_t kMostSeconds = 1;
#endif
std::string current;       // the input that is being tried
std::string failure_path;  // where it goes if that ends badly

// Only what a signal handler may call.
void keep_input(int signal) {
  const int file = ::open(failure_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  bool kept = file >= 0 && ::write(file, current.data(), current.size()) >= 0;
  const std::string_view parts[] = {"the input that failed: ", failure_path, "\n"};
  for (const std::string_view part : parts)
    kept = ::write(2, part.data(), part.size()) >= 0 && kept;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::vector<std::string> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

/// One small change: what fuzzers have found to be worth trying.
void mutate(std::string& input, const std::vector<std::string>& corpus, PhiloxStream& random) {
  static constexpr std::string_view kBytes = "\0\x01\x7F\x80\xC0\xED\xF4\xFF\"\\{}[],: \n0-"sv;
  const size_t at = random.below(input.size() + 1);
  const size_t length = std::min<size_t>(input.size() - at, 1 + random.below(1 + random.below(64)));
  switch (random.below(8)) {
    case 0:
      if (at < input.size()) input[at] ^= static_cast<char>(1U << random.below(8));
      break;
    case 1:
      if (at < input.size()) input[at] = kBytes[random.below(kBytes.size())];
      break;
    case 2: input.insert(at, 1, kBytes[random.below(kBytes.size())]); break;
    case 3: input.erase(at, length); break;
    case 4: input.insert(random.below(input.size() + 1), input.substr(at, length)); break;
    case 5: {
      const std::string& other = corpus[random.below(corpus.size())];
      const size_t from = random.below(other.size() + 1);
      input.insert(at, other.substr(from, 1 + random.below(64)));
      break;
    }
    case 6:
      for (size_t i = at; i < at + length; ++i) input[i] = static_cast<char>(random.below(256));
      break;
    default:
      if (random.below(8) == 0) input.resize(at);
      break;
  }
  if (input.size() > kLongest) input.resize(kLongest);
}

long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// Whoever wants more memory than this and what there is now gets none: std::bad_alloc ends the program. Sanitizers
/// reserve what they like, and look after memory themselves.
void limit_memory() {
#ifndef FB_SANITIZED
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmData:")) continue;
    const rlim_t now = std::strtoull(line.c_str() + 7, nullptr, 10) * 1024;
    const rlimit limit{now + kMostMemory, now + kMostMemory};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
#endif
}

/// SIGPROF after so much time of the processor from now on, however busy the machine is; 0: never.
void limit_time(time_t seconds) {
  const itimerval limit{{0, 0}, {seconds, 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

double from_environment(const char* name, double otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atof(value);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  const std::vector<std::string> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no input\n", argv[1]);
    return 2;
  }
  failure_path = (std::filesystem::temp_directory_path() /
                  (std::filesystem::path(argv[0]).filename().string() + ".failed"))
                     .string();
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGPROF})
    std::signal(signal, keep_input);
  limit_memory();
  const auto attempt = [](const std::string& input) {
    current = input;
    limit_time(kMostSeconds);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
    limit_time(0);
  };
  for (const std::string& input : corpus) attempt(input);
  const long before_kib = peak_kib();
  PhiloxStream random(static_cast<uint64_t>(from_environment("FB_FUZZ_SEED", 1)));
  const std::chrono::duration<double> limit(from_environment("FB_FUZZ_SECONDS", 2));
  const auto start = std::chrono::steady_clock::now();
  uint64_t count = 0;
  while (std::chrono::steady_clock::now() - start < limit) {
    std::string input = corpus[random.below(corpus.size())];
    for (uint64_t n = 1 + random.below(4); n > 0; --n) mutate(input, corpus, random);
    attempt(input);
    ++count;
  }
  const long grown_kib = peak_kib() - before_kib;
  std::printf("%zu inputs kept, %llu mutations, %ld KiB more memory at the peak\n", corpus.size(),
              static_cast<unsigned long long>(count), grown_kib);
#ifndef FB_SANITIZED
  if (grown_kib > static_cast<long>((size_t{64} << 10) + 2 * kLongest / 1024)) return 1;
#endif
  return 0;
}
