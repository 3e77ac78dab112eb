"""What the conformance suite knows of each kind of model: a few small problems, and exact answers.

A problem draws parameters from their prior and data given these, and says which quantities are
ranked. `PROBLEMS` has at least one for every kind of model that the registry has a sampler for,
and `oracles.py` exact posteriors; `cases.py` fails with a sentence where one is missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.stats as st

import revealed as rv
from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.trajectories import Trajectory
from revealed.kernels.population import SD_PRIOR_DF, draw_inverse_wishart
from revealed.models.correlated_noise import ResolvedNoise, resolve_noise
from revealed.models.likelihood import posterior_mode
from revealed.models.noise import Noise
from revealed.models.priors import resolve_prior
from revealed.models.student import StudentDraws
from revealed.samplers.model_kind import Model, ModelKind, kind_of
from revealed.samplers.population_prior import scale_groups
from revealed.samplers.ranking_hmc import MARGIN_PRIOR_SD, SPREAD_PRIOR_SD
from tests.support.cases import mdp_offers, ragged_offers
from tests.support.logistic_noise import LogisticNoise

Draws = dict[str, Floats]
SCALE = 2.0  # of the prior of a prior sd that is inferred
LOGISTIC = LogisticNoise(0.6)
NORMAL = rv.NormalNoise()
NOISES: dict[str, Noise] = {"normal": NORMAL, "logit": rv.LogitNoise(), "other": LOGISTIC}
"""Independent noise that the package has, and one that it does not have."""
NOT_NORMAL = {f"{law.name} noise": law for law in NOISES.values() if law.name != "normal"}


@dataclass(frozen=True)
class Problem:
    """A model, and data from it whose truth is drawn from the prior.

    Attributes
    ----------
    draw
        The truth from its prior: one draw of each parameter, under the sampler's names.
    observe
        Data given the truth. None where they are left out, which the data alone must decide.
    rank
        (n, quantities) of n draws, given the data.
    only, not_for
        Names of the samplers that it is for, where not for all.
    some_left_out
        Whether data may be left out; then the truth of what is kept does not have its prior.
    """

    name: str
    model: Model
    draw: Callable[[np.random.Generator], Draws]
    observe: Callable[[np.random.Generator, Draws], Any]
    rank: Callable[[Any, Draws], Floats]
    only: tuple[str, ...] = ()
    not_for: tuple[str, ...] = ()
    some_left_out: bool = False

    @property
    def kind(self) -> ModelKind:
        """Of the model."""
        return kind_of(self.model)

    def is_for(self, sampler: str) -> bool:
        """Whether this sampler is tried on it."""
        return sampler not in self.not_for and (not self.only or sampler in self.only)


def prior_of(kind: str, sd: float = 2.0, scale: float = SCALE) -> rv.Normal | rv.Flat:
    """The prior of a kind, with this sd, or with one that is inferred."""
    if kind == "flat":
        return rv.Flat()
    return rv.Normal(rv.HalfStudentT(scale=scale) if kind == "inferred sd" else sd)


def draw_value(rng: np.random.Generator, prior: Any, offers: Decisions) -> Draws:
    """A value from its prior, and the prior sd where that is inferred; one draw of each."""
    sd = prior.sd.scale * abs(rng.standard_t(4)) if prior.infers_sd else prior.sd
    value = sd * resolve_prior(rv.Normal(1.0), offers).draw(rng, 1)
    return {"value": value} | ({"prior_sd": np.array([sd])} if prior.infers_sd else {})


def choose(rng: np.random.Generator, offers: Decisions, v: Floats, noise: Noise) -> Decisions:
    """The same offers with the choices of a controller with value v."""
    w = offers.rows @ v + noise_of_rows(rng, offers, noise)
    return offers.with_choices(best_rows(offers, w))


def noise_of_rows(rng: np.random.Generator, offers: Decisions, noise: Noise) -> Floats:
    """(P,) the noise of every action of every decision."""
    shape, once = (1, offers.rows.shape[0]), np.zeros(1, np.int64)
    return np.asarray(noise.sample_decisions(rng, shape, offers.decision_of_row, once)[0])


def best_rows(offers: Decisions, w: Floats) -> list[int]:
    """The action with the largest utility in each decision."""
    return [int(np.argmax(w[a:b])) for a, b in itertools.pairwise(offers.start)]


def columns(*parts: Floats) -> Floats:
    """Arrays with one entry a draw as columns of one matrix."""
    return np.hstack([np.reshape(part, (len(part), -1)) for part in parts])


def scale_column(draws: Draws) -> list[Floats]:
    """The prior sd, where it is inferred."""
    return [draws["prior_sd"]] if "prior_sd" in draws else []


# Decisions under independent noise


def independent_choices(name: str, model: rv.ChoiceModel, offers: Decisions, **of: Any) -> Problem:
    """Ranked are coefficients, their log-likelihood and the prior sd."""
    noise = model.noise
    assert isinstance(noise, Noise)

    # whoever certifies draws needs a posterior that is nearly normal, which the data alone decide
    inferred = kind_of(model).prior == "inferred sd"
    some_left_out = inferred and of.get("only") == NEARLY_NORMAL

    def draw(rng: np.random.Generator) -> Draws:
        return draw_value(rng, model.prior, offers)

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        seen = choose(rng, offers, truth["value"][0], noise)
        return None if some_left_out and not is_nearly_normal(seen, noise) else seen

    def rank(data: Any, draws: Draws) -> Floats:
        fit = rv.log_likelihood(data, draws["value"], noise).sum(axis=1)
        return columns(draws["value"], fit, *scale_column(draws))

    return Problem(name, model, draw, observe, rank, some_left_out=some_left_out, **of)


def even_offers(features: int, count: int, seed: int) -> Decisions:
    """Decisions among three actions with normal features; choices not seen."""
    rows = np.random.default_rng(seed).standard_normal((3 * count, features))
    return Decisions(rows, np.arange(count + 1) * 3)


LEAST_GAIN, MOST_OF_POSSIBLE = 12.0, 0.7


def is_nearly_normal(d: Decisions, noise: Noise) -> bool:
    """Whether the posterior is away from the pole at zero, and the choices from being predictable.

    By how much the most likely value of a wide prior is more likely than zero, in logs; not by
    nearly as much as if it foresaw every choice, which leaves a long tail.
    """
    mode, _ = posterior_mode(d, resolve_prior(rv.Normal(5.0), d), noise=noise.kernel())
    best, nothing = rv.log_likelihood(d, np.stack([mode, 0.0 * mode]), noise).sum(axis=1)
    return bool(LEAST_GAIN <= best - nothing <= MOST_OF_POSSIBLE * -nothing)


# needs a block that sums to zero
TRANSLATING = ("px-translate", "px-both")
# slow where scales matter, as they do with ragged features and a wide prior
AUGMENTATION = ("da", "px-scale", *TRANSLATING)
# certifies its draws only where the posterior is close to normal
NEARLY_NORMAL = ("laplace",)


def choice_problems() -> list[Problem]:
    """Normal noise: an MDP and ragged features; many decisions for the normal approximation."""
    found = []
    for prior in ("normal", "inferred sd"):
        model = rv.ChoiceModel(prior=prior_of(prior))
        mdp, ragged = mdp_offers(5, 3, 20, seed=1), ragged_offers(4, 12, seed=2, feature_sd=0.5)
        found += [
            independent_choices("mdp", model, mdp, not_for=NEARLY_NORMAL),
            independent_choices("ragged", model, ragged, not_for=TRANSLATING + NEARLY_NORMAL),
            independent_choices(
                "features",
                model.replace(prior=prior_of(prior, 1.0, 1.0)),
                ragged_offers(3, 150, seed=7),
                only=NEARLY_NORMAL,
            ),
        ]
        for name, law in NOT_NORMAL.items():
            other = rv.ChoiceModel(prior=prior_of(prior, 1.5), noise=law)
            found += [
                independent_choices(name, other, even_offers(2, 8, seed=3), not_for=NEARLY_NORMAL),
                independent_choices(
                    f"{name}, many",
                    other.replace(prior=prior_of(prior, 1.0, 1.0)),
                    even_offers(2, 100, seed=4),
                    only=NEARLY_NORMAL,
                ),
            ]
    return found


def choices_with_lapses(
    name: str, noise: Noise, offers: Decisions, prior: rv.Normal | rv.Flat, **of: Any
) -> Problem:
    """Ranked are coefficients, the rate of lapses, their log-likelihood and the prior sd."""
    model: rv.ChoiceModel = rv.ChoiceModel(prior=prior, noise=noise)
    assert noise.lapse is not None
    beta, sizes = noise.lapse.prior, offers.sizes

    def draw(rng: np.random.Generator) -> Draws:
        rate = np.array([rng.beta(beta.a, beta.b)])
        return draw_value(rng, model.prior, offers) | {"lapse": rate}

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        seen = choose(rng, offers, truth["value"][0], noise)
        assert seen.chosen is not None
        lapses = rng.random(len(offers)) < truth["lapse"][0]
        return offers.with_choices(np.where(lapses, rng.integers(0, sizes), seen.chosen))

    def rank(data: Any, draws: Draws) -> Floats:
        known = rv.KnownLapse(noise, draws["lapse"])
        fit = rv.log_likelihood(data, draws["value"], known).sum(axis=1)
        return columns(draws["value"], draws["lapse"], fit, *scale_column(draws))

    return Problem(name, model, draw, observe, rank, **of)


def choices_by_habit(name: str, noise: Noise, offers: Decisions, prior: Any) -> Problem:
    """Ranked are coefficients, the rate of lapses, habits, df, their log-likelihood, the prior sd."""
    model: rv.ChoiceModel = rv.ChoiceModel(prior=prior, noise=noise)
    assert noise.lapse is not None
    assert offers.actions is not None
    labels, of_row = np.unique(offers.actions, return_inverse=True)
    beta = noise.lapse.prior

    def draw(rng: np.random.Generator) -> Draws:
        rate, habit = rng.beta(beta.a, beta.b), rng.dirichlet(np.ones(len(labels)))
        unknown = {"lapse": np.array([rate]), "habit": habit[None]}
        return draw_value(rng, model.prior, offers) | draw_df(rng, noise) | unknown

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        seen = choose(rng, offers, truth["value"][0], at_truth(noise, truth))
        assert seen.chosen is not None
        chosen = seen.chosen.copy()
        for t in np.flatnonzero(rng.random(len(offers)) < truth["lapse"][0]):
            weights = truth["habit"][0][of_row[offers.start[t] : offers.start[t + 1]]]
            chosen[t] = rng.choice(len(weights), p=weights / weights.sum())
        return offers.with_choices(chosen)

    def rank(data: Any, draws: Draws) -> Floats:
        habit = dict(zip(labels.tolist(), draws["habit"].T, strict=True))
        law: Any = StudentDraws(draws["df"]) if "df" in draws else noise
        known = rv.KnownLapse(law, draws["lapse"], habit)
        fit = rv.log_likelihood(data, draws["value"], known).sum(axis=1)
        rest = [draws[name] for name in rest_of(draws)]
        return columns(draws["value"], *rest, draws["habit"], fit, *scale_column(draws))

    return Problem(name, model, draw, observe, rank)


def draw_df(rng: np.random.Generator, noise: Noise) -> Draws:
    """Degrees of freedom from their prior, where they are inferred: by rejection below one."""
    prior = getattr(noise, "df", None)
    if not isinstance(prior, rv.Gamma):
        return {}
    while (df := rng.gamma(prior.shape, 1.0 / prior.rate)) < 1.0:
        pass
    return {"df": np.array([df])}


def at_truth(noise: Noise, truth: Draws) -> Noise:
    """The noise without lapses, with its true degrees of freedom where they are inferred."""
    return rv.StudentNoise(float(truth["df"][0])) if "df" in truth else noise


def rest_of(draws: Draws) -> list[str]:
    """What is inferred of the noise, one number a draw, by name."""
    return [name for name in ("df", "lapse") if name in draws]


def known_noise(noise: Noise, draws: Draws) -> Any:
    """The noise with draws of all that is inferred of it."""
    law: Any = StudentDraws(draws["df"]) if "df" in draws else noise
    return rv.KnownLapse(law, draws["lapse"]) if "lapse" in draws else law


def student_choices(name: str, noise: Noise, offers: Decisions, prior: Any) -> Problem:
    """Ranked are coefficients, df, the rate of lapses, their log-likelihood and the prior sd."""
    model: rv.ChoiceModel = rv.ChoiceModel(prior=prior, noise=noise)
    lapse = noise.lapse

    def draw(rng: np.random.Generator) -> Draws:
        drawn = draw_value(rng, model.prior, offers) | draw_df(rng, noise)
        if lapse is not None:
            drawn["lapse"] = np.array([rng.beta(lapse.prior.a, lapse.prior.b)])
        return drawn

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        seen = choose(rng, offers, truth["value"][0], at_truth(noise, truth))
        assert seen.chosen is not None
        if lapse is None:
            return seen
        lapses = rng.random(len(offers)) < truth["lapse"][0]
        return offers.with_choices(np.where(lapses, rng.integers(0, offers.sizes), seen.chosen))

    def rank(data: Any, draws: Draws) -> Floats:
        fit = rv.log_likelihood(data, draws["value"], known_noise(noise, draws)).sum(axis=1)
        rest = [draws[name] for name in rest_of(draws)]
        return columns(draws["value"], fit, *rest, *scale_column(draws))

    return Problem(name, model, draw, observe, rank)


STUDENT = rv.StudentNoise(3.0)
STUDENT_DF = rv.StudentNoise(rv.Gamma(2.0, 0.4))
"""With a prior whose tails differ within what few decisions can tell."""


def student_problems() -> list[Problem]:
    """Few decisions among three actions: df known and inferred, with both priors, with lapses."""
    few = even_offers(2, 8, seed=3)
    return [
        *(
            student_choices("Student noise", law, few, prior_of(prior, 1.5))
            for law in (STUDENT, STUDENT_DF)
            for prior in ("normal", "inferred sd")
        ),
        *(
            student_choices("lapses", replace(law, lapse=LAPSE), few, prior_of(prior, 1.5))
            for law in (STUDENT, STUDENT_DF)
            for prior in ("normal", "inferred sd")
        ),
    ]


LAPSE = rv.Lapse(rv.Beta(2.0, 8.0))
"""Wide enough that few decisions say something of the rate."""
LAPSE_BY_GROUP = rv.Lapse(rv.Beta(2.0, 8.0), by="group", sd_scale=0.5)
"""With an sd of rates whose prior is not that of the values' sds."""


