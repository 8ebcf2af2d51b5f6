#include "fullbore/device/cuda/cublaslt/matmuls.h"

#include <fmt/format.h>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/device/device_error.h"

namespace fullbore::cuda {
namespace {

// What NVIDIA advises for capability 9.0; other cards are content with less.
constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;
constexpr int64_t kTriedBytes = 256;
constexpr int kTriedOperands = 5;

LtType type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return kLtF32;
    case DType::bf16: return kLtBf16;
    case DType::f16: return kLtF16;
    default: FB_CHECK(false, "{} as an operand of cuBLASLt", dtype_name(dtype));
  }
}

// "" of a product that is only tried.
std::string of(const std::string& node) { return node.empty() ? "" : " of " + node; }

[[noreturn]] void throw_library_failure(const char* call, int status, const std::string& node) {
  std::string text = fmt::format("{}{}: {}", call, of(node), lt_status_text(status));
  if (!node.empty()) text += "; engine.cublaslt=false has the card's own kernels in its place";
  if (status == kLtAllocationFailed) throw MemoryError(text);
  throw DeviceError(text);
}

void check_status(int status, const char* call) {
  if (status != kLtSuccess) throw_library_failure(call, status, "");
}

void* pointer(Address address) { return reinterpret_cast<void*>(address.value); }

}  // namespace

// The library's matrices lie column after column: rows of ours are columns of its own, so that it makes the transpose of y,
// b transposed times a transposed.
LibraryMatmul::LibraryMatmul(LibraryMatmuls& library, const MatmulProblem& problem)
    : library_(library),
      problem_(problem),
      matmul_(described()),
      a_(problem.transpose_a ? layout(problem.operands, problem.m, problem.k)
                             : layout(problem.operands, problem.k, problem.m)),
      b_(problem.transpose_b ? layout(problem.operands, problem.k, problem.n)
                             : layout(problem.operands, problem.n, problem.k)),
      y_(layout(problem.result, problem.n, problem.m)),
      found_(found()) {}

LibraryMatmul::Owned<LtMatmulContents> LibraryMatmul::described() const {
  const CublasLt& calls = *library_.library_;
  LtMatmulHandle handle = nullptr;
  check_status(calls.make_matmul(&handle, problem_.tf32 ? kLtProductsInTf32 : kLtSumsInF32, kLtF32),
               "cublasLtMatmulDescCreate");
  Owned<LtMatmulContents> matmul(handle, calls.destroy_matmul);
  const auto set = [&](LtMatmulAttribute attribute, const auto& value) {
    check_status(calls.set_matmul(handle, attribute, &value, sizeof value),
                 "cublasLtMatmulDescSetAttribute");
  };
  set(kLtTransposeA, static_cast<int32_t>(problem_.transpose_b ? kLtTransposed : kLtAsItIs));
  set(kLtTransposeB, static_cast<int32_t>(problem_.transpose_a ? kLtTransposed : kLtAsItIs));
  return matmul;
}

LibraryMatmul::Owned<LtLayoutContents> LibraryMatmul::layout(DType dtype, int64_t rows,
                                                             int64_t columns) const {
  const CublasLt& calls = *library_.library_;
  LtLayoutHandle handle = nullptr;
  check_status(calls.make_layout(&handle, type_of(dtype), static_cast<uint64_t>(rows),
                                 static_cast<uint64_t>(columns), rows),
               "cublasLtMatrixLayoutCreate");
  Owned<LtLayoutContents> layout(handle, calls.destroy_layout);
  if (problem_.batches == 1) return layout;
  const auto set = [&](LtLayoutAttribute attribute, const auto& value) {
    check_status(calls.set_layout(handle, attribute, &value, sizeof value),
                 "cublasLtMatrixLayoutSetAttribute");
  };
  set(kLtBatchCount, static_cast<int32_t>(problem_.batches));
  set(kLtBatchStride, rows * columns);
  return layout;
}

