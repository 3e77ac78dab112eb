"""A noise that the package does not have goes through every kernel and sampler, from one file."""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.special import expit

import revealed as rv
from revealed._types import Floats
from revealed.kernels._compile import CACHE_FOLDER
from revealed.kernels.log_posterior import log_posterior, make_posterior_workspace
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.models.likelihood import (
    derivatives,
    posterior_mode,
    weighted_derivatives,
)
from revealed.models.noise import Noise, NormalNoise
from revealed.models.priors import resolve_prior
from revealed.results.predictive import predict
from revealed.samplers.chunk_likelihood import log_likelihoods, prepare
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.composite.state import unpack_transform
from tests.support.cases import mark_slow
from tests.support.logistic_noise import LogisticNoise
from tests.support.statistical_asserts import (
    assert_scores,
)

LOGISTIC = LogisticNoise(1.0)
PRIOR = rv.Normal(1.5)
GAPS = [[0.3], [0.3, -1.0, 2.0], [5.0, 5.0, 5.0], [-8.0, -3.0], [12.0], [-0.5] * 8, [20.0, 19.0]]


class LogitNoise(Noise):
    """Multinomial logit, whose probabilities have a closed form."""

    name = "logit"
    log_concave = True

    @staticmethod
    def log_probability(gaps: Floats, parameters: Floats, slopes: Floats) -> float:
        total = 1.0
        for j in range(gaps.size):
            total += math.exp(gaps[j])
        for j in range(slopes.size):
            slopes[j] = -math.exp(gaps[j]) / total
        return -math.log(total)


class CurvedLogitNoise(LogitNoise):
    """The same, with its own formula for the curvature."""

    name = "curved logit"

    @staticmethod
    def curvature(gaps: Floats, parameters: Floats, hessian: Floats) -> None:
        shares = np.exp(gaps) / (1.0 + np.exp(gaps).sum())
        for j in range(gaps.size):
            for k in range(gaps.size):
                hessian[j, k] = shares[j] * shares[k]
            hessian[j, j] -= shares[j]


class NotConcave(LogitNoise):
    """A noise that does not say whether it is log-concave."""

    name = "not concave"
    log_concave = False


def exact_log_probability(gaps: Floats, scale: float) -> float:
    """Log P under logistic noise, by adaptive quadrature."""
    g, far = gaps / scale, float(max(0.0, gaps.max() / scale))

    def integrand(z: float) -> float:
        return float(expit(z) * expit(-z) * np.prod(expit(z - g)))

    points = [0.0, 0.5 * far, far] if far else [0.0]
    answer, _ = quad(
        integrand, -60.0, far + 60.0, points=points, limit=500, epsabs=0.0, epsrel=1e-12
    )
    return math.log(answer)


def decisions(sparse: bool = False) -> rv.Decisions:
    """Decisions with equal actions, equal decisions, and one with a single action."""
    rng, count = np.random.default_rng(7), 20
    rows = rng.normal(size=(3 * count, 2))
    rows[4] = rows[5]
    rows[9:12] = rows[6:9]
    rows = np.concatenate([rows, rng.normal(size=(1, 2))])
    start = [*range(0, 3 * count + 1, 3), 3 * count + 1]
    utilities = rows[:-1] @ [1.5, -1.0] + LOGISTIC.sample(rng, 3 * count)
    chosen = utilities.reshape(count, 3).argmax(axis=1)
    chosen[3] = chosen[2]
    return rv.Decisions(sp.csr_array(rows) if sparse else rows, start, [*chosen, 0])


# The formula


