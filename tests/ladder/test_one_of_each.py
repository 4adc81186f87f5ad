"""One gap, one maker of certificates, one loop, one regulariser: searches of the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import widemargin
from widemargin import estimators
from widemargin.arrays.rows import as_rows
from widemargin.geometry import Geometry
from widemargin.layouts import BoxRows, ClassRows, Layout, NodeRows, SeparateRows
from widemargin.layouts.protocol import check_layout
from widemargin.oracle import CompiledOracle, Oracle, PythonOracle, Restricted, make_oracle
from widemargin.oracle.memory import Recalled, Remembering
from widemargin.oracle.threads import Parallel
from widemargin.problems import Binary, RealFunction
from widemargin.stopping import StopReason

PACKAGE = Path(widemargin.__file__).parent
SOURCES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}
HOME = "run/certificate.py"
#: The judge of certificates works out everything by itself.
JUDGE = "auditing/"
#: Compiled searches for violators, which stop where the gap of the kept examples is too large.
SEARCHES = {
    ("solvers/streaming_dual/_rows.py", "explore_boxes"),
    ("solvers/streaming_dual/_classes.py", "explore_classes"),
}
#: Where epochs of a solver are steps of another algorithm: on kept examples, or on kept planes.
INNER = {
    ("solvers/streaming_dual/_classes.py", "finish"),
    ("solvers/streaming_dual/_rows.py", "finish"),
    ("solvers/streaming_dual/_rows.py", "improve"),
    ("solvers/wrappers.py", "epoch"),
}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def found(is_one) -> set[tuple[str, str]]:
    """(file, innermost function) of all nodes that are one of these."""
    places = set()
    for name, tree in SOURCES.items():
        for function in functions(tree):
            nested = {
                id(node)
                for inner in functions(function)
                if inner is not function
                for node in ast.walk(inner)
            }
            if any(is_one(node) for node in ast.walk(function) if id(node) not in nested):
                places.add((name, function.name))
    return places


def elsewhere(places: set[tuple[str, str]], *homes: str) -> set[tuple[str, str]]:
    """Those that are not in these files."""
    return {place for place in places if not place[0].startswith(homes)}


# ------------------------------------------------------------------------ certificates


def makes_certificate(node: ast.AST) -> bool:
    """`Certificate(...)`, or `replace(certificate, ...)`."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func).split(".")[-1]
    is_copy = called == "replace" and any("certificate" in ast.unparse(a) for a in node.args[:1])
    return called == "Certificate" or (is_copy and "." in ast.unparse(node.func))


def is_difference(node: ast.AST) -> bool:
    """An upper bound less a lower one."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
        return False
    left, right = ast.unparse(node.left), ast.unparse(node.right)
    return any(w in left for w in ("primal", "upper")) and any(
        w in right for w in ("dual", "lower")
    )


def is_gap(node: ast.AST) -> bool:
    """Such a difference relative to the upper bound, or compared with a share of it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return is_difference(node.left)
    if isinstance(node, ast.Compare) and is_difference(node.left):
        upper = ast.unparse(node.left.left)  # type: ignore[attr-defined]
        return any(upper in ast.unparse(side) for side in node.comparators)
    return False


def test_only_one_module_makes_certificates():
    assert found(makes_certificate) & {(HOME, "make_certificate")}
    assert not elsewhere(found(makes_certificate), HOME)


def test_only_one_module_knows_what_a_gap_is():
    assert found(is_gap) & {(HOME, "is_within")}
    assert elsewhere(found(is_gap), HOME, JUDGE) == SEARCHES


def test_best_and_claim_exist_once():
    """Nobody else says what a failed claim teaches, or when rounding is in the way."""
    for name in ("Best", "Claim", "is_hopeless"):
        makers = {
            file
            for file, tree in SOURCES.items()
            if not file.startswith("reproduce/")  # whose claims are those of papers
            for node in tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
        }
        assert makers == {HOME}, name


# ------------------------------------------------------------------------ the loop