def lapse_problems() -> list[Problem]:
    """Ragged offers under both noises; with habits, of labels that are not always offered."""
    few, habit = ragged_offers(2, 15, seed=3), replace(LAPSE, to="habit")
    named = labelled_offers(15, 3, features=2, actions="abc")
    mdp, normal = mdp_offers(5, 3, 20, seed=1), rv.NormalNoise(lapse=LAPSE)
    return [
        choices_with_lapses("mdp", normal, mdp, prior_of("normal"), only=AUGMENTATION),
        *(
            choices_with_lapses(
                "lapses", law(lapse=LAPSE), few, prior_of(prior), not_for=AUGMENTATION
            )
            for prior in ("normal", "inferred sd")
            for law in (rv.NormalNoise, rv.LogitNoise)
        ),
        *(
            choices_by_habit("habits", law(lapse=habit), named, prior_of(prior))
            for prior in ("normal", "inferred sd")
            for law in (rv.NormalNoise, rv.LogitNoise)
        ),
        *(
            choices_by_habit("habits", replace(law, lapse=habit), named, prior_of("normal"))
            for law in (STUDENT, STUDENT_DF)
        ),
    ]


# Decisions under correlated noise. The truth is simulated by other means than samplers use: the
# covariance by scipy's inverse Wishart, the noise by its factor, the choice by comparing utilities.


