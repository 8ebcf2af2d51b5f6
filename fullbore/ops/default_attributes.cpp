#include "fullbore/ops/default_attributes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/ops/channel_norms.h"
#include "fullbore/ops/convolution.h"
#include "fullbore/ops/fp8_matmul.h"
#include "fullbore/ops/ops.h"
#include "fullbore/ops/packed_attention.h"
#include "fullbore/ops/paged_attention.h"
#include "fullbore/ops/pooling.h"
#include "fullbore/ops/recurrent.h"

namespace fullbore {
namespace {

/// Operands and arguments of one of the two calls.
class Call {
 public:
  Call(GraphBuilder& builder, int64_t factor) : builder_(builder), factor_(factor) {}

  /// A number that the two calls do not have in common.
  int64_t operator()(int64_t number) const { return number * factor_; }
  bool is_second() const { return factor_ > 1; }
  GraphBuilder& builder() const { return builder_; }
  /// An operand of such extents, times the call's factor.
  Tensor tensor(std::vector<int64_t> extents, DType dtype = DType::f32) {
    for (int64_t& extent : extents) extent *= factor_;
    return builder_.input("x" + std::to_string(operands_++), Role::batch,
                          {dtype, Shape(std::move(extents))});
  }
  /// An operand of two axes, or of three.
  Tensor of_any_rank() { return is_second() ? tensor({2, 3, 5}) : tensor({3, 5}); }

