"""No result is a sum of BLAS or LAPACK, whose last bits depend on their threads and on the processor."""

import ast

from pages import ROOT

NAMES = {"dot", "vdot", "inner", "matmul", "tensordot", "einsum", "linalg", "polyfit", "cov", "corrcoef"}
ANSWERS = {
    "contrib/sklearn/ranker.py",
    "metrics/bracket_model.py",
}  # about matrices of the caller, which no file has, or counts, which are exact in any order


def uses(tree: ast.AST) -> list[int]:
    """The lines that multiply matrices, or name a function of numpy that does or may."""
    return sorted(
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np" and node.attr in NAMES)
    )


def test_sums_are_taken_in_a_fixed_order() -> None:
    assert uses(ast.parse("a @ b\nnp.linalg.norm(x)\nnp.dot(x, y)")) == [1, 2, 3]
    sources = {str(path.relative_to(ROOT / "rerank")): path for path in sorted((ROOT / "rerank").rglob("*.py"))}
    found = {name: uses(ast.parse(path.read_text(encoding="utf-8"))) for name, path in sources.items()}
    assert {name for name, lines in found.items() if lines} == ANSWERS