def labelled_offers(count: int, seed: int, features: int = 3, actions: str = "abcd") -> Decisions:
    """Decisions among two or more of these actions; the base b is not always among them."""
    rng = np.random.default_rng(seed)
    most = len(actions)
    shown = [rng.permutation(most)[: rng.integers(2, most + 1)] for _ in range(count)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in shown])])
    return rv.Decisions(
        rng.standard_normal((start[-1], features)),
        start,
        np.zeros(count, int),
        actions=np.array(list(actions))[np.concatenate(shown)],
    )


def draw_noise_covariance(rng: np.random.Generator, noise: ResolvedNoise) -> Floats:
    """(D, D) covariance from its prior, brought to scale."""
    wide = np.atleast_2d(st.invwishart(noise.df, noise.root @ noise.root.T).rvs(random_state=rng))
    scale = wide[0, 0] if noise.scale == "first" else np.trace(wide) / len(noise.non_base)
    return np.asarray(wide / scale)


def correlated_noise_of_rows(
    rng: np.random.Generator, d: Decisions, noise: ResolvedNoise, covariance: Floats
) -> Floats:
    """(P,) the noise of every action of every decision, less the base's."""
    each = np.zeros((len(d), len(noise.labels)))
    others = np.delete(np.arange(len(noise.labels)), noise.base)
    each[:, others] = rng.multivariate_normal(np.zeros(len(others)), covariance, size=len(d))
    return np.asarray(each[d.decision_of_row, noise.of_row])