 private:
  GraphBuilder& builder_;
  int64_t factor_;
  int operands_ = 0;
};

struct DefaultCall {
  std::string_view op;
  void (*make)(Call& call);
};

// Each function with its required arguments alone, which depend on the call.
const DefaultCall kCalls[] = {
    {"attention",
     [](Call& call) {
       const Tensor q = call.tensor({1, 2, 3, 4});
       attention(q, q, q);
     }},
    {"batch_norm",
     [](Call& call) {
       batch_norm(call.tensor({3, 2, 5}), call.tensor({2}), call.tensor({2}));
     }},
    {"causal_convolution",
     [](Call& call) {
       causal_convolution(call.tensor({2, 5, 3}), call.tensor({3, 4}), call.tensor({3}));
     }},
    {"convolution",
     [](Call& call) {
       convolution(call.tensor({1, 2, 7, 8}), call.tensor({3, 2, 2, 3}));
     }},
    {"cross_entropy",
     [](Call& call) {
       cross_entropy(call.tensor({3, 5}), call.tensor({3}, DType::i32));
     }},
    {"cumsum", [](Call& call) { cumsum(call.of_any_rank(), call.is_second() ? 2 : 0); }},
    {"fp8_matmul",
     [](Call& call) {
       const Tensor scale = call.tensor({});
       fp8_matmul(call.tensor({3, 3}), call.tensor({3, 3}), scale, scale);
     }},
    {"gelu", [](Call& call) { gelu(call.tensor({3})); }},
    {"layer_norm",
     [](Call& call) {
       layer_norm(call.tensor({3, 5}), call.tensor({5}));
     }},
    {"linear_cross_entropy",
     [](Call& call) {
       linear_cross_entropy(call.tensor({3, 4}), call.tensor({5000, 4}),
                            call.tensor({3}, DType::i32));
     }},
    {"log_softmax", [](Call& call) { log_softmax(call.of_any_rank()); }},
    {"log_sum_exp", [](Call& call) { log_sum_exp(call.of_any_rank()); }},
    {"loop",
     [](Call& call) {
       const Tensor x = call.tensor({2});
       std::vector<Tensor> carried = {x};
       if (call.is_second()) carried.push_back(x);
       loop(call.builder(), carried,
            call.is_second() ? std::vector<Tensor>{call.tensor({2})} : std::vector<Tensor>{},
            {.iterations = call(2)},
            [](const LoopBody& body) { return IterationResults{.carried = body.carried}; });
     }},
    {"matmul",
     [](Call& call) {
       matmul(call.tensor({3, 3}), call.tensor({3, 3}));
     }},
    {"max_pool",
     [](Call& call) {
       max_pool(call.tensor({1, 2, 8, 8}), {.kernel = call(2)});
     }},
    {"packed_attention",
     [](Call& call) {
       packed_attention(call.tensor({1, 5, 6, 4}), call(2));
     }},
    {"pad",
     [](Call& call) { pad(call.of_any_rank(), call.is_second() ? 2 : 0, call(1), call(2)); }},
    {"paged_attention",
     [](Call& call) {
       const Tensor pool = call.tensor({64, 4});
       const Tensor seen = call.tensor({3}, DType::i64);
       // One group of keys, as the defaults have it: each of its heads as wide as the pool.
       paged_attention(call.tensor({3, 2, 4}), pool, pool, call.tensor({3, 2}, DType::i32), seen);
     }},
    {"rms_norm",
     [](Call& call) {
       rms_norm(call.tensor({3, 5}), call.tensor({5}));
     }},
    {"slice",
     [](Call& call) { slice(call.of_any_rank(), call.is_second() ? 2 : 0, call(1), call(2)); }},
    {"softmax", [](Call& call) { softmax(call.of_any_rank()); }},
    {"sort",
     [](Call& call) {
       sort(call.tensor({3, 5}));
     }},
    {"ssd",
     [](Call& call) {
       const Tensor b = call.tensor({1, 8, 1, 3});
       ssd(call.tensor({1, 8, 2, 4}), call.tensor({1, 8, 2}), call.tensor({2}), b, b,
           call.tensor({2}));
     }},
    {"wkv6",
     [](Call& call) {
       const Tensor r = call.tensor({1, 8, 2, 4});
       wkv6(r, r, r, r, call.tensor({2, 4}));
     }},
};

/// What one call has made.
struct Made {
  Attributes attributes;
  int64_t rank = 0;  ///< of the first operand
};

Made made_by(const DefaultCall& known, int64_t factor) {
  GraphBuilder builder("defaults");
  Call call(builder, factor);
  known.make(call);
  const Graph& graph = builder.graph();
  for (const Node& node : graph.nodes())
    if (node.op->name == known.op)
      return {node.attributes, graph.type(node.inputs.front()).shape.rank()};
  FB_CHECK(false, "the function of '{}' makes no such node", known.op);
  return {};
}

bool is_last_axis(const Made& made, const std::string& name) {
  return name == "axis" && made.attributes.get<int64_t>(name) == made.rank - 1;
}

// Attributes that some sample of the op has, by name.
std::vector<std::string> attribute_names(const OpDef& op) {
  std::vector<std::string> names;
  for (const Sample& sample : op.samples())
    for (const Attributes::Entry& entry : sample.attributes.entries())
      if (std::ranges::find(names, entry.name) == names.end()) names.push_back(entry.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::string attribute_value_text(const Attributes::Entry& entry) {
  std::string text = Attributes{entry}.text();  // "{axis=-1}"
  text.erase(0, entry.name.size() + 2);
  text.pop_back();
  return text;
}

std::vector<DefaultAttribute> default_attributes(const OpDef& op) {
  std::vector<DefaultAttribute> defaults;
  const auto* const known = std::ranges::find(kCalls, op.name, &DefaultCall::op);
  if (known == std::end(kCalls)) return defaults;
  const Made made[] = {made_by(*known, 1), made_by(*known, 2)};
  for (const Attributes::Entry& entry : made[0].attributes.entries()) {
    if (!made[1].attributes.has(entry.name)) continue;
    if (is_last_axis(made[0], entry.name) && is_last_axis(made[1], entry.name)) {
      defaults.push_back({entry.name, "-1"});
      continue;
    }
    for (const Attributes::Entry& other : made[1].attributes.entries())
      if (entry == other) defaults.push_back({entry.name, attribute_value_text(entry)});
  }
  for (const std::string& name : attribute_names(op))
    if (!made[0].attributes.has(name) && !made[1].attributes.has(name))
      defaults.push_back({name, std::nullopt});
  std::ranges::sort(defaults, {}, &DefaultAttribute::name);
  return defaults;
}

}  // namespace fullbore
