// cuBLASLt over the fake driver: a product is one operation of its stream, and keeps to what NVIDIA documents of dtypes, layouts,
// alignments and workspaces. Sums are made in an order of its own.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>

#include "fullbore/base/dtype.h"
#include "fullbore/device/cuda/cublaslt/interface.h"
#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/entry.h"

using fullbore::cuda::LtAlgorithm;
using fullbore::cuda::LtFound;
using fullbore::cuda::LtHandle;
using fullbore::cuda::LtLayoutHandle;
using fullbore::cuda::LtMatmulHandle;
using fullbore::cuda::LtPreferenceHandle;
using fullbore::cuda::StreamHandle;
using fullbore::fake_cuda::Card;
using fullbore::fake_cuda::current_card;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::machine;
using fullbore::fake_cuda::Stream;
namespace cuda = fullbore::cuda;

namespace {

constexpr uint64_t kMagic = 0x6c74'616c'676f'7269;
// What loads of a workspace are made of.
constexpr int64_t kWidestVector = 16;

struct Library {
  int card = -1;
};

struct Matmul {
  int compute = 0;
  int32_t transpose_a = cuda::kLtAsItIs, transpose_b = cuda::kLtAsItIs;
};

struct Layout {
  int type = 0;
  int64_t rows = 0, columns = 0, stride = 0;
  int32_t batches = 1;
  int64_t batch_stride = 0;

  int64_t element_bytes() const { return type == cuda::kLtF32 ? 4 : 2; }
  int64_t bytes() const {
    return ((batches - 1) * batch_stride + (columns - 1) * stride + rows) * element_bytes();
  }
};

struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t schemes = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

/// What is multiplied and added, and all else that an algorithm is for.
struct Problem {
  Matmul matmul;
  Layout a, b, c, d;

  bool transposes_a() const { return matmul.transpose_a == cuda::kLtTransposed; }
  bool transposes_b() const { return matmul.transpose_b == cuda::kLtTransposed; }
  int64_t depth() const { return transposes_a() ? a.rows : a.columns; }

  /// FNV-1a.
  uint64_t digest() const {
    uint64_t digest = 0xcbf29ce484222325;
    const auto add = [&](int64_t number) {
      digest = (digest ^ static_cast<uint64_t>(number)) * 0x100000001b3;
    };
    add(matmul.compute), add(matmul.transpose_a), add(matmul.transpose_b);
    for (const Layout& each : {a, b, c, d})
      add(each.type), add(each.rows), add(each.columns), add(each.stride), add(each.batches),
          add(each.batch_stride);
    return digest;
  }