def choose_correlated(
    rng: np.random.Generator, d: Decisions, noise: ResolvedNoise, v: Floats, covariance: Floats
) -> Decisions:
    """The same offers with simulated choices."""
    w = d.rows @ v + correlated_noise_of_rows(rng, d, noise, covariance)
    return d.with_choices(best_rows(d, w))


def covariance_entries(draws: Draws, scale: str) -> Floats:
    """(n, entries) of the noise covariance's lower triangle, but for one that gives the scale."""
    i, j = np.tril_indices(draws["noise_covariance"].shape[-1])
    entries = draws["noise_covariance"][:, i, j]
    return np.asarray(entries[:, 1:] if scale == "first" else entries)


def correlated_law(scale: str) -> rv.CorrelatedNoise:
    """Informative enough that few decisions leave a covariance that moves quickly."""
    return rv.CorrelatedNoise(base="b", scale=scale, df=5.0, centre="independent")


def correlated_choices(scale: str, prior: str) -> Problem:
    """Ranked are coefficients, the covariance's lower triangle and the prior sd."""
    offers = labelled_offers(20, seed=1)
    law = correlated_law(scale)
    model = rv.ChoiceModel(prior=prior_of(prior, 1.0, 1.0), noise=law)
    noise = resolve_noise(law, offers)

    def draw(rng: np.random.Generator) -> Draws:
        covariance = draw_noise_covariance(rng, noise)
        return draw_value(rng, model.prior, offers) | {"noise_covariance": covariance[None]}

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        drawn = truth["value"][0], truth["noise_covariance"][0]
        return choose_correlated(rng, offers, noise, *drawn)

    def rank(data: Any, draws: Draws) -> Floats:
        entries = covariance_entries(draws, scale)
        return columns(draws["value"], entries, *scale_column(draws))

    return Problem(scale, model, draw, observe, rank)


