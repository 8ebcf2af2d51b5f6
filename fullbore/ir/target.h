#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/dtype.h"
#include "fullbore/ir/graph.h"

namespace fullbore {

/// How much is compiled before the first step. The fewer things, the sooner it comes and the slower each step is.
enum class CompileEffort : uint8_t {
  off,  ///< each op by its reference, one after another: no generated code, no fusion; for debugging
  fast,  ///< passes and code that are soon made
  full
};

/// "off", "fast", "full".
std::string_view compile_effort_name(CompileEffort effort);
std::optional<CompileEffort> parse_compile_effort(std::string_view name);

/// May activations be made a second time for the gradient, instead of being kept?
enum class Recompute : uint8_t {
  off,
  automatic,  ///< as few as keep the arena within Target::arena_bytes
  full        ///< wherever it saves memory
};

/// Which matmuls may have a chain of elementwise arithmetic behind them in one kernel
/// (passes/fusion/fuse_epilogues.h).
struct EpilogueTarget {
  std::set<DType> operand_dtypes =
      {};  ///< dtypes of what is multiplied; none: there is no such kernel
  /// A matmul of fewer rows by a transposed matrix is left to kernels of its own.
  int64_t fewest_rows = 1;
  /// Bytes of a matmul and its operands at most. Larger ones gain nothing: a launch is a small part of them,
  /// and their rows do not stay near a worker, whole, while reductions walk over them.
  int64_t near_bytes = 0;
};

/// Which right operands of matmuls are better prepacked (ops/prepack.cpp) than packed by the
/// kernel of each matmul (passes/gemm/prepack_operands.h).
struct PackingTarget {
  struct Layout {
    int64_t columns = 1;  ///< of a block
    int64_t vnni = 1;     ///< elements of depth that lie together
    /// Rows of a matmul from which on a prepacked operand is faster than the matrix as it lies.
    int64_t fewest_rows = 1;
    int64_t fewest_rows_transposed = 1;  ///< the same if it lies transposed
    /// Is one reader enough for an operand that is prepacked once for all runs? Measured: yes for bf16 as VNNI pairs; not where
    /// it takes more bytes prepacked than the matrix, nor for f32, whose matmuls of few rows wait for memory either way.
    bool kept_for_one = false;
    /// Not 0: its kernel takes whole blocks of columns of one matrix whose depth is a multiple of this, by rows that lie as
    /// they are; what is otherwise is faster as it lies.
    int64_t whole_depth = 0;
    auto operator<=>(const Layout&) const = default;
  };
  std::map<DType, Layout> layouts = {};  ///< by dtype of the matrix; none: there is no such kernel
  /// Rows beyond which copying the matrix is too small a part of the matmul to care.
  int64_t most_rows = 0;
  /// How often a prepacked operand must be read: packing apart goes through memory, and the kernel's own copy does not.
  int64_t fewest_uses = 1;
};

/// What passes may know of a device: plain data that a device fills in, so that no pass includes a
/// device and no device a pass. And what is asked of the device: precision, memory.
struct Target {
  std::string name;  ///< "cpu", "null", "interpreter"
  /// Composite ops that have a kernel of their own, and for which dtypes of their first operand;
  /// none named: all. Those of other dtypes are decomposed.
  std::map<const OpDef*, std::set<DType>> native_ops;
  bool native_bf16 = false;  ///< bf16 contractions run faster than f32
  int threads = 1;
  EpilogueTarget epilogues = {};
  PackingTarget packing = {};
  /// Are inputs of role `copy` kept from run to run, and made anew when somebody has written what they are copies of?
  bool keeps_derived_weights = false;
  /// And of frozen parameters? Not where they are mapped from files: the copies would be a second model in memory.
  bool copies_frozen_weights = true;

  /// f32: everything as the model says. bf16 or f16: of contractions, and of what kernels hand to one
  /// another (passes/precision/lower_precision.h).
  DType precision = DType::f32;
  /// Does the device have products of f32 operands rounded to tf32, 10 bits of mantissa, with sums in f32?
  bool offers_tf32 = false;
  /// They are asked for: `precision` is f32 then, and matmuls are marked (ops/matmul.cpp, attribute tf32).
  bool tf32 = false;
  /// Why the device multiplies no 8-bit floats (ops/fp8_matmul.h), which are decomposed there; "": it does.
  std::string why_no_fp8 = "tensor cores of NVIDIA's cards alone do so";
  /// Elements from which on a value takes half the bytes of f32 to some profit; a scalar is often what many others are
  /// multiplied by.
  int64_t narrow_from = 16;
  /// Modules, by patterns of their scopes, that stay f32 even then.
  std::vector<std::string> fp32_scopes = {};

  /// Composites that make logits a block of rows at a time make no fewer at once than take so many bytes in f32. What suits a
  /// processor's cache is too little work for a card, each block of which reads and writes the gradient of all classes.
  int64_t logits_bytes = 0;

  /// Does the device have kernels that compute each row alike, whatever stands beside it?
  bool offers_row_invariance = false;
  /// They are asked for: the bits of a row must not depend on how many rows there are, nor on what other kernels work on it.
  bool row_invariant = false;

  /// Is it a card, whose matmuls NVIDIA's library can make where it is found?
  bool offers_cublaslt = false;
  bool cublaslt = false;  ///< it is asked for: bits are the library's

  /// Passes that need more effort do not run, and kernels are made with no more.
  CompileEffort compile = CompileEffort::full;
  Recompute recompute = Recompute::off;
  /// Do moments lie in the host's memory? The plan has copies around what reads and writes them then.
  bool moments_in_host = false;
  int64_t arena_bytes = 0;  ///< of Recompute::automatic: the estimate to stay within; 0: any

  /// Is there a kernel for this composite?
  bool is_native(const Graph& graph, const Node& node) const;
  /// The same of a first operand of that dtype.
  bool is_native(const OpDef& op, DType dtype) const;
};

}  // namespace fullbore
