#!/usr/bin/env python3
"""Adds an op to a copy of the repository and uses it: two files may be touched, its own and the list of builders.

usage: add_op.py BUILD_FOLDER

The tests of BUILD_FOLDER that go over all ops, which know nothing of it, then check it: its record, the errors, its
decomposition and its gradient against the reference, and its kernels.
"""

from exercise import check, exercise, run

SOURCE = """#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

const TensorType kF32{DType::f32, {}};

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor x = widened(call.inputs[0]);
  return {as_dtype(x / (abs(x) + 1.0), call.inputs[0].dtype())};
}

// dy / (1 + |x|)^2.
std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor x = widened(call.inputs[0]);
  const Tensor scale = 1.0 / (abs(x) + 1.0);
  return {as_dtype(widened(call.cotangents[0]) * scale * scale, call.inputs[0].dtype())};
}

void reference(ReferenceCall& call) {
  for (int64_t i = 0; i < call.outputs[0].elements(); ++i) {
    const double x = call.inputs[0]->at(i);
    call.outputs[0].put(i, x / (1 + std::abs(x)));
  }
}

const OpRegistrar softsign_op(OpDef{
    .name = "softsign",
    .summary = "x / (1 + |x|)",
    .tags = Tag::composite,
    .infer = infer_floating_unary,
    .vjp = vjp,
    .decompose = decompose,
    .reference = reference,
    .samples = [] { return elementwise_samples({SampleInput::normal(kF32)}); },
    .error_samples = floating_unary_errors,
});

}  // namespace

Tensor softsign(Tensor x, SourceLoc loc) { return apply("softsign", {x}, {}, loc); }

}  // namespace fullbore
"""

PROGRAM = """#include <cstdio>

#include "fullbore/ir/print.h"
#include "fullbore/ops/ops.h"

int main() {
  fullbore::GraphBuilder builder;
  const fullbore::Tensor x = builder.input("x", fullbore::Role::batch, {fullbore::DType::f32, {3}});
  builder.output("y", softsign(x));
  std::puts(fullbore::print(builder.take()).c_str());
}
"""


def body(it):
    it.write("fullbore/ops/softsign.cpp", SOURCE)
    it.insert("fullbore/ops/ops.h", "Tensor softplus(Tensor x,",
              "Tensor softsign(Tensor x, SourceLoc loc = SourceLoc::here());  ///< x / (1 + |x|)\n")
    op = it.library("softsign.so", it.objects("fullbore/CMakeFiles/fullbore_ops.dir/ops/softsign.cpp.o"))
    run(it.tree / "tools" / "check_layers")
    there = it.there(op)
    check("x / (1 + |x|)" in run(it.build / "bin" / "fullbore", "ops", "softsign", **there), "fullbore ops softsign")
    check("= softsign(%0) : f32[3]" in run(it.program("use", PROGRAM, op), **there), "the builder")
    count = sum(it.tests(name, "*softsign*", fewest, **there) for name, fewest in TESTS.items())
    touched = it.touched()
    check(len(touched) <= 2, f"more than 2 files: {touched}")
    return f"an op is {len(touched)} files: {', '.join(touched)}; {count} tests of all ops took it in"


# How many tests of an op there are at least.
TESTS = {"test_ops": 7, "test_autodiff": 3, "test_device": 1}

exercise(body)