# Hierarchical groups

SD_SCALE = 1.0  # of a population's sds under their prior


def draw_population_covariance(
    rng: np.random.Generator, scale_group: Ints, of_lapses: float | None = None
) -> Floats:
    """(width, width) covariance of the population, from its prior.

    scale_group: (width,) which coefficients share a scale. of_lapses: the scale of one more, that
    of the coordinate of lapses.
    """
    scale = np.full(scale_group.max() + 1, SD_SCALE)
    if of_lapses is not None:
        scale_group = np.append(scale_group, len(scale))
        scale = np.append(scale, of_lapses)
    a = (1.0 / scale**2) / rng.standard_gamma(0.5, len(scale))
    return draw_inverse_wishart(
        rng, SD_PRIOR_DF + len(scale_group) - 1.0, np.diag(2.0 * SD_PRIOR_DF / a[scale_group])
    )


def population(
    name: str, prior: str, law: Noise | rv.CorrelatedNoise, by_group: list[Decisions]
) -> Problem:
    """Ranked are mean, sds, correlations, the first group, the last one's distance, the prior sd.

    And the entries of a noise covariance; and the rate of lapses, or those of the first group and
    of the median one, with the sd of their coordinates and its correlation.
    """
    whole = by_group[0]
    for more in by_group[1:]:
        whole = whole + more
    group = np.repeat(np.arange(len(by_group)), [len(d) for d in by_group])
    offers = Decisions(
        whole.rows, whole.start, blocks=whole.blocks, groups=group, actions=whole.actions
    )
    model = rv.ChoiceModel(
        prior=prior_of(prior, 2.0**0.5, 1.0),
        noise=law,
        groups=rv.Hierarchical(sd_scale=SD_SCALE),
    )
    free = resolve_prior(rv.Normal(1.0), offers)
    basis, width = free.basis, free.basis.shape[1]
    noise = resolve_noise(law, offers) if isinstance(law, rv.CorrelatedNoise) else None
    lapse: rv.Lapse | None = getattr(law, "lapse", None)

    def draw(rng: np.random.Generator) -> Draws:
        drawn = draw_value(rng, model.value_prior, offers)
        if noise is None:
            drawn |= draw_df(rng, law)  # type: ignore[arg-type]
        mean = drawn.pop("value")
        if lapse is not None and lapse.by == "group":
            return drawn | draw_with_rates(rng, mean)
        if lapse is not None:
            drawn["lapse"] = np.array([rng.beta(lapse.prior.a, lapse.prior.b)])
        covariance = draw_population_covariance(rng, scale_groups(free))
        root = basis @ np.linalg.cholesky(covariance)
        if noise is not None:
            drawn["noise_covariance"] = draw_noise_covariance(rng, noise)[None]
        return drawn | {
            "population_mean": mean,
            "population_covariance": (basis @ covariance @ basis.T)[None],
            "value": (mean + rng.standard_normal((len(by_group), width)) @ root.T)[None],
        }

    def draw_with_rates(rng: np.random.Generator, mean: Floats) -> Draws:
        """Values and coordinates of rates together, by their joint law."""
        assert lapse is not None
        covariance = draw_population_covariance(rng, scale_groups(free), lapse.sd_scale)
        both = np.zeros((len(basis) + 1, width + 1))
        both[:-1, :-1], both[-1, -1] = basis, 1.0
        centre = np.append(mean, rng.standard_normal())
        root = both @ np.linalg.cholesky(covariance)
        each = centre + rng.standard_normal((len(by_group), width + 1)) @ root.T
        covariance = both @ covariance @ both.T
        rates = st.beta(lapse.prior.a, lapse.prior.b).ppf(st.norm.cdf(each[:, -1]))
        return {
            "population_mean": mean,
            "population_covariance": covariance[None, :-1, :-1],
            "population_noise_mean": centre[None, -1:],
            "population_noise_covariance": covariance[None, -1:],
            "value": each[None, :, :-1],
            "lapse": rates[None],
        }

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        of_row = truth["value"][0, group][offers.decision_of_row]
        utility = (offers.rows * of_row).sum(axis=1)
        if noise is not None:
            drawn = truth["noise_covariance"][0]
            utility = utility + correlated_noise_of_rows(rng, offers, noise, drawn)
        else:
            assert isinstance(law, Noise)
            utility = utility + noise_of_rows(rng, offers, at_truth(law, truth))
        chosen = np.array(best_rows(offers, utility))
        if lapse is not None:
            rate = truth["lapse"][0] if lapse.by == "all" else truth["lapse"][0, group]
            blind = rng.random(len(offers)) < rate
            chosen = np.where(blind, rng.integers(0, offers.sizes), chosen)
        return offers.with_choices(chosen)

    def rank(data: Any, draws: Draws) -> Floats:
        mean = draws["population_mean"] @ basis
        values = draws["value"] @ basis
        covariance = basis.T @ draws["population_covariance"] @ basis
        sd = np.sqrt(np.einsum("nkk->nk", covariance))
        correlation = covariance[:, 1:, 0] / sd[:, 1:] / sd[:, :1]
        distance = ((values[:, -1] - mean) ** 2).sum(axis=1)
        entries = [] if noise is None else [covariance_entries(draws, noise.scale)]
        entries += [draws["df"]] if "df" in draws else []
        if lapse is not None and lapse.by == "all":
            entries.append(draws["lapse"])
        elif lapse is not None:
            rest = draws["population_noise_covariance"][:, 0]
            sd_of_rates = np.sqrt(rest[:, -1])
            with_first = rest[:, :-1] @ basis[:, 0] / sd_of_rates / sd[:, 0]
            entries += [draws["lapse"][:, 0], draws["population_noise_mean"]]
            entries += [sd_of_rates, with_first]
        found = (mean, sd, correlation, values[:, 0], distance, *entries)
        return columns(*found, *scale_column(draws))

    return Problem(name, model, draw, observe, rank)