  /// Source: "cuBLAS", tables of cublasLtMatmul(): types of A and B, C and D, by which scale factors are f32.
  int check() const {
    const bool is_narrow = a.type == cuda::kLtBf16 || a.type == cuda::kLtF16;
    const bool is_wide = a.type == cuda::kLtF32;
    const bool is_known = matmul.compute == cuda::kLtSumsInF32 ||
                          (matmul.compute == cuda::kLtProductsInTf32 && is_wide);
    if (!is_known || !(is_narrow || is_wide) || b.type != a.type || c.type != d.type ||
        (d.type != a.type && d.type != cuda::kLtF32))
      return cuda::kLtNotSupported;
    const int64_t m = transposes_a() ? a.columns : a.rows;
    const int64_t n = transposes_b() ? b.rows : b.columns;
    const int64_t k = transposes_b() ? b.columns : b.rows;
    if (k != depth() || d.rows != m || d.columns != n || c.rows != m || c.columns != n)
      return cuda::kLtInvalidValue;
    for (const Layout& each : {a, b, c, d})
      if (each.stride < each.rows || each.rows <= 0 || each.columns <= 0 ||
          each.batches != a.batches ||
          (each.batches > 1 && each.batch_stride < (each.columns - 1) * each.stride + each.rows))
        return cuda::kLtInvalidValue;
    return cuda::kLtSuccess;
  }
};

template <class T, class Handle>
T& at(Handle handle) {
  return *reinterpret_cast<T*>(handle);
}

/// As the library tells what its calls of the driver have met.
int status_of(const Entry& entry) {
  if (entry.code() == cuda::kSuccess) return cuda::kLtSuccess;
  if (machine().lost != 0) return cuda::kLtExecutionFailed;
  return entry.code() == cuda::kInvalidContext ? int{cuda::kLtNotInitialized} : entry.code();
}

template <class T, class Handle>
int make(const Entry& entry, Handle* handle, T value) {
  if (const int status = status_of(entry); status != cuda::kLtSuccess) return status;
  *handle = reinterpret_cast<Handle>(machine().own<T>(std::move(value)));
  ++machine().told.lt_objects;
  return cuda::kLtSuccess;
}

template <class Handle>
int destroy(const Entry& entry, Handle handle) {
  if (const int status = status_of(entry); status != cuda::kLtSuccess) return status;
  if (machine().owned.erase(reinterpret_cast<void*>(handle)) == 0) return cuda::kLtInvalidValue;
  --machine().told.lt_objects;
  return cuda::kLtSuccess;
}

/// An attribute has the size of its type.
template <class T>
int set(T& place, const void* value, size_t bytes) {
  if (bytes != sizeof place) return cuda::kLtInvalidValue;
  std::memcpy(&place, value, bytes);
  return cuda::kLtSuccess;
}

std::byte* bytes_at(Card& card, uint64_t address, int64_t bytes) {
  const auto found = card.memory.at(address, bytes);
  if (found.empty())
    machine().fail(cuda::kIllegalAddress,
                   fmt::format("{} bytes at {:#x} of a library's product are in no allocation",
                               bytes, address));
  return found.empty() ? nullptr : found.data();
}

float load(const std::byte* from, int type, int64_t index) {
  if (type == cuda::kLtF32) {
    float value = 0;
    std::memcpy(&value, from + index * 4, 4);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from + index * 2, 2);
  return type == cuda::kLtBf16 ? fullbore::bf16_to_f32(bits) : fullbore::f16_to_f32(bits);
}

void store(std::byte* to, int type, int64_t index, float value) {
  if (type == cuda::kLtF32) {
    std::memcpy(to + index * 4, &value, 4);
    return;
  }
  const uint16_t bits =
      type == cuda::kLtBf16 ? fullbore::f32_to_bf16(value) : fullbore::f32_to_f16(value);
  std::memcpy(to + index * 2, &bits, 2);
}

// To nearest, ties away from zero.
float rounded_to_tf32(float x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000) & ~uint32_t{0x1fff});
}

struct Product {
  Problem problem;
  float alpha = 1, beta = 0;
  uint64_t a = 0, b = 0, c = 0, d = 0, workspace = 0;
  int64_t workspace_bytes = 0;

  void make(Card& card) const {
    const Problem& p = problem;
    // Whatever else lies in its workspace is gone.
    if (workspace_bytes > 0)
      if (std::byte* const scratch = bytes_at(card, workspace, workspace_bytes))
        std::memset(scratch, 0x7f, static_cast<size_t>(workspace_bytes));
    const std::byte* const left = bytes_at(card, a, p.a.bytes());
    const std::byte* const right = bytes_at(card, b, p.b.bytes());
    const std::byte* const added = beta != 0 ? bytes_at(card, c, p.c.bytes()) : nullptr;
    std::byte* const result = bytes_at(card, d, p.d.bytes());
    if (machine().lost != 0) return;
    for (int64_t batch = 0; batch < p.d.batches; ++batch)
      for (int64_t column = 0; column < p.d.columns; ++column)
        for (int64_t row = 0; row < p.d.rows; ++row) {
          float y = alpha * sum(left, right, batch, row, column);
          if (added != nullptr)
            y += beta * load(added, p.c.type, batch * p.c.batch_stride + column * p.c.stride + row);
          store(result, p.d.type, batch * p.d.batch_stride + column * p.d.stride + row, y);
        }
    ++machine().told.lt_products;
  }

 private:
  // Two partial sums, as of a product that is split.
  float sum(const std::byte* left, const std::byte* right, int64_t batch, int64_t row,
            int64_t column) const {
    const Problem& p = problem;
    const bool is_tf32 = p.matmul.compute == cuda::kLtProductsInTf32;
    float sums[2] = {0, 0};
    for (int64_t i = 0; i < p.depth(); ++i) {
      float x = load(left, p.a.type,
                     batch * p.a.batch_stride +
                         (p.transposes_a() ? row * p.a.stride + i : i * p.a.stride + row));
      float y = load(right, p.b.type,
                     batch * p.b.batch_stride +
                         (p.transposes_b() ? i * p.b.stride + column : column * p.b.stride + i));
      if (is_tf32) x = rounded_to_tf32(x), y = rounded_to_tf32(y);
      sums[i * 2 / p.depth()] += x * y;
    }
    return sums[0] + sums[1];
  }
};

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return static_cast<size_t>(machine().told.lt_version); }

