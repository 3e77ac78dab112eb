"""A prior whose size is learnt, from end to end: what it refuses, where the size is shown, kept and used."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.special as ss
import scipy.stats as st

import revealed as rv
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.kernels.prior_scale import (
    PriorScale,
    draw_prior_sd,
    interpolate_log_marginal,
    log_marginal,
    marginal_table,
    student_tail,
    student_tail_inverse,
)
from revealed.models.priors import resolve_prior
from revealed.plots.report import page
from revealed.samplers.data_augmentation import AugmentationOptions
from tests.support.cases import (
    VARIANTS,
    build_sampler,
    choose,
    label,
    long_run,
    mdp_offers,
    two_states,
)
from tests.support.interrupts import interrupt
from tests.support.statistical_asserts import (
    assert_error,
    assert_law,
    assert_mean,
    assert_sd,
    grid_moments,
)

LEARN = rv.Normal(rv.HalfStudentT())


def quick(decisions: Decisions, prior: rv.Normal = LEARN, **settings: Any) -> rv.ChoicePosterior:
    """A short fit whose convergence does not matter."""
    model = rv.ChoiceModel(prior=prior)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        post = rv.fit(decisions, model, **{"draws": 60, "warmup": 20, "chains": 2, **settings})
    assert isinstance(post, rv.ChoicePosterior)
    return post


def rarely_visited() -> Decisions:
    """Twelve decisions in five states, of which some are hardly ever reached."""
    offers = mdp_offers(states=5, actions=2, count=12, seed=3)
    return offers.with_choices(choose(np.random.default_rng(1), offers, np.arange(5.0) - 2.0)[0])


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        (rv.Normal("learn"), "the prior sd must be a number or numbers, not 'learn'"),
        (
            rv.Normal([2.0, 1.0], covariance=[1.0, 1.0]),
            "beside a prior covariance the prior sd must be one number",
        ),
        (rv.Normal(rv.HalfStudentT(), covariance=[1.0, -1.0]), "must be positive"),
        (
            rv.Normal(rv.HalfStudentT(), covariance=[[1.0, 2.0], [2.0, 1.0]]),
            "not positive definite",
        ),
    ],
)
def test_wrong_sd_or_covariance_is_refused(prior: rv.Normal, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rv.fit(two_states(), rv.ChoiceModel(prior=prior))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"scale": 0.0}, "must be a positive number; it is 0.0"),
        ({"scale": "wide"}, "must be a positive number; it is 'wide'"),
        ({"df": 3}, "has 4 degrees of freedom here, not 3"),
    ],
)
def test_wrong_half_student_t_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rv.HalfStudentT(**wrong)


def test_the_size_is_in_the_summary_the_file_and_arviz(tmp_path: Path) -> None:
    model = rv.ChoiceModel(prior=rv.Normal(rv.HalfStudentT(scale=5.0)))
    post = rv.fit(rarely_visited(), model, draws=4000, seed=1)
    summary = post.summary()
    assert summary.converged
    assert summary.names[-1] == "(prior sd)"
    assert summary.mean[-1] == pytest.approx(post.draws["prior_sd"].mean())
    post.save(tmp_path / "post.nc")
    back = rv.load(tmp_path / "post.nc")
    assert back.prior == post.prior
    np.testing.assert_array_equal(back.draws["prior_sd"], post.draws["prior_sd"])
    assert post.to_arviz(log_likelihood=False).posterior["prior_sd"].shape == (4, 4000)
    assert post.identification().prior_sd == pytest.approx(
        np.full(5, np.sqrt(0.8) * np.median(post.draws["prior_sd"])), rel=1e-6
    )
    assert "its sd inferred" in page(post)


def test_a_shape_comes_back_from_a_file(tmp_path: Path) -> None:
    smooth = 0.8 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    post = quick(rarely_visited(), prior=rv.Normal(rv.HalfStudentT(), covariance=smooth))
    post.save(tmp_path / "post.nc")
    prior = rv.load(tmp_path / "post.nc").prior
    assert isinstance(prior, rv.Normal)
    np.testing.assert_array_equal(np.asarray(prior.covariance), smooth)


def test_a_posterior_with_a_learnt_size_needs_its_draws() -> None:
    with pytest.raises(
        ValueError, match=r"has the parameters value, prior_sd, and .* draws of value"
    ):
        rv.ChoicePosterior(
            {"value": np.zeros((1, 4, 2))}, two_states(), rv.ChoiceModel(prior=LEARN), "da"
        )


@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_cutting_a_run_into_pieces_does_not_change_its_draws(
    variant: tuple[str, AugmentationOptions],
) -> None:
    sampler = build_sampler(variant, two_states(), LEARN)
    whole_rng, cut_rng = np.random.default_rng(5), np.random.default_rng(5)
    _, whole, _ = sampler.sample(whole_rng, sampler.init(whole_rng, None), 50, 2)
    state, pieces = sampler.init(cut_rng, None), []
    for count in (1, 9, 40):
        state, piece, _ = sampler.sample(cut_rng, state, count, 2)
        pieces.append(piece)
    for name in ("value", "prior_sd"):
        np.testing.assert_array_equal(np.concatenate([made[name] for made in pieces]), whole[name])


@pytest.mark.parametrize("sampler", ["px-both", "composite"])
def test_an_interrupted_run_continues_to_the_same_draws(
    sampler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {
        "sampler": sampler,
        "draws": 300,
        "warmup": 150,
        "checkpoint": tmp_path / "run.checkpoint",
    }
    whole = quick(two_states(), sampler=sampler, draws=300, warmup=150, executor=1)
    with monkeypatch.context() as patch:
        interrupt(patch, 2e-5, share=0.6)  # the warm-up is over, and there are draws
        quick(two_states(), **settings)
    resumed = quick(two_states(), resume=True, **settings)
    np.testing.assert_array_equal(resumed.draws["value"], whole.draws["value"])
    np.testing.assert_array_equal(resumed.draws["prior_sd"], whole.draws["prior_sd"])
    with pytest.raises(ValueError, match="belongs to other decisions, prior or settings"):
        quick(two_states(), prior=rv.Normal(rv.HalfStudentT(scale=3.0)), resume=True, **settings)


def test_chains_on_threads_do_not_disturb_one_another() -> None:
    one, two = (quick(rarely_visited(), sampler="px-both", executor=n, draws=400) for n in (1, 2))
    np.testing.assert_array_equal(one.draws["value"], two.draws["value"])


@pytest.mark.proves(part="a prior with its size integrated out")
def test_the_prior_with_its_size_integrated_out() -> None:
    """Against Tricomi's function, of which it is one; the table that samplers read is as good."""
    quad = np.exp(np.linspace(-8.0, 8.0, 200))

    @numba.njit  # type: ignore[untyped-decorator]
    def read(table: Any, quad: Any) -> Any:
        out = np.empty((quad.size, 2))
        for i in range(quad.size):
            out[i, 0], out[i, 1] = interpolate_log_marginal(table, quad[i])
        return out

    for width in (1, 2, 6):
        value, slope = log_marginal(quad, width, 3.0)
        exact = np.log(ss.hyperu((width + 4) / 2, (width + 1) / 2, quad / (8 * 9.0)))
        assert_error(
            (value - value[0] - exact + exact[0])
            / np.maximum(1.0, 10.0 * np.abs(exact - exact[0])),
            1e-8,
        )
        table = read(marginal_table(width, 3.0), quad)
        np.testing.assert_allclose(table[:, 0], value, atol=1e-6)
        np.testing.assert_allclose(table[:, 1], -2.0 * slope / quad, rtol=1e-4)