@pytest.mark.parametrize("gaps", GAPS)
def test_formula_is_the_integral(gaps: list[float]) -> None:
    g = np.array(gaps)
    mu, out = np.concatenate([[0.0], g]), rv.Decisions(np.eye(1 + g.size), [0, 1 + g.size], [0])
    exact = exact_log_probability(g, LOGISTIC.scale)
    assert rv.log_likelihood(out, mu, LOGISTIC)[0] == pytest.approx(exact, rel=1e-10)
    # other parameters, the same machine code
    wider = exact_log_probability(g, 1.3)
    assert rv.log_likelihood(out, mu, LogisticNoise(1.3))[0] == pytest.approx(wider, rel=1e-10)


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("noise", [LOGISTIC, LogitNoise(), NormalNoise()])
def test_slopes_are_differences(noise: Noise, gaps: list[float]) -> None:
    g, slopes, none = np.array(gaps), np.empty(len(gaps)), np.empty(0)
    value = noise.log_probability(g, noise.parameters, slopes)
    assert noise.log_probability(g, noise.parameters, none) == value
    for j, step in enumerate(1e-5 * np.eye(g.size)):
        high, low = (noise.log_probability(g + s, noise.parameters, none) for s in (step, -step))
        assert slopes[j] == pytest.approx((high - low) / 2e-5, rel=1e-6, abs=1e-7)


def test_normal_noise_has_kernels_of_its_own() -> None:
    d, v = decisions(), np.array([1.0, -0.5])
    assert NormalNoise().kernel() is NORMAL
    np.testing.assert_array_equal(rv.log_likelihood(d, v, NormalNoise()), rv.log_likelihood(d, v))


# The kernels


def test_probabilities_agree_with_the_likelihood_of_each_action() -> None:
    d, v = decisions(), np.array([[1.0, -0.5], [-2.0, 0.1]])
    chances = rv.choice_probabilities(d, v, LOGISTIC)
    np.testing.assert_allclose(np.add.reduceat(chances, d.start[:-1], axis=1), 1.0, rtol=1e-14)
    logs = rv.log_likelihood(d, v, LOGISTIC)
    np.testing.assert_allclose(np.log(chances[:, d.chosen_row]), logs, rtol=1e-10, atol=1e-12)
    averaged = predict(v, d, noise=LOGISTIC, draws="all").probabilities
    np.testing.assert_allclose(averaged, chances.mean(axis=0))
    found = predict(v, d, noise=LOGISTIC)
    np.testing.assert_allclose(found.probabilities, chances.mean(axis=0))


def test_votes_add_noise_of_the_same_law() -> None:
    d, v = decisions()[:2], np.array([1.0, -0.5])
    votes = predict(np.tile(v, (40_000, 1)), d, "vote", seed=1, noise=LOGISTIC).probabilities
    exact = rv.choice_probabilities(d, v, LOGISTIC)
    error = np.sqrt(exact * (1.0 - exact) / 40_000)
    assert_scores((votes - exact) / error, false_alarm=1e-6, degrees=np.inf)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("noise", [LOGISTIC, LogitNoise(), CurvedLogitNoise()])
def test_derivatives_in_v_are_differences(noise: Noise, sparse: bool) -> None:
    d, v = decisions(sparse), np.array([1.0, -0.5])
    value, gradient, hessian = derivatives(d, v, noise)
    assert value == pytest.approx(rv.log_likelihood(d, v, noise).sum(), rel=1e-13)
    steps = 1e-4 * np.eye(2)
    slopes = [
        np.subtract(*(rv.log_likelihood(d, v + s, noise).sum() for s in (t, -t))) for t in steps
    ]
    np.testing.assert_allclose(gradient, np.array(slopes) / 2e-4, rtol=1e-6)
    bends = [np.subtract(*(derivatives(d, v + s, noise)[1] for s in (t, -t))) for t in steps]
    # central differences of step 1e-3 are off by about its square
    np.testing.assert_allclose(hessian, np.array(bends) / 2e-4, rtol=1e-5)
    weight = np.arange(1.0, 1.0 + len(d))
    _, information = weighted_derivatives(d, v, weight, noise.kernel())
    one_by_one = sum(w * derivatives(d[t : t + 1], v, noise)[2] for t, w in enumerate(weight))
    np.testing.assert_allclose(information, -one_by_one, rtol=1e-10)