int cublasLtCreate(LtHandle* handle) {
  const Entry entry("cublasLtCreate");
  return make(entry, handle, Library{.card = current_card});
}
int cublasLtDestroy(LtHandle handle) { return destroy(Entry("cublasLtDestroy"), handle); }

int cublasLtMatmulDescCreate(LtMatmulHandle* handle, int compute, int scale_type) {
  const Entry entry("cublasLtMatmulDescCreate", Entry::Needs::nothing);
  if (scale_type != cuda::kLtF32) return cuda::kLtNotSupported;
  return make(entry, handle, Matmul{.compute = compute});
}
int cublasLtMatmulDescDestroy(LtMatmulHandle handle) {
  return destroy(Entry("cublasLtMatmulDescDestroy", Entry::Needs::nothing), handle);
}
int cublasLtMatmulDescSetAttribute(LtMatmulHandle handle, int attribute, const void* value,
                                   size_t bytes) {
  const Entry entry("cublasLtMatmulDescSetAttribute", Entry::Needs::nothing);
  if (const int status = status_of(entry); status != cuda::kLtSuccess) return status;
  auto& matmul = at<Matmul>(handle);
  switch (attribute) {
    case cuda::kLtTransposeA: return set(matmul.transpose_a, value, bytes);
    case cuda::kLtTransposeB: return set(matmul.transpose_b, value, bytes);
    default: return cuda::kLtInvalidValue;
  }
}

int cublasLtMatrixLayoutCreate(LtLayoutHandle* handle, int type, uint64_t rows, uint64_t columns,
                               int64_t stride) {
  const Entry entry("cublasLtMatrixLayoutCreate", Entry::Needs::nothing);
  return make(entry, handle,
              Layout{.type = type,
                     .rows = static_cast<int64_t>(rows),
                     .columns = static_cast<int64_t>(columns),
                     .stride = stride});
}
int cublasLtMatrixLayoutDestroy(LtLayoutHandle handle) {
  return destroy(Entry("cublasLtMatrixLayoutDestroy", Entry::Needs::nothing), handle);
}
int cublasLtMatrixLayoutSetAttribute(LtLayoutHandle handle, int attribute, const void* value,
                                     size_t bytes) {
  const Entry entry("cublasLtMatrixLayoutSetAttribute", Entry::Needs::nothing);
  if (const int status = status_of(entry); status != cuda::kLtSuccess) return status;
  auto& layout = at<Layout>(handle);
  switch (attribute) {
    case cuda::kLtBatchCount: return set(layout.batches, value, bytes);
    case cuda::kLtBatchStride: return set(layout.batch_stride, value, bytes);
    default: return cuda::kLtInvalidValue;
  }
}

int cublasLtMatmulPreferenceCreate(LtPreferenceHandle* handle) {
  const Entry entry("cublasLtMatmulPreferenceCreate", Entry::Needs::nothing);
  return make(entry, handle, Preference());
}
int cublasLtMatmulPreferenceDestroy(LtPreferenceHandle handle) {
  return destroy(Entry("cublasLtMatmulPreferenceDestroy", Entry::Needs::nothing), handle);
}
int cublasLtMatmulPreferenceSetAttribute(LtPreferenceHandle handle, int attribute,
                                         const void* value, size_t bytes) {
  const Entry entry("cublasLtMatmulPreferenceSetAttribute", Entry::Needs::nothing);
  if (const int status = status_of(entry); status != cuda::kLtSuccess) return status;
  auto& preference = at<Preference>(handle);
  if (attribute >= cuda::kLtAlignmentA && attribute < cuda::kLtAlignmentA + 4)
    return set(preference.alignments[attribute - cuda::kLtAlignmentA], value, bytes);
  switch (attribute) {
    case cuda::kLtMostWorkspaceBytes: return set(preference.workspace_bytes, value, bytes);
    case cuda::kLtReductionSchemes: return set(preference.schemes, value, bytes);
    default: return cuda::kLtInvalidValue;
  }
}

