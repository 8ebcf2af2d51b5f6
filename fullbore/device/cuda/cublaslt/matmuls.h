#pragma once
#include <array>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "fullbore/base/dtype.h"
#include "fullbore/device/address.h"
#include "fullbore/device/cuda/cublaslt/library.h"
#include "fullbore/device/cuda/driver/context.h"

namespace fullbore::cuda {

/// y [batches, m, n] = a b, and c of y's extents added to it. Rows lie one after another.
struct MatmulProblem {
  DType operands = DType::bf16;  ///< of a and b: f32, bf16, f16
  DType result = DType::bf16;    ///< of y and c: the operands', or f32
  bool transpose_a = false;      ///< a lies as [batches, k, m]
  bool transpose_b = false;      ///< b lies as [batches, n, k]
  bool tf32 = false;             ///< operands of f32 may be rounded to tf32
  bool adds_c = false;
  int64_t m = 0, n = 0, k = 0, batches = 1;
  /// Bytes: addresses of a, b, c and y are multiples of these powers of two.
  std::array<int64_t, 4> alignments = {256, 256, 256, 256};
  auto operator<=>(const MatmulProblem&) const = default;
};

/// Where things are on the card. `c`: where the problem has it.
struct MatmulAddresses {
  Address a, b, c, y, workspace;
};

class LibraryMatmuls;

/// How the library goes about a problem: the algorithm that it names first for this card, asked once.
class LibraryMatmul {
 public:
  LibraryMatmul(LibraryMatmuls& library, const MatmulProblem& problem);
  LibraryMatmul(const LibraryMatmul&) = delete;
  LibraryMatmul& operator=(const LibraryMatmul&) = delete;

  int64_t workspace_bytes() const { return static_cast<int64_t>(found_.workspace_bytes); }
  /// Has the library make its launches in the stream. DeviceError and MemoryError name the call and `node`.
  void tell(const MatmulAddresses& where, StreamHandle stream, const std::string& node) const;
  /// The same as a graph, which the caller destroys. `node`: "" where it is only tried.
  GraphHandle capture(const MatmulAddresses& where, const std::string& node) const;

 private:
  template <class Contents>
  using Owned = std::unique_ptr<Contents, int (*)(Contents*)>;
  Owned<LtMatmulContents> described() const;
  Owned<LtLayoutContents> layout(DType dtype, int64_t rows, int64_t columns) const;
  LtFound found() const;
  void check(const MatmulAddresses& where) const;
  /// The library's status.
  int attempt(const MatmulAddresses& where, StreamHandle stream) const;

  LibraryMatmuls& library_;
  MatmulProblem problem_;
  Owned<LtMatmulContents> matmul_;
  Owned<LtLayoutContents> a_, b_, y_;  ///< c lies as y does
  LtFound found_;
};

/// The library's products on a card. Everything here may be called by several threads at once: one at a time is in the library,
/// whose search for an algorithm fails while a stream is captured (13.3).
class LibraryMatmuls {
 public:
  /// DeviceError, MemoryError: the library does not work with this card. `context` outlives it.
  LibraryMatmuls(const Context& context, std::shared_ptr<const CublasLt> library);
  ~LibraryMatmuls();
  LibraryMatmuls(const LibraryMatmuls&) = delete;
  LibraryMatmuls& operator=(const LibraryMatmuls&) = delete;

  /// Null, and why: the library has no algorithm, or does not make it. It is tried: told to a stream that is captured,
  /// so that nothing runs. As long as this lives.
  std::shared_ptr<const LibraryMatmul> find(const MatmulProblem& problem, std::string* why_not);
  std::string text() const;  ///< "cuBLASLt 13.0.2"

 private:
  friend class LibraryMatmul;
  struct Known {
    std::shared_ptr<const LibraryMatmul> matmul;
    std::string why_not;
  };
  Known tried(const MatmulProblem& problem);
  void close() noexcept;

  const Context& context_;
  std::shared_ptr<const CublasLt> library_;
  LtHandle handle_ = nullptr;
  StreamHandle captured_ = nullptr;   ///< whatever it is told is captured
  DevicePointer tried_operands_ = 0;  ///< addresses of a product that is tried
  std::mutex mutex_;                  ///< of known_
  std::map<MatmulProblem, Known> known_;
  std::mutex in_library_;
};

}  // namespace fullbore::cuda
