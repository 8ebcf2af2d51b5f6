#pragma once
#include <cstdint>

/// What the fake driver's cards are, which calls fail, and what there is of things that have to be given back. A test
/// loads the library by its path too, and changes this by fake_cuda(). A command is told by the environment:
/// FULLBORE_FAKE_CUDA="cards=2,capability=89,seed=3,fail_at=7,fail_code=2,fail_call=cuMemAlloc_v2".
struct FakeCuda {
  int64_t version = 12040;
  int64_t start = 0;  ///< what cuInit returns
  int64_t cards = 1;
  int64_t capability = 90;
  int64_t multiprocessors = 4;
  int64_t shared_bytes = 227 << 10;
  int64_t memory_bytes = int64_t{4} << 30;
  char card_name[64] = {};  ///< "": "Fake 90", by its capability
  int64_t compiler = 1;     ///< 0: the driver has none, and takes machine code alone
  /// 0: nothing happens before somebody waits for it, and then the least that has to. Else what nothing orders happens
  /// in an order that follows from it.
  uint64_t seed = 0;
  // The call that fails: the fail_at-th from now on (1: the next), of those of that name if there is one. 0: none.
  int64_t fail_at = 0;
  int64_t fail_code = 999;
  char fail_call[64] = {};
  // The call that orders things and does nothing, as if its caller had forgotten it: the lose_at-th from now on of those
  // that wait in the host or in a stream, or record an event. 0: none.
  int64_t lose_at = 0;
  int64_t orders = 0;        ///< such calls so far
  char lost_order[64] = {};  ///< the call that was lost

  // Of graphs: nodes of that name ("clear_rows", a kernel's, "copy", "copy_in" and "copy_out" of the host's memory, "fill" or "conditional") do nothing, and those of one
  // name do not follow those of another ("decide_iteration>conditional"), as if their caller had forgotten it.
  char lose_nodes[64] = {};
  char lose_edges[128] = {};
  int64_t lost_in_graphs = 0;  ///< nodes and edges

  // Of cuBLASLt, which is in the same library.
  int64_t lt_version = 130002;  ///< 13.0.2
  int64_t lt_smallest = 0;      ///< it has no algorithm for results of fewer elements
  int64_t lt_workspace = 4096;  ///< bytes that its algorithms want, where they may have them
  int64_t lt_is_silent = 0;     ///< 1: products tell the stream nothing
  int64_t lt_objects = 0;       ///< handles, descriptions, layouts and preferences that exist now
  int64_t lt_searches = 0, lt_products = 0;  ///< so far; products that were made

  int64_t calls = 0;     ///< so far
  char failed[64] = {};  ///< the call that was made to fail
  int64_t allocations = 0, pinned = 0, streams = 0, events = 0, modules = 0, links = 0, graphs = 0,
          contexts = 0;  ///< that exist now
  // Of code, so far: PTX that was compiled, machine code that was loaded, and that was refused.
  int64_t compilations = 0, code_loads = 0, code_refusals = 0;
  int64_t allocated_bytes = 0;
  int64_t launches = 0, instructions = 0;  ///< of kernels, so far
  int64_t graph_launches = 0;
  int64_t conditional_bodies = 0;  ///< that were made, so far
  char fault[1024] = {};           ///< what a kernel or a copy did that a card does not allow
};