LtFound LibraryMatmul::found() const {
  const CublasLt& calls = *library_.library_;
  LtPreferenceHandle handle = nullptr;
  check_status(calls.make_preference(&handle), "cublasLtMatmulPreferenceCreate");
  const Owned<LtPreferenceContents> preference(handle, calls.destroy_preference);
  const auto set = [&](int attribute, const auto& value) {
    check_status(calls.set_preference(handle, attribute, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  set(kLtMostWorkspaceBytes, kMostWorkspaceBytes);
  set(kLtReductionSchemes, kLtReduceInWorkspace);
  const auto& [a, b, c, y] = problem_.alignments;
  int attribute = kLtAlignmentA;
  for (const int64_t bytes : {b, a, c, y}) set(attribute++, static_cast<uint32_t>(bytes));
  LtFound found;
  int count = 0;
  const std::scoped_lock lock(library_.in_library_);
  library_.context_.enter();
  check_status(calls.find_algorithms(library_.handle_, matmul_.get(), b_.get(), a_.get(), y_.get(),
                                     y_.get(), handle, 1, &found, &count),
               "cublasLtMatmulAlgoGetHeuristic");
  check_status(count > 0 ? found.status : kLtNotSupported, "cublasLtMatmulAlgoGetHeuristic");
  // More than it was allowed is not in the plan.
  if (found.workspace_bytes > kMostWorkspaceBytes)
    check_status(kLtInvalidValue, "cublasLtMatmulAlgoGetHeuristic");
  return found;
}

void LibraryMatmul::check(const MatmulAddresses& where) const {
  const Address addresses[] = {where.a, where.b, problem_.adds_c ? where.c : where.y, where.y};
  for (size_t i = 0; i < problem_.alignments.size(); ++i)
    FB_CHECK(addresses[i].value % static_cast<uint64_t>(problem_.alignments[i]) == 0,
             "operand {} of a matmul at {:#x} is not aligned to {} bytes", i, addresses[i].value,
             problem_.alignments[i]);
}

int LibraryMatmul::attempt(const MatmulAddresses& where, StreamHandle stream) const {
  const float alpha = 1, beta = problem_.adds_c ? 1 : 0;
  return library_.library_->matmul(
      library_.handle_, matmul_.get(), &alpha, pointer(where.b), b_.get(), pointer(where.a),
      a_.get(), &beta, pointer(problem_.adds_c ? where.c : where.y), y_.get(), pointer(where.y),
      y_.get(), &found_.algorithm, found_.workspace_bytes > 0 ? pointer(where.workspace) : nullptr,
      found_.workspace_bytes, stream);
}

void LibraryMatmul::tell(const MatmulAddresses& where, StreamHandle stream,
                         const std::string& node) const {
  check(where);
  const std::scoped_lock lock(library_.in_library_);
  const Driver& driver = library_.context_.enter();
  const int status = attempt(where, stream);
  if (status == kLtSuccess) return;
  // The library does not say that the card has failed before.
  if (const int code = driver.wait_for_stream.attempt(stream); code != kSuccess)
    throw_failure(driver.wait_for_stream.name(), code);
  throw_library_failure("cublasLtMatmul", status, node);
}

GraphHandle LibraryMatmul::capture(const MatmulAddresses& where, const std::string& node) const {
  check(where);
  const std::scoped_lock lock(library_.in_library_);
  const Driver& driver = library_.context_.enter();
  driver.begin_capture(library_.captured_, kCaptureRelaxed);
  const int status = attempt(where, library_.captured_);
  GraphHandle graph = nullptr;
  const int code = driver.end_capture.attempt(library_.captured_, &graph);
  const auto refuse = [&] {
    if (graph != nullptr) driver.destroy_graph.attempt(graph);
  };
  if (status != kLtSuccess) {
    refuse();
    throw_library_failure("cublasLtMatmul", status, node);
  }
  if (code != kSuccess) throw_failure(driver.end_capture.name(), code);
  size_t nodes = 0;
  if (const int counted = driver.graph_nodes.attempt(graph, nullptr, &nodes); counted != kSuccess) {
    refuse();
    throw_failure(driver.graph_nodes.name(), counted);
  }
  if (nodes > 0) return graph;
  refuse();
  throw DeviceError(fmt::format("cublasLtMatmul{}: it told its stream nothing", of(node)));
}

LibraryMatmuls::LibraryMatmuls(const Context& context, std::shared_ptr<const CublasLt> library)
    : context_(context), library_(std::move(library)) {
  const Driver& driver = context_.enter();
  check_status(library_->create(&handle_), "cublasLtCreate");
  try {
    driver.make_stream(&captured_, kStreamOfItsOwn);
    driver.allocate(&tried_operands_, static_cast<size_t>(kTriedOperands * kTriedBytes));
  } catch (...) {
    close();
    throw;
  }
}

LibraryMatmuls::~LibraryMatmuls() { close(); }

void LibraryMatmuls::close() noexcept {
  const Driver* const driver = context_.enter_to_destroy();
  if (driver == nullptr) return;
  known_.clear();
  if (tried_operands_ != 0) driver->free.attempt(tried_operands_);
  if (captured_ != nullptr) driver->destroy_stream.attempt(captured_);
  library_->destroy(handle_);
}

std::string LibraryMatmuls::text() const {
  return fmt::format("cuBLASLt {}", library_->version_text());
}

std::shared_ptr<const LibraryMatmul> LibraryMatmuls::find(const MatmulProblem& problem,
                                                          std::string* why_not) {
  const std::scoped_lock lock(mutex_);
  const auto [found, is_new] = known_.try_emplace(problem);
  if (is_new) found->second = tried(problem);
  if (!found->second.matmul) *why_not = found->second.why_not;
  return found->second.matmul;
}

LibraryMatmuls::Known LibraryMatmuls::tried(const MatmulProblem& problem) {
  const auto tried_operand = [&](int64_t which) {
    return Address{tried_operands_} + which * kTriedBytes;
  };
  try {
    auto matmul = std::make_shared<const LibraryMatmul>(*this, problem);
    const GraphHandle graph = matmul->capture(
        {tried_operand(0), tried_operand(1), tried_operand(2), tried_operand(3), tried_operand(4)},
        "");
    context_.enter().destroy_graph(graph);
    return {std::move(matmul), ""};
  } catch (const Error& error) {
    return {nullptr, error.what()};
  }
}

}  // namespace fullbore::cuda