def population_problems() -> list[Problem]:
    """Two features of six groups, and three states of an MDP; three groups under other noise.

    Under correlated noise some groups never see some action.
    """
    found = []
    for prior in ("normal", "inferred sd"):
        features = [ragged_offers(2, 6, seed=i) for i in range(6)]
        states = [mdp_offers(states=3, actions=3, count=6, seed=7) for _ in range(6)]
        few = [even_offers(2, 4, seed=i) for i in range(3)]
        labelled = [labelled_offers(1 + 2 * i, seed=i, features=2, actions="abc") for i in range(6)]
        found += [
            population("features", prior, NOISES["normal"], features),
            population("states", prior, NOISES["normal"], states),
            *(population(name, prior, law, few) for name, law in NOT_NORMAL.items()),
            population("Student noise", prior, STUDENT, few),
            population("Student noise", prior, STUDENT_DF, few),
            population("trace", prior, correlated_law("trace"), labelled),
            population("first", prior, correlated_law("first"), labelled),
            *(
                population(f"lapses by {lapse.by}", prior, law(lapse=lapse), features)
                for lapse in (LAPSE, LAPSE_BY_GROUP)
                for law in (rv.NormalNoise, rv.LogitNoise)
            ),
            *(
                population(f"lapses by {lapse.by}", prior, replace(law, lapse=lapse), few)
                for lapse in (LAPSE, LAPSE_BY_GROUP)
                for law in (STUDENT, STUDENT_DF)
            ),
        ]
    return found


