"""Perturbation by a declared matrix (PRAM): what is refused, how it is drawn, what it bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import closeknit as ck
from closeknit.core.perturbation import words_of
from closeknit.core.transition import Transition

MATRIX = {
    "flu": {"flu": 0.7, "gout": 0.2, "acne": 0.1},
    "gout": {"flu": 0.1, "gout": 0.8, "acne": 0.1},
    "acne": {"flu": "1/4", "gout": "1/4", "acne": "1/2"},
}
SCHEMA = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.Hierarchy({"all": ["flu", "gout", "acne"]})})
SEED = 3**70


def table(rows=3000):
    rng = np.random.default_rng(2)
    return pa.table({"age": rng.integers(20, 60, rows), "ill": rng.choice(["flu", "gout", "acne"], rows, p=[0.6, 0.3, 0.1])})


def changed(**entries):
    return {**MATRIX, "flu": {**MATRIX["flu"], **entries}}


def test_the_bound_is_the_largest_ratio_of_a_written_value():
    law = Transition.of(MATRIX, ("flu", "gout", "acne"), "ill")
    naive = max(Fraction(str(MATRIX[u][v])) / Fraction(str(MATRIX[w][v])) for v in MATRIX for u in MATRIX for w in MATRIX)
    assert law.gamma == naive == 7


def test_draws_follow_the_matrix():
    law = Transition.of(MATRIX, ("flu", "gout", "acne"), "ill")
    for value, row in enumerate(MATRIX.values()):
        true = np.full(20_000, value, dtype=np.int32)
        counts = np.bincount(law.draw_codes(true, words_of("ill", law, SEED, true)), minlength=3) / 20_000
        assert np.abs(counts - [float(Fraction(str(chance))) for chance in row.values()]).max() < 0.02


def test_a_release_states_law_bound_and_estimates(tmp_path):
    data = table(150)
    form = ck.perturbed(matrix={"ill": MATRIX})
    release = ck.anonymize(data, SCHEMA, [ck.KAnonymity(5), ck.PosteriorBound("ill", 7)], ck.Mondrian(), form=form, seed=SEED)
    assert release.certificate.guarantees[1].status == "attested" and release.certificate.ok
    assert "odds change at most by the factor 7" in str(release.certificate)
    truth = {value: data["ill"].to_pylist().count(value) for value in MATRIX}
    for value, (count, error, _) in release.certificate.estimates["ill"].items():
        assert abs(count - truth[value]) < 6 * error
    audit = ck.audit(release.frame, certificate=release.certificate)
    assert audit.status == "met as far as it can be checked" and not audit.findings
    with pytest.raises(ck.Unsatisfiable, match="closer together"):
        ck.anonymize(data, SCHEMA, [ck.PosteriorBound("ill", 6)], ck.Mondrian(), form=form, seed=SEED)
    release.save(tmp_path / "out")  # with both reports
    assert ck.audit(tmp_path / "out").findings == ()


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (changed(flu=0.8, gout=0.2, acne=0), "never written as 'acne'"),
        (changed(flu=0.8), "sums to"),
        ({"flu": MATRIX["flu"], "gout": MATRIX["gout"]}, "lacks 'acne'"),
        ({**MATRIX, "cold": MATRIX["flu"]}, "not a declared value"),
        (changed(cold=0.1), "not a declared value"),
        ({**MATRIX, "flu": 0.5}, "write the chance of every value"),
        (changed(flu=1.5), "out of range"),
    ],
)
def test_wrong_matrices_are_refused(matrix, words):
    with pytest.raises(ck.BadInput, match=words):
        ck.anonymize(table(60), SCHEMA, [ck.KAnonymity(2)], form=ck.perturbed(matrix={"ill": matrix}))


def test_quasi_identifiers_and_empty_laws_are_refused():
    with pytest.raises(ck.BadInput, match="not sensitive"):
        ck.anonymize(table(60), SCHEMA, [ck.KAnonymity(2)], form=ck.perturbed(matrix={"age": MATRIX}))
    with pytest.raises(ck.BadInput, match="no law"):
        ck.perturbed()
    with pytest.raises(ck.BadInput, match="not perturbed"):
        ck.anonymize(table(60), SCHEMA, [ck.KAnonymity(2)], form=ck.perturbed(0.5, ["ill"], matrix={"other": MATRIX}))