def test_only_one_loop_over_epochs():
    def is_loop(node: ast.AST) -> bool:
        return isinstance(node, ast.For | ast.While) and any(
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr in ("epoch", "end_pass")
            for part in ast.walk(node)
        )

    assert elsewhere(found(is_loop), "reproduce/") == INNER
    accounts = {
        file
        for file, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and {"begin", "step", "judge", "cut_short", "conclude"}
        <= {part.name for part in functions(node)}
    }
    assert accounts == {"run/loop.py", "run/passes.py", "solvers/out_of_core/_bounds.py"}


def test_reasons_to_stop_are_members():
    """No function that says why a run ends spells a reason of ours as a string."""
    tellers = {"reason", "reason_of", "done", "finished", "judge", "cut_short", "conclude", "go"}
    for file, tree in SOURCES.items():
        for function in functions(tree):
            if function.name in tellers:
                returns = (node for node in ast.walk(function) if isinstance(node, ast.Return))
                texts = {text for node in returns for text in results(node.value)}
                assert not texts & set(StopReason), (file, function.name)


def results(node: ast.AST | None) -> Iterator[str]:
    """The strings that an expression may be."""
    if isinstance(node, ast.IfExp):
        yield from results(node.body)
        yield from results(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for part in node.values:
            yield from results(part)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


# ------------------------------------------------------------------------ the regulariser


def is_half_square(node: ast.AST) -> bool:
    """0.5 * w @ w, with brackets or a `float` around the product or not."""
    if not isinstance(node, ast.BinOp):
        return False
    left, right = node.left, node.right
    if isinstance(node.op, ast.MatMult) and is_half_of(left):
        return ast.dump(left.right) == ast.dump(right)  # type: ignore[attr-defined]
    if isinstance(right, ast.Call) and ast.unparse(right.func) == "float":
        right = right.args[0]
    is_square = isinstance(right, ast.BinOp) and isinstance(right.op, ast.MatMult)
    return is_half_of(node) and is_square and ast.dump(right.left) == ast.dump(right.right)


def is_half_of(node: ast.AST) -> bool:
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return is_product and isinstance(node.left, ast.Constant) and node.left.value == 0.5


def test_only_geometry_knows_the_regulariser():
    for text in ("0.5 * w @ w", "0.5 * (w @ w)", "a - 0.5 * float(w @ w)"):
        assert any(is_half_square(node) for node in ast.walk(ast.parse(text))), text
    assert found(is_half_square) & {("geometry.py", "value")}
    assert not elsewhere(found(is_half_square), "geometry.py", JUDGE)


# ------------------------------------------------------------------------ oracles

#: Where oracles are made, and what an oracle holds.
ORACLES = "oracle/"
#: Classes that must have every member of the protocol: those that find planes, and the wrappers.
ARE_ORACLES = PythonOracle, CompiledOracle, Restricted, Parallel, Remembering, Recalled


def test_solvers_never_see_the_problem():
    """Solvers ask oracles; what is behind a `Source` is for `oracle/` alone."""

    def sees(node: ast.AST) -> bool:
        if not isinstance(node, ast.Attribute) or node.attr != "problem":
            return False
        return ast.unparse(node.value).split(".")[-1].strip("_") in ("oracle", "source", "memory")

    places = found(sees)
    assert any(place.startswith(ORACLES) for place, _ in places)
    assert not {place for place in places if not place[0].startswith(ORACLES)}
    for name, tree in SOURCES.items():
        if name.startswith("solvers/"):
            imported = {
                alias.name
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("problem")
                for alias in node.names
            }
            assert not imported - {"ProblemError"}, name


def test_nobody_sets_attributes_of_an_oracle():
    """Everything an oracle knows it is given when it is made."""

    def sets(node: ast.AST) -> bool:
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            return False
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        written = [part for target in targets for part in ast.walk(target)]
        return any(
            isinstance(part, ast.Attribute)
            and isinstance(part.ctx, ast.Store)
            and ast.unparse(part.value).split(".")[-1].strip("_") in ("oracle", "memory")
            for part in written
        )

    assert not found(sets)


def test_wrappers_of_oracles_delegate_by_name():
    """No member is looked up at run time, and none of the protocol is missing."""
    tellers = {(file, name) for file, name in found(lambda node: True) if name == "__getattr__"}
    assert not {place for place in tellers if place[0].startswith(ORACLES)}
    members = {name for name in vars(Oracle) if not name.startswith("_")}
    assert {"sweep", "find", "measure", "tally", "is_exact", "rounding"} <= members
    oracle = PythonOracle(RealFunction(), [0.0, 1.0], [0.5, -0.5])
    memory = Remembering(oracle, Geometry(2).arrays)
    made = [oracle, make_oracle(Binary(2), np.eye(2), np.array([1.0, -1.0]), 1.0), memory]
    made += [Restricted(oracle, np.arange(1)), Parallel(oracle), Recalled(memory)]
    assert {type(one) for one in made} == set(ARE_ORACLES)
    for one in made:
        assert not {name for name in members if not hasattr(one, name)}, type(one)


LAYOUTS = {"BoxRows", "ClassRows", "NodeRows", "SeparateRows"}


def asks_which_layout(node: ast.AST) -> bool:
    """Whether this is `isinstance(x, BoxRows)` or `type(x) is BoxRows`."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") == "isinstance" and bool(LAYOUTS & names)
    return isinstance(node, ast.Compare) and "type" in names and bool(LAYOUTS & names)


def reads_by_number(node: ast.AST) -> bool:
    """Whether this is `data[1]`, a field of packed examples without its name."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name | ast.Attribute)):
        return False
    name = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
    number = node.slice.lower if isinstance(node.slice, ast.Slice) else node.slice
    is_number = isinstance(number, ast.Constant) and isinstance(number.value, int)
    return is_number and name in {"data", "packed", "template", "like", "_fields"}


def test_nobody_asks_which_layout_it_is():
    assert found(asks_which_layout) == set()
    shells = "cli/", "reproduce/"  # lists of arguments, no examples
    places = {place for place in found(reads_by_number) if not place[0].startswith(shells)}
    assert places == {("problems/real_function.py", "rounding")}  # (X, Y) in place of a layout


def test_every_layout_has_all_that_layouts_have():
    rows, two = as_rows(np.eye(2)), np.array([0, 1])
    loss, path = 1.0 - np.eye(2), (np.ones(2), np.array([0, 1, 2]), two)
    made = (
        (BoxRows(rows, np.ones(2), 0.0, False), 2),
        (ClassRows(rows, two, loss), 2),
        (NodeRows(rows, two, loss, *path), 2),
        (SeparateRows(rows, np.ones((2, 3))), 6),
    )
    for data, n in made:
        assert isinstance(data, Layout)
        check_layout(data, n)
        w, cost = np.ones(2 * data.n_outputs), np.full(n, 0.5)
        assert data.rounding(w, False).shape == (n,)
        assert data.upper(cost, w, False) == data.upper(cost[:1], w, False)  # one number for all
        assert data.with_rows(rows, data.truth) == data
        with pytest.raises(ValueError, match="X has 2 rows"):
            check_layout(data, n + data.truth.size)


# ------------------------------------------------------------------------ random numbers, names


def draws_seed(node: ast.AST) -> bool:
    """Whether this is `randint(2**31 - 1)`, a seed drawn from `random_state`."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_call and node.func.attr == "randint"  # type: ignore[attr-defined]


def test_one_way_from_random_state_to_a_generator():
    assert found(draws_seed) == {("arrays/random.py", "seed_of")}


def test_one_list_of_estimators():
    """`widemargin` offers what `estimators` lists, and nobody else lists most of them."""
    listed = set(estimators.__all__)
    assert {name for name, home in widemargin._HOMES.items() if home == "estimators"} == listed
    assert listed <= set(widemargin.__all__)
    lists = set()
    for name, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Tuple | ast.List | ast.Set):
                texts = {getattr(item, "value", None) for item in node.elts}
                if len(texts & listed) > len(listed) // 2:
                    lists.add(name)
    assert lists == {"__init__.py", "estimators/__init__.py"}