def test_a_formula_for_the_curvature_agrees_with_differences_of_slopes() -> None:
    d, v = decisions(), np.array([1.0, -0.5])
    one, other = (derivatives(d, v, noise)[2] for noise in (LogitNoise(), CurvedLogitNoise()))
    # central differences of step 1e-3 are off by about its square
    np.testing.assert_allclose(one, other, rtol=1e-5)
    assert np.abs(one - other).max() > 0.0  # they are not the same formula


def log_posterior_at(noise: Noise, x: Floats, floor: float = -np.inf) -> tuple[float, Floats]:
    """The log posterior of the decisions in whitened coordinates, and its gradient."""
    d = decisions()
    sampler = CompositeSampler.build(d, resolve_prior(PRIOR, d), noise=noise.kernel())
    state = sampler.init(np.random.default_rng(1), None)
    target, workspace = sampler.posterior(unpack_transform(state))
    gradient = np.empty(2)
    value = log_posterior(target, workspace, x, floor, gradient)
    v = unpack_transform(state).value(x)
    exact = rv.log_likelihood(d, v, noise).sum() + float(resolve_prior(PRIOR, d).log_density(v))
    assert make_posterior_workspace(target).utility_gap.size < 41  # equal rivals are counted once
    assert floor > -np.inf or value == pytest.approx(exact, rel=1e-5)
    return value, gradient


def test_log_posterior_counts_equal_rivals_and_stops_below_the_floor() -> None:
    x = np.array([0.4, -1.1])
    value, gradient = log_posterior_at(LOGISTIC, x)
    for k, step in enumerate(1e-4 * np.eye(2)):
        high, low = (log_posterior_at(LOGISTIC, x + s)[0] for s in (step, -step))
        assert gradient[k] == pytest.approx((high - low) / 2e-4, rel=1e-6)
    assert log_posterior_at(LOGISTIC, x, value - 1e-9)[0] == value
    assert log_posterior_at(LOGISTIC, x, value + 1e-9)[0] == -np.inf
    assert log_posterior_at(NormalNoise(), x)[0] != value


def test_mode_is_where_the_gradient_vanishes() -> None:
    d = decisions()
    prior = resolve_prior(PRIOR, d)
    v, information = posterior_mode(d, prior, noise=LOGISTIC.kernel())
    _, gradient, hessian = derivatives(d, v, LOGISTIC)
    np.testing.assert_allclose(gradient, prior.precision @ v, atol=1e-6)
    np.testing.assert_allclose(information, prior.precision - hessian, rtol=1e-6)


# What is refused


def test_what_wants_normal_noise_or_a_concave_likelihood_is_refused() -> None:
    d = decisions()
    with pytest.raises(ValueError, match="under not concave noise large values"):
        CompositeSampler.build(d, resolve_prior(rv.Flat(), d), noise=NotConcave().kernel())
    with pytest.raises(ValueError, match=r'"da" is for .* not normal; choose one of auto, comp'):
        rv.fit(d, rv.ChoiceModel(prior=PRIOR, noise=LOGISTIC), sampler="da")
    with pytest.raises(NotImplementedError, match="needs a formula"):
        Noise.log_probability(np.zeros(1), np.zeros(0), np.zeros(0))


# Machine code and processes


def test_a_noise_is_sent_to_another_process_with_its_formula() -> None:
    kernel = LOGISTIC.law()
    sent: NoiseArguments = pickle.loads(pickle.dumps(kernel))
    assert numba.typeof(sent) == numba.typeof(kernel)
    assert numba.typeof(LogitNoise().kernel()) != numba.typeof(CurvedLogitNoise().kernel())
    # the type itself is what lies in the folder of machine code
    assert pickle.loads(pickle.dumps(numba.typeof(kernel.kind))) == numba.typeof(kernel.kind)