// While a stream is captured it fails, as that of 13.3 does. Partial sums in the result itself would be another order.
int cublasLtMatmulAlgoGetHeuristic(LtHandle handle, LtMatmulHandle matmul, LtLayoutHandle a,
                                   LtLayoutHandle b, LtLayoutHandle c, LtLayoutHandle d,
                                   LtPreferenceHandle preferred, int most, LtFound* found,
                                   int* count) {
  const Entry entry("cublasLtMatmulAlgoGetHeuristic");
  if (const int status = status_of(entry); status != cuda::kLtSuccess) return status;
  ++machine().told.lt_searches;
  *count = 0;
  if (machine().captures > 0) return cuda::kLtInternalError;
  const Problem problem{at<Matmul>(matmul), at<Layout>(a), at<Layout>(b), at<Layout>(c),
                        at<Layout>(d)};
  const auto& preference = at<Preference>(preferred);
  if (at<Library>(handle).card != current_card || most < 1 || preference.schemes != 2)
    return cuda::kLtInvalidValue;
  if (const int status = problem.check(); status != cuda::kLtSuccess) return status;
  if (problem.d.rows * problem.d.columns < machine().told.lt_smallest) return cuda::kLtNotSupported;
  const auto wanted = static_cast<uint64_t>(machine().told.lt_workspace);
  *found = {};
  found->workspace_bytes = wanted <= preference.workspace_bytes ? wanted : 0;
  found->status = cuda::kLtSuccess;
  uint64_t* const data = found->algorithm.data;
  data[0] = kMagic;
  data[1] = problem.digest();
  data[2] = found->workspace_bytes;
  data[3] = preference.alignments[0];
  data[4] = preference.alignments[1];
  data[5] = preference.alignments[2];
  data[6] = preference.alignments[3];
  *count = 1;
  return cuda::kLtSuccess;
}

int cublasLtMatmul(LtHandle handle, LtMatmulHandle matmul, const void* alpha, const void* a,
                   LtLayoutHandle layout_a, const void* b, LtLayoutHandle layout_b,
                   const void* beta, const void* c, LtLayoutHandle layout_c, void* d,
                   LtLayoutHandle layout_d, const LtAlgorithm* algorithm, void* workspace,
                   size_t workspace_bytes, StreamHandle stream) {
  const Entry entry("cublasLtMatmul");
  if (const int status = status_of(entry); status != cuda::kLtSuccess) return status;
  const auto address = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer); };
  Product product{.problem = {at<Matmul>(matmul), at<Layout>(layout_a), at<Layout>(layout_b),
                              at<Layout>(layout_c), at<Layout>(layout_d)},
                  .a = address(a),
                  .b = address(b),
                  .c = address(c),
                  .d = address(d),
                  .workspace = address(workspace)};
  std::memcpy(&product.alpha, alpha, sizeof product.alpha);
  std::memcpy(&product.beta, beta, sizeof product.beta);
  if (at<Library>(handle).card != current_card) return cuda::kLtInvalidValue;
  if (const int status = product.problem.check(); status != cuda::kLtSuccess) return status;
  const uint64_t* const data = algorithm->data;
  if (data[0] != kMagic || data[1] != product.problem.digest() || workspace_bytes < data[2])
    return cuda::kLtInvalidValue;
  product.workspace_bytes = static_cast<int64_t>(data[2]);
  // Of the card's own memory, which alone is looked at before the product is made.
  Card& card = entry.card();
  const auto is_of_card = [&](uint64_t there) { return !card.memory.at(there, 1).empty(); };
  const uint64_t operands[] = {product.a, product.b, product.c, product.d};
  for (size_t i = 0; i < 4; ++i)
    // An algorithm may rely on what it was promised of addresses.
    if (!is_of_card(operands[i]) || operands[i] % data[3 + i] != 0) return cuda::kLtInvalidValue;
  if (product.workspace_bytes > 0 &&
      (!is_of_card(product.workspace) || product.workspace % kWidestVector != 0))
    return cuda::kLtInvalidValue;
  if (machine().told.lt_is_silent != 0) return cuda::kLtSuccess;
  machine().enqueue(
      at<Stream>(stream), [product, &card] { product.make(card); }, {}, "cublaslt");
  return cuda::kLtSuccess;
}

}  // extern "C"