# Unknown transitions

STATES, ACTIONS, DECISIONS, CONCENTRATION = 3, 2, 15, 0.8


def unknown_transitions(prior: str, law: Noise) -> Problem:
    """Ranked are values, rows, and the log-likelihoods of choices and of transitions.

    And the rate of lapses.
    """
    lapse = law.lapse
    model = rv.ChoiceModel(
        prior=prior_of(prior, 6.0**0.5), noise=law, transitions=rv.Dirichlet(CONCENTRATION)
    )
    gap = Decisions([[1.0], [0.0]], [0, 2], [0])  # the first action is better by the coefficient
    some = mdp_offers(STATES, ACTIONS, 1, seed=1)

    def draw(rng: np.random.Generator) -> Draws:
        rows = rng.dirichlet(np.full(STATES, CONCENTRATION), size=(STATES, ACTIONS))
        drawn = draw_value(rng, model.prior, some) | {"transition": rows.reshape(1, -1)}
        drawn |= draw_df(rng, law)
        if lapse is not None:
            drawn["lapse"] = np.array([rng.beta(lapse.prior.a, lapse.prior.b)])
        return drawn

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        rows = truth["transition"].reshape(STATES, ACTIONS, STATES)
        states: list[int] = [0]
        actions: list[int] = []
        for _ in range(DECISIONS):
            noise = at_truth(law, truth).sample(rng, ACTIONS)
            utility = rows[states[-1]] @ truth["value"][0] + noise
            actions.append(int(np.argmax(utility)))
            if lapse is not None and rng.random() < truth["lapse"][0]:
                actions[-1] = int(rng.integers(ACTIONS))
            states.append(int(rng.choice(STATES, p=rows[states[-1], actions[-1]])))
        path = Trajectory(np.array(states[:-1]), np.array(actions))
        return rv.Trajectories(path, STATES, ACTIONS)

    def rank(data: Any, draws: Draws) -> Floats:
        path = data.paths[0]
        rows = draws["transition"].reshape(-1, STATES, ACTIONS, STATES)
        utility = np.einsum("sxay,sy->sxa", rows, draws["value"])
        lead = utility[:, path.states, path.actions] - utility[:, path.states, 1 - path.actions]
        # every choice is a draw of its own here
        repeated = {name: np.repeat(draws[name], lead.shape[1]) for name in rest_of(draws)}
        known = known_noise(law, repeated)
        chosen = rv.log_likelihood(gap, lead.reshape(-1, 1), known).reshape(lead.shape)
        followed = rows[:, path.states[:-1], path.actions[:-1], path.states[1:]]
        fits = (chosen.sum(axis=1), np.log(followed).sum(axis=1))
        rest = [draws[name] for name in rest_of(draws)]
        return columns(draws["value"], draws["transition"], *fits, *rest, *scale_column(draws))

    return Problem(f"{STATES} states, {ACTIONS} actions", model, draw, observe, rank)


# Rankings

PLAYERS, GAMES = 5, 14


