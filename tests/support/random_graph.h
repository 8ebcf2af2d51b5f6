#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"

namespace fullbore {

struct RandomGraphOptions {
  int choices = 10;           ///< things added one after the other, of one node to a whole loop
  DType dtype = DType::f64;   ///< of floating values
  bool mixed_dtypes = false;  ///< casts to and from other floating dtypes too
  bool loops = true;
  bool gradients = true;        ///< of scalars made of random values, and of those gradients
  int64_t most_elements = 400;  ///< of a value
};

struct RandomGraph {
  Graph graph;
  std::vector<Literal> inputs;  ///< one per input of the graph
};

/// A valid graph drawn from a seed: calls of every registered op (by its samples, on values that
/// exist already where the sample allows), chains of arithmetic and movement, loops of every form,
/// gradients, repeated and unused nodes, State that is updated; shapes with extents 0 and 1, odd and
/// even. On the inputs given with it, every value outside of loops' bodies is finite and at most 1e4
/// in magnitude, and values inside are kept small by construction.
RandomGraph random_graph(uint64_t seed, const RandomGraphOptions& options = {});

/// Makes a failing graph smaller while `fails` holds: drops outputs, turns results of nodes into
/// inputs that have their values, drops what is unused. Slow and thorough.
RandomGraph shrink(RandomGraph failing, const std::function<bool(const RandomGraph&)>& fails);

/// The seed, the graph and its inputs, for the report of a failure.
std::string describe(uint64_t seed, const RandomGraph& failing);

/// Calls check(seed) for `graphs` seeds from $FB_FUZZ_SEED (default 1) on, until it says that it failed: the same ones
/// on a slow machine and on a fast one. FB_FUZZ_GRAPHS is another number, FB_FUZZ_SECONDS a time in its place.
/// -> number of graphs checked
int fuzz(int graphs, const std::function<bool(uint64_t)>& check);

}  // namespace fullbore