PROGRAM = """
import json, sys
import numpy as np
import revealed as rv
from revealed.kernels import choice, choice_exact, choice_formula
from revealed.kernels.noise import NORMAL
from revealed.samplers.chunk_likelihood import log_likelihoods, prepare

d = rv.Decisions([[0.0], [1.0], [0.5], [0.2], [0.1]], [0, 2, 5], [1, 0])
v, chunk = np.array([1.5]), prepare(d, np.ones(2))
noises = {"normal": None}
if sys.argv[1:] == ["plug-in"]:
    from plug_in import LogisticNoise
    noises["plug-in"] = LogisticNoise()
found = {}
for name, noise in noises.items():
    kernel = NORMAL if noise is None else noise.kernel()
    found[name] = [*rv.log_likelihood(d, v, noise), *log_likelihoods(chunk, v[None], kernel)]
loops = choice_exact.log_probabilities, choice_formula.log_probabilities, choice.add_log_likelihoods
found["compiled"] = [sum(loop.stats.cache_misses.values()) for loop in loops]
print(json.dumps(found))
"""


def run_program(folder: Path, *arguments: str) -> dict[str, Any]:
    """What the program prints in a process of its own, its machine code being kept in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]),
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def copy_normal_code(folder: Path) -> None:
    """Machine code for normal noise, which other tests need too; so only the plug-in's is compiled."""
    d = rv.Decisions([[0.0], [1.0], [0.5], [0.2], [0.1]], [0, 2, 5], [1, 0])
    rv.log_likelihood(d, np.array([1.5]))
    log_likelihoods(prepare(d, np.ones(2)), np.array([[1.5]]), NORMAL)
    kept = Path(CACHE_FOLDER)
    for loop in ("choice_exact.log_probabilities", "choice.add_log_likelihoods"):
        for file in kept.rglob(f"{loop}-*"):
            copy = folder / "cache" / "revealed" / kept.name / file.relative_to(kept)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)


def files(folder: Path) -> dict[str, int]:
    """The files of machine code, and when they were written."""
    return {
        str(path): path.stat().st_mtime_ns
        for path in (folder / "cache").rglob("*")
        if path.is_file()
    }


# half the probability, or a finer step; in a line of the formula, or in a constant that it reads
EDITS = {
    "line": ("return math.log(total * STEP)", "return math.log(0.5 * total * STEP)"),
    "constant": ("STEP, REACH = 0.4, 33.0", "STEP, REACH = 0.2, 33.0"),
}


@pytest.mark.parametrize("edit", mark_slow(EDITS, lambda edit: edit == "constant"))
def test_machine_code_is_found_by_other_processes_and_an_edited_formula_is_compiled(
    edit: str, tmp_path: Path
) -> None:
    source = Path(__file__).parents[1] / "support" / "logistic_noise.py"
    # a reach of its own: the code that is copied may hold the plug-in of other tests
    text = source.read_text(encoding="utf-8").replace("REACH = 0.4, 34.0", "REACH = 0.4, 33.0")
    (tmp_path / "plug_in.py").write_text(text, encoding="utf-8")
    copy_normal_code(tmp_path)
    first = run_program(tmp_path, "plug-in")
    assert first.pop("compiled") == [0, 1, 1]
    kept = files(tmp_path)
    assert kept

    # the second process compiles nothing, nor does one that has never heard of the plug-in
    second, without = run_program(tmp_path, "plug-in"), run_program(tmp_path)
    assert second.pop("compiled") == without.pop("compiled") == [0, 0, 0]
    assert second == first
    assert without == {"normal": first["normal"]}
    assert files(tmp_path) == kept

    # what was edited is compiled at once
    old, new = EDITS[edit]
    assert text.count(old) == 1
    (tmp_path / "plug_in.py").write_text(text.replace(old, new), encoding="utf-8")
    edited = run_program(tmp_path, "plug-in")
    assert edited.pop("compiled") == [0, 1, 1]
    assert edited["normal"] == first["normal"]
    shift = math.log(0.5) if edit == "line" else 0.0
    by_hand = np.array(first["plug-in"]) + shift * np.array([1.0, 1.0, 2.0])
    np.testing.assert_allclose(edited["plug-in"], by_hand, rtol=1e-12)