def simulate_games(
    rng: np.random.Generator,
    skill: Floats,
    margin: float,
    games: int = GAMES,
    teams: bool = False,
    noise: Noise = NOISES["normal"],
) -> rv.Rankings:
    """Games of two to four of the players; neighbours closer than the margin tie.

    In every third game the last two retire. With teams, the first two players of every other game
    are one team. Without a margin all play in the first game, and who plays next is always the
    same. Under logit noise the order of some neighbours is not seen, whoever they are.
    """
    unseen = isinstance(noise, rv.LogitNoise)
    found: dict[str, list[Any]] = {"game": [], "player": [], "position": [], "team": []}
    who_plays = rng if margin > 0.0 else np.random.default_rng(1)
    lists = [
        who_plays.permutation(len(skill))[: int(who_plays.integers(2, 5)) + teams]
        for _ in range(games)
    ]
    if margin == 0.0:
        lists[0] = np.arange(len(skill))
    # players are numbered as they appear
    number = {p: i for i, p in enumerate(dict.fromkeys(p for each in lists for p in each))}
    for g, each in enumerate(lists):
        who = [number[p] for p in each]
        entries = [[p] for p in who]
        if teams and g % 2 == 0:
            entries = [[who[0], who[1]], *entries[2:]]
        w = np.array([skill[entry].sum() for entry in entries]) + noise.sample(rng, len(entries))
        order = np.argsort(-w)
        positions: list[Any] = [0] * len(entries)
        place, retired = 1, False
        for k, at in enumerate(order):
            if k > 0 and w[order[k - 1]] - w[at] > margin and not (unseen and k == 1 + g % 4):
                place = k + 1
                retired = retired or (g % 3 == 0 and k >= len(order) - 2)
            positions[at] = "DNF" if retired else place
        for at, entry in enumerate(entries):
            for p in entry:
                cells = (g, f"p{p}", positions[at], str(at))
                for name, cell in zip(found, cells, strict=True):
                    found[name].append(cell)
    return rv.Rankings.from_columns(
        found["game"], found["player"], found["position"], found["team"]
    )


def games(
    name: str,
    spread: float | None,
    teams: bool = False,
    ties: bool = True,
    noise: rv.NormalNoise | rv.LogitNoise = NORMAL,
) -> Problem:
    """Ranked are skills, their spread where it is inferred, and the margin of a tie."""
    model = rv.RankingModel(prior=None if spread is None else rv.Normal(spread), noise=noise)

    def draw(rng: np.random.Generator) -> Draws:
        sd = SPREAD_PRIOR_SD * abs(rng.standard_normal()) if spread is None else spread
        truth = {"skill": sd * rng.standard_normal((1, PLAYERS))}
        if spread is None:
            truth["spread"] = np.array([sd])
        if ties:
            truth["margin"] = np.array([MARGIN_PRIOR_SD * abs(rng.standard_normal())])
        return truth

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        margin = float(truth["margin"][0]) if ties else 0.0
        rankings = simulate_games(rng, truth["skill"][0], margin, teams=teams, noise=noise)
        if ties and (len(rankings.names) < PLAYERS or not rankings.has_ties):
            return None
        return rankings

    def rank(data: Any, draws: Draws) -> Floats:
        skill = draws["skill"]
        if data.location_free:
            skill = skill - skill.mean(axis=1, keepdims=True)
        rest = (draws[name] for name in ("spread", "margin") if name in draws)
        return columns(skill, *rest)

    return Problem(name, model, draw, observe, rank, some_left_out=ties)


PROBLEMS = [
    *choice_problems(),
    *lapse_problems(),
    *student_problems(),
    *(
        correlated_choices(scale, prior)
        for prior in ("normal", "inferred sd")
        for scale in ("trace", "first")
    ),
    *population_problems(),
    *(
        unknown_transitions(prior, law)
        for law in (
            *(*NOISES.values(), STUDENT, STUDENT_DF),
            *(rv.NormalNoise(lapse=LAPSE), rv.LogitNoise(lapse=LAPSE)),
            *(replace(STUDENT, lapse=LAPSE), replace(STUDENT_DF, lapse=LAPSE)),
        )
        for prior in ("normal", "inferred sd")
    ),
    *(
        games(name, spread, teams=name == "teams", ties=name != "no ties")
        for spread in (None, 1.5)
        for name in ("players", "teams", "no ties")
    ),
    *(
        games(f"{name}, logit noise", spread, name == "teams", ties=False, noise=rv.LogitNoise())
        for spread in (None, 1.5)
        for name in ("players", "teams")
    ),
]
"""All of them; of a kind with a flat prior there is none, as nothing can be drawn from it."""
