#!/usr/bin/env python3
"""Adds a pass to a copy of the repository and uses it: three sources may be touched, its own pair and the pipeline. Its
case of before and after is a text, and the page of all passes is generated.

usage: add_pass.py BUILD_FOLDER

libfullbore.so is linked anew of the objects of BUILD_FOLDER, with the pass and the pipeline of the copy; the command and
the tests of BUILD_FOLDER then run with it.
"""

import json
import shlex

from exercise import check, exercise, run

HEADER = """#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// abs(abs(x)) is abs(x).
///
/// before  any graph
/// after   no abs reads an abs
/// here    after algebraic_simplification, which may bring two together
Graph drop_repeated_abs(const Graph& graph, const Target& target);

}  // namespace fullbore
"""

SOURCE = """#include "fullbore/passes/canonicalize/drop_repeated_abs.h"

#include "fullbore/ir/op_def.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

bool is_abs(const Node* node) {
  return node && node->op->is(Tag::elementwise) && node->op->scalar == ScalarOp::abs;
}

}  // namespace

Graph drop_repeated_abs(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (is_abs(&node) && is_abs(graph.producer_node(node.inputs[0])))
      rewriter.map(node.outputs[0], rewriter[node.inputs[0]]);
    else
      rewriter.copy(node, rewritten_body(node, [&](const Graph& body) {
                      return drop_repeated_abs(body, target);
                    }));
  }
  return rewriter.finish();
}

}  // namespace fullbore
"""

CASE = """why: an absolute value has no other absolute value
before
graph "step" {
  %0 = input "x" batch : f32[4]
  %1 = abs(%0) : f32[4]
  %2 = abs(%1) : f32[4]
  %3 = tanh(%2) : f32[4]
  output "y" %3
}
after
graph "step" {
  %0 = input "x" batch : f32[4]
  %1 = abs(%0) : f32[4]
  %2 = tanh(%1) : f32[4]
  output "y" %2
}
"""

LINE = """{"drop_repeated_abs", "absolute values are taken once",
       "after algebraic_simplification, which may bring two together", true, drop_repeated_abs},
      """


def linked_anew(it, replaced, added):
    """The build's libfullbore.so, with objects by the end of their names replaced, and others added."""
    command = run("ninja", "-C", it.build, "-t", "commands", "lib/libfullbore.so").splitlines()
    words = shlex.split(next(line for line in reversed(command) if " -shared " in line))
    words = words[words.index("-shared") - 1 :]
    library = it.folder / "libfullbore.so.0"
    compiled = ["c++", *words]
    compiled[compiled.index("-o") + 1] = str(library)
    compiled = compiled[: compiled.index("&&")] if "&&" in compiled else compiled
    for old, new in replaced.items():
        places = [i for i, word in enumerate(compiled) if word.endswith(old)]
        check(len(places) == 1, f"{len(places)} objects {old}")
        compiled[places[0]] = str(new)
    run(*compiled, *added, cwd=it.build)
    return library


def body(it):
    it.write("fullbore/passes/canonicalize/drop_repeated_abs.h", HEADER)
    it.write("fullbore/passes/canonicalize/drop_repeated_abs.cpp", SOURCE)
    it.insert("fullbore/passes/pipeline.cpp", '#include "fullbore/passes/canonicalize/expand_composites.h"\n',
              '#include "fullbore/passes/canonicalize/drop_repeated_abs.h"\n')
    it.insert("fullbore/passes/pipeline.cpp", '{"loop_invariant_code_motion",', LINE)
    sources = it.touched()
    it.write("tests/passes/drop_repeated_abs/twice.ir", CASE)

    room = "fullbore/CMakeFiles/fullbore_passes.dir/passes"
    own, pipeline = it.objects(f"{room}/canonicalize/drop_repeated_abs.cpp.o", f"{room}/pipeline.cpp.o")
    there = it.there(linked_anew(it, {f"{room}/pipeline.cpp.o": pipeline}, [own]))
    command = it.build / "bin" / "fullbore"
    names = [each["name"] for each in json.loads(run(command, "passes", "--json", **there))]
    check("drop_repeated_abs" in names, f"fullbore passes: {names}")
    it.tests("test_passes", "*drop_repeated_abs*:PassCases.*:Pipeline*", 3, **there)
    run(it.tree / "tools" / "check_layers")
    check(len(sources) <= 3, f"more than 3 sources: {sources}")

    written = it.touched()
    wrapper = it.folder / "fullbore"
    wrapper.write_text(f"#!/bin/sh\nLD_PRELOAD='{there['env']['LD_PRELOAD']}' exec {command} \"$@\"\n")
    wrapper.chmod(0o755)
    run(it.tree / "tools" / "make_docs", "--binary", wrapper)
    generated = sorted(set(it.touched()) - set(written))
    check(generated == ["docs/design/passes.md"], f"generated: {generated}")
    check("drop_repeated_abs" in (it.tree / generated[0]).read_text(encoding="utf-8"), "the page of passes")
    return f"a pass is {len(sources)} sources and its case: {', '.join(written)}"


exercise(body)