@pytest.mark.proves(part="a size given the value")
@pytest.mark.parametrize(
    ("width", "quad"), [(1, 1e-6), (1, 2.0), (1, 1e4), (4, 0.01), (4, 50.0), (40, 1e5)]
)
def test_a_size_is_drawn_from_its_exact_law(width: int, quad: float) -> None:
    none = np.zeros(0)
    size = PriorScale(
        3.0, width, none, none, np.zeros((0, 0)), 0.0, np.zeros((0, 0)), none, none, 0.0
    )
    rng = np.random.default_rng(1)
    drawn = np.log([draw_prior_sd(rng, size, quad) for _ in range(20_000)])
    grid = np.linspace(-30.0, 30.0, 200_001)
    density = (
        st.t.logpdf(np.exp(grid) / 3.0, 4) + grid - width * grid - 0.5 * quad * np.exp(-2.0 * grid)
    )
    below = np.cumsum(np.exp(density - density.max()))
    assert_law(np.interp(drawn, grid, below / below[-1]), false_alarm=1e-6)


def test_half_a_student_and_its_inverse() -> None:
    t = np.array([1e-3, 0.1, 1.0, 5.0, 100.0, 1e5])
    np.testing.assert_allclose([student_tail(x) for x in t], 2 * st.t.sf(t, 4), rtol=1e-12)
    np.testing.assert_allclose([student_tail_inverse(student_tail(x)) for x in t], t, rtol=1e-9)


@pytest.mark.proves(part="draws of a prior whose size is learnt")
def test_draws_of_the_prior_have_sizes_of_their_own() -> None:
    resolved_prior = resolve_prior(rv.Normal(rv.HalfStudentT(scale=3.0)), two_states())
    drawn = resolved_prior.draw(np.random.default_rng(1), 20_000)
    np.testing.assert_allclose(drawn.sum(axis=1), 0.0, atol=1e-9)
    grid = (
        np.sinh(np.linspace(-12.0, 12.0, 4000)) / 100
    )  # around zero, where the density has a mild pole
    density = np.exp(resolved_prior.log_density(np.stack([grid, -grid], axis=1)))
    assert np.isfinite(resolved_prior.log_density(np.zeros(2)))
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
    assert_law(np.interp(drawn[:, 0], grid, below / below[-1]), false_alarm=1e-6)


@pytest.mark.proves(model="choices, normal prior", sampler="{name}", problem="ordered states")
@pytest.mark.parametrize("name", ["px-both", "composite"])
def test_a_smooth_prior_on_a_centred_block(name: str) -> None:
    """A covariance matrix over ordered states, against the exact posterior on the values that sum to zero."""
    rows = [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.2, 0.6, 0.2]] * 3
    d = Decisions(rows, [0, 3, 6, 9], [0, 2, 0], blocks=[Block("mileage", 3, True)])
    smooth = 9.0 * 0.9 ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    axis = np.linspace(-9.0, 9.0, 361)
    first, second = (x.ravel() for x in np.meshgrid(axis, axis, indexing="ij"))
    values = np.stack([first, second, -first - second], axis=1)
    log_density = rv.log_likelihood(d, values).sum(axis=1)
    log_density -= 0.5 * np.einsum("ni,ij,nj->n", values, np.linalg.inv(smooth), values)
    mean, sd = grid_moments(values, log_density)
    draws = long_run(
        build_sampler((name, AugmentationOptions()), d, rv.Normal(covariance=smooth)),
        60_000,
        seed=1,
        init=np.zeros(3),
    )
    for k in range(3):
        assert_mean(draws[:, k], mean[k], false_alarm=1e-6)
        assert_sd(draws[:, k], mean[k], sd[k], false_alarm=1e-6)
