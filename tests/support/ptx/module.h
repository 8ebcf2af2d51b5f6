#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// PTX, the assembly that NVIDIA's driver takes, executed on a machine without a GPU, so that the very text that a GPU
/// would get is tested: what it computes, and whether it is free of races. Source of all meanings: NVIDIA, "Parallel
/// Thread Execution ISA", version 8.5.
namespace fullbore::ptx {

/// The text is not understood, or a thread did what a GPU does not allow. The message names the kernel, the line of the
/// text, and who did it.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// State spaces. Addresses of `global` are generic ones too; the others lie in windows of their own (machine.h).
enum class Space : uint8_t { generic, global, shared, local, parameter };

class Lane;
struct Instruction;
/// Makes an instruction for one thread.
using Execute = void (*)(Lane& lane, const Instruction& instruction);

/// Threads that meet make these together: each waits until the others have come to it.
enum class Meeting : uint8_t {
  none,
  block_barrier,
  warp_barrier,
  shuffle,
  vote,
  mma,
  load_matrix,
  warpgroup_product,
  cluster_arrival,  ///< of a warp whose threads do so together
  cluster_barrier
};

struct Instruction {
  Execute execute = nullptr;  ///< of one that no other thread takes part in
  Meeting meeting = Meeting::none;
  int guard = -1;  ///< slot of the predicate that it depends on
  bool guard_negated = false;
  /// Slots of operands: those that are written first. A slot is a register or a constant of the kernel.
  std::array<int, 20> slots{};
  std::vector<int> sums = {};  ///< slots, of a product of a warpgroup
  int results = 0;
  int operands = 0;
  // Of what reads or writes memory.
  Space space = Space::generic;
  int64_t offset = 0;
  int64_t second_offset = 0;  ///< of the second address that cp.async has
  int bytes = 0;              ///< of one element
  int elements = 1;           ///< one behind the other
  bool sign_extends = false;
  int variant =
      0;  ///< what distinguishes instructions of one `execute`: mode of a shuffle, comparison, ...
  int target = -1;  ///< of a branch: index of an instruction
  int line = 0;     ///< of the text, from 1
};

/// A slot that has a value before the first instruction.
struct Constant {
  int slot = 0;
  uint64_t value = 0;
};
/// A slot that holds what is special to a thread.
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  lane,
  warp,
  lanemask_lt,
  cluster_rank
};
struct SpecialSlot {
  int slot = 0;
  Special special = Special::tid_x;
};

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  int slots = 0;
  std::vector<Constant> constants;
  std::vector<SpecialSlot> specials;
  struct Parameter {
    std::string name;
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  std::vector<Parameter> parameters;
  int64_t parameter_bytes = 0;
  int64_t shared_bytes = 0;  ///< of variables of fixed size
  int64_t local_bytes = 0;
  std::vector<std::string> text;  ///< of the module, by line
  uint32_t cluster = 1;           ///< blocks, one beside the other along x
  int64_t most_threads = 1024;    ///< of a block, as it promises
  /// Has products of warpgroups, mbarriers or barriers of clusters: its threads have clocks.
  bool has_clocks = false;
};

/// A variable in global memory.
struct GlobalVariable {
  std::string name;
  int64_t alignment = 1;
  std::vector<std::byte> contents;
  uint64_t address = 0;  ///< where the loader has put it
};

struct Module {
  std::string target;  ///< "sm_80"
  std::map<std::string, Kernel, std::less<>> kernels;
  std::vector<GlobalVariable> variables;
};

/// Where the shared variables of a kernel that has dynamic shared memory end.
inline constexpr int64_t kMostSharedBytes = 227 * 1024;

/// `place`: gives each global variable its address; without, a text that has some is refused. Fault: names the line.
Module parse(const std::string& text, const std::function<uint64_t(GlobalVariable&)>& place = {});

}  // namespace fullbore::ptx
