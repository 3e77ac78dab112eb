"""Every figure and the report take a posterior of every class, or refuse it in a sentence."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from revealed import plots
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.data.trajectories import Trajectories
from revealed.models.choice import ChoiceModel
from revealed.models.correlated_noise import CorrelatedNoise
from revealed.models.groups import Hierarchical, Separate
from revealed.models.noise import LogitNoise
from revealed.models.over_time import MeanReverting, RandomWalk
from revealed.models.priors import Flat, HalfStudentT, Normal
from revealed.models.ranking import RankingModel
from revealed.models.switching import Switching
from revealed.models.transitions import Dirichlet
from revealed.plots.columns import column_kinds, columns_with_intervals, prior_moments
from revealed.plots.report import page, write_report
from revealed.plots.report_prediction import PredictionBudget, predict_own, with_fewer_draws
from revealed.results.base import Posterior
from revealed.results.classes import make_posterior
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.mdp import MDPPosterior
from tests.support.cases import mark_slow

SHAPE = (2, 60)
ANY = [plots.posterior_densities, plots.traces, plots.autocorrelations, plots.value_intervals]
TITLE = "A title of <our> own"
SECTIONS = (
    "What was learnt",
    "What the data leave open",
    "How well it predicts",
    "How it was drawn",
    "Settings",
)


def decisions(**more: Any) -> Decisions:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((60, 2))
    chosen = (rows @ [1.0, -1.0] + rng.standard_normal(60)).reshape(20, 3).argmax(axis=1)
    return Decisions(rows, range(0, 61, 3), chosen, names=["price", "speed"], **more)


def trajectories(**more: Any) -> Trajectories:
    paths = [([0, 1, 0, 2, 1, 0], [0, 1, 1, 0, 1]), ([2, 1, 2, 0, 1], [1, 0, 1, 0])]
    return Trajectories(paths, states=3, actions=2, **more)


def rankings(tied: bool = False, times: Any = None) -> Rankings:
    # ann, bob and cid each beat and are beaten
    position = [1, 1, 2] if tied else [1, 2, 3]
    names = ["ann", "bob", "cid", "bob", "cid", "ann", "cid", "ann", "bob"]
    return Rankings.from_columns(
        game=np.repeat([1, 2, 3], 3).tolist(),
        player=names,
        position=position * 3,
        time=None if times is None else np.repeat(times, 3).tolist(),
    )


def draw(*shape: int) -> Floats:
    return np.random.default_rng(2).standard_normal((*SHAPE, *shape))


def covariances(*before: int, size: int = 2) -> Floats:
    root = draw(*before, size, size) * 0.2 + np.eye(size)
    return np.asarray(root @ np.swapaxes(root, -1, -2))


def noise_covariances() -> Floats:
    found = covariances()
    # on the scale on which the variances have mean one
    return np.asarray(found / np.trace(found, axis1=2, axis2=3)[..., None, None] * 2.0)


def rows_of_transitions(*before: int) -> Floats:
    """Draws of all 18 cells of two actions and three states, (..., 18)."""
    weights = np.exp(draw(*before, 6, 3))
    return np.asarray((weights / weights.sum(axis=-1, keepdims=True)).reshape(*SHAPE, *before, 18))


def make(data: Any, model: Any, **drawn: Floats) -> Any:
    settings = {"seed": 1, "draws": SHAPE[1], "warmup": 10, "complete": True, "options": {}}
    stats_shape = (*SHAPE, 2) if getattr(model, "groups", None) == Separate() else SHAPE
    stats = {"acceptance_rate": np.full(stats_shape, 0.8)}
    return make_posterior(model, data, drawn, "any", stats, settings)


def separate_transitions() -> Posterior:
    model = ChoiceModel(prior=Normal(2.0), groups=Separate(), transitions=Dirichlet())
    data = trajectories(groups=["ann", "ben"])
    found: Posterior = make(data, model, value=draw(2, 3), transition=rows_of_transitions(2))
    return found


def hierarchical() -> HierarchicalPosterior:
    data = decisions(groups=np.repeat(["ann", "ben"], 10), group_name="person")
    found: HierarchicalPosterior = make(
        data,
        ChoiceModel(groups=Hierarchical()),
        population_mean=draw(2),
        population_covariance=covariances(),
        value=draw(2, 2),
    )
    return found


def hierarchical_correlated() -> HierarchicalPosterior:
    groups, modes = np.repeat(["ann", "ben"], 10), ["bus", "car", "tram"] * 20
    found: HierarchicalPosterior = make(
        decisions(groups=groups, group_name="person", actions=modes),
        ChoiceModel(groups=Hierarchical(), noise=CorrelatedNoise(base="car")),
        population_mean=draw(2),
        population_covariance=covariances(),
        value=draw(2, 2),
        noise_covariance=noise_covariances(),
    )
    return found


def separate() -> Posterior:
    data = decisions(groups=np.repeat(["ann", "ben"], 10))
    found: Posterior = make(
        data, ChoiceModel(prior=Normal(2.0), groups=Separate()), value=draw(2, 2)
    )
    return found


def separate_paths() -> Posterior:
    """Two groups with eight and twelve times."""
    data = decisions(groups=["ann"] * 8 + ["ben"] * 12, times=range(20))
    model = ChoiceModel(prior=Normal(2.0), groups=Separate(), over_time=RandomWalk())
    found: Posterior = make(data, model, value=draw(20, 2), drift_sd=np.exp(draw(2, 2)))
    return found


def hierarchical_paths() -> Posterior:
    """Two groups with eight and twelve times, and their population."""
    data = decisions(groups=["ann"] * 8 + ["ben"] * 12, times=range(20))
    sds = ("drift_sd_population", "drift_sd_spread")
    found: Posterior = make(
        data,
        ChoiceModel(groups=Hierarchical(), over_time=RandomWalk()),
        population_mean=draw(2),
        population_covariance=covariances(),
        value=draw(20, 2),
        drift_sd=np.exp(draw(2, 2)),
        **{name: np.exp(draw(2)) for name in sds},
    )
    return found


def mdp() -> MDPPosterior:
    model = ChoiceModel(prior=Normal(2.0), transitions=Dirichlet())
    found: MDPPosterior = make(
        trajectories(), model, value=draw(3), transition=rows_of_transitions()
    )
    return found


MAKERS: dict[str, Callable[[], Any]] = {
    "values": lambda: make(decisions(), ChoiceModel(prior=Normal(2.0)), value=draw(2)),
    "flat prior": lambda: make(decisions(), ChoiceModel(prior=Flat()), value=draw(2)),
    "inferred prior sd": lambda: make(
        decisions(),
        ChoiceModel(prior=Normal(HalfStudentT())),
        value=draw(2),
        prior_sd=np.exp(draw()),
    ),
    "correlated noise": lambda: make(
        decisions(actions=["bus", "car", "tram"] * 20),
        ChoiceModel(prior=Normal(2.0), noise=CorrelatedNoise(base="car")),
        value=draw(2),
        noise_covariance=noise_covariances(),
    ),
    "hierarchical": hierarchical,
    "hierarchical, correlated noise": hierarchical_correlated,
    "hierarchical paths": hierarchical_paths,
    "separate": separate,
    "separate transitions": separate_transitions,
    "separate paths": separate_paths,
    "transitions": mdp,
    "random walk": lambda: make(
        decisions(times=range(20)),
        ChoiceModel(prior=Normal(2.0), over_time=RandomWalk()),
        value=draw(20, 2),
        drift_sd=np.exp(draw(2)),
    ),
    "reverting": lambda: make(
        decisions(times=range(20)),
        ChoiceModel(prior=Normal(2.0), over_time=MeanReverting(rate=0.1, shared=True)),
        value=draw(20, 2),
        stationary_sd=np.exp(draw(1)),
        long_run_mean=draw(2),
    ),
    "switching": lambda: make(
        decisions(sessions=[0] * 8 + [1] * 12),
        ChoiceModel(prior=Normal(2.0), over_time=Switching()),
        value=draw(2, 2),
        switch_probability=np.tile([[0.8, 0.2], [0.3, 0.7]], (*draw().shape, 1, 1)),
        initial=np.tile([0.5, 0.5], (*draw().shape, 1)),
    ),
    "ranking": lambda: make(rankings(), RankingModel(), skill=draw(3), spread=np.exp(draw())),
    "ranking with ties": lambda: make(
        rankings(tied=True), RankingModel(prior=Normal(1.0)), skill=draw(3), margin=np.exp(draw())
    ),
    "ranking over time": lambda: make(
        rankings(tied=True, times=[0.0, 1.0, 1.0]),
        RankingModel(over_time=RandomWalk()),
        skill=draw(6),
        drift_sd=np.exp(draw(1)),
        spread=np.exp(draw(1)),
        margin=np.exp(draw()),
    ),
    "ranking with ties, logit noise": lambda: make(
        rankings(tied=True), RankingModel(Normal(1.0), noise=LogitNoise()), skill=draw(3)
    ),
}
SPECIAL: dict[Any, set[str]] = {
    plots.noise_correlations: {"correlated noise", "hierarchical, correlated noise"},
    plots.shrinkage: {"hierarchical", "hierarchical, correlated noise"},
    plots.transitions: {"transitions"},
    plots.value_paths: {"random walk", "reverting"},
    plots.strategy_ribbons: {"switching"},
    plots.skill_intervals: {
        "ranking",
        "ranking with ties",
        "ranking with ties, logit noise",
        "ranking over time",
    },
    plots.skill_curves: {"ranking over time"},
    plots.leaders: {"ranking over time"},
}
"""Figures that only some posteriors have, and of which."""

NAMED = {
    plots.noise_correlations: "CorrelatedNoise",
    plots.shrinkage: "HierarchicalPosterior",
    plots.transitions: "MDPPosterior",
    plots.value_paths: "PathPosterior",
    plots.strategy_ribbons: "SwitchingPosterior",
    plots.skill_intervals: "RankingPosterior",
    plots.skill_curves: "RankingPathPosterior",
    plots.leaders: "RankingPathPosterior",
}
"""What the sentence of a refusal says would be right."""


@cache
def posterior(case: str) -> Any:
    return MAKERS[case]()


class Page(HTMLParser):
    """The words of each section of a page, and the pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.sections: dict[str, str] = {}
        self.images: list[str] = []
        self.heading = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.heading = tag == "h2"
        if tag == "img":
            self.images.append(dict(attrs)["alt"])

    def handle_data(self, data: str) -> None:
        if self.heading:
            self.sections[data] = ""
            self.heading = False
        elif self.sections:
            self.sections[next(reversed(self.sections))] += data


@cache
def report(case: str) -> Page:
    """The file about a posterior, written once for all tests."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        posterior(case).report(file, TITLE)
        return Page(file.read_text())


@pytest.mark.parametrize("figure", [*ANY, *SPECIAL])
@pytest.mark.parametrize("case", MAKERS)
def test_every_figure_shows_a_posterior_or_says_what_is_right(figure: Any, case: str) -> None:
    post = posterior(case)
    if case in SPECIAL.get(figure, MAKERS):
        image = io.BytesIO()
        figure(post).savefig(image, format="png", dpi=30)
        assert image.getvalue().startswith(b"\x89PNG")
        return
    with pytest.raises(ValueError, match=NAMED[figure]) as refused:
        figure(post)
    sentence = str(refused.value)
    assert sentence.startswith(figure.__name__)
    assert "\n" not in sentence


@pytest.mark.parametrize("case", MAKERS)
def test_the_report_has_all_sections(case: str) -> None:
    post, found = posterior(case), report(case)
    text = found.text
    assert tuple(found.sections) == SECTIONS
    assert all(len(words.split()) > 10 for words in found.sections.values())
    assert escape(TITLE) in text
    assert escape(post.message.split(":")[0]) in text
    # no number is missing without a word, and nothing of Python's shows
    assert not re.search(r"\bnan\b|\binf\b|array\(|None", " ".join(found.sections.values()))
    predicts = found.sections["How well it predicts"]
    assert f"{post.loo().elpd:.1f}" in predicts
    if case.startswith("ranking"):
        assert "games it was learnt from" in predicts
    else:
        assert f"{predict_own(post).error_rate:.1%}" in predicts
        assert any("came true" in words for words in found.images)


@pytest.mark.parametrize("case", MAKERS)
def test_the_report_says_what_is_identified_or_why_not(case: str) -> None:
    post = posterior(case)
    said = report(case).sections["What the data leave open"]
    try:
        expected = str(post.identification()).split("\n\n")[1].split("\n")[0]
    except ValueError as reason:
        expected = str(reason)[1:]
    assert expected in said


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("values", "normal, sd 2"),
        ("flat prior", "flat"),
        ("inferred prior sd", "its sd inferred"),
        ("correlated noise", "measured against car"),
        ("hierarchical", "hierarchical: each group's values come from one normal population"),
        ("separate", "separate: each group has values of its own"),
        ("transitions", "Dirichlet prior with concentration 1"),
        ("separate transitions", "Dirichlet prior with concentration 1"),
        ("random walk", "a random walk; the sd of a step is inferred, for each coefficient"),
        ("reverting", "the sd is inferred, one for all, the rate of return 0.1"),
        ("ranking", "the spread of skills, is inferred"),
        ("ranking with ties", "a win needs a margin"),
        ("ranking over time", "a random walk; the sd of a step is inferred"),
    ],
)
def test_the_settings_describe_the_model(case: str, words: str) -> None:
    assert words in report(case).sections["Settings"]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("values", "inferred from choices. Values"),
        ("inferred prior sd", "inferred from choices, and with it the prior's sd."),
        ("ranking with ties", "of each player, inferred from results, and with it the margin"),
        (
            "ranking over time",
            "each player on each date, inferred from results, and with it the spread of skills, how "
            "fast skills change and the margin that a win needs.",
        ),
    ],
)
def test_the_report_begins_with_what_is_inferred(case: str, words: str) -> None:
    assert words in report(case).text.replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("correlated noise", "Correlations between the noise"),
        ("hierarchical", "as one of the population"),
        ("transitions", "the probability of each next state"),
        ("ranking", "the best player first"),
    ],
)
def test_the_report_has_the_figures_of_its_class(case: str, words: str) -> None:
    having = {name for name in MAKERS if any(words in alt for alt in report(name).images)}
    assert case in having
    both = "hierarchical, correlated noise"
    expected = {case, both} if case in both else {case}
    rankings = {name for name in MAKERS if name.startswith("ranking")}
    assert having <= rankings if case == "ranking" else having == expected


@pytest.mark.parametrize("case", MAKERS)
def test_kinds_cover_every_column_once(case: str) -> None:
    post = posterior(case)
    columns, kinds = post.columns(), column_kinds(post)
    where = np.concatenate([kind.where for kind in kinds])
    assert sorted(where.tolist()) == list(range(len(columns.names)))
    for kind in kinds:
        drawn = columns.draws[:, :, kind.where]
        assert drawn.min() >= kind.low
        assert drawn.max() <= kind.high
        named = [columns.names[k] for k in kind.where]
        if kind.label == "transition probability":
            assert all("p(" in name for name in named)
        if kind.label == "value":
            assert not any(word in name for name in named for word in ("p(", "var(", "(prior"))


def test_priors_are_those_of_values_only() -> None:
    moments = prior_moments(posterior("separate transitions"))
    labels = {kind.label: kind.where for kind in column_kinds(posterior("separate transitions"))}
    assert (moments[1, labels["value"]] > 0.0).all()
    assert np.isnan(moments[:, labels["transition probability"]]).all()
    # of values that change, the first has the prior, or the mean to which they return
    assert prior_moments(posterior("random walk"))[1, 2:5] == pytest.approx(
        [2, 2, np.nan], nan_ok=True
    )
    assert prior_moments(posterior("reverting"))[1, :3] == pytest.approx(
        [np.nan, 2, 2], nan_ok=True
    )
    post = posterior("inferred prior sd")
    assert prior_moments(post)[1, :2] == pytest.approx(np.median(post.draws["prior_sd"]))


def test_truth_is_of_the_values_or_of_everything() -> None:
    post = posterior("inferred prior sd")
    marked = plots.value_intervals(post, truth=[1.0, -1.0]).axes
    labels = [[line.get_label() for line in axes.lines] for axes in marked]
    assert ["truth" in each for each in labels] == [True, False]
    assert all(
        "truth" in [line.get_label() for line in axes.lines]
        for axes in plots.value_intervals(post, truth=[1.0, -1.0, 2.0]).axes
    )
    with pytest.raises(ValueError, match="give 2 or 3 numbers"):
        plots.value_intervals(post, truth=[1.0])


def test_values_come_before_transitions_where_not_all_can_be_shown() -> None:
    figure = plots.posterior_densities(posterior("transitions"))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:3] == list(posterior("transitions").names)
    assert len(titles) == 12
    assert "12 of 21 quantities, values before others" in figure.texts[-1].get_text()


@pytest.mark.parametrize(
    "case",
    mark_slow(
        ["values", "hierarchical", "separate transitions", "ranking"],
        lambda case: case in ("values", "ranking"),
    ),
)
def test_a_report_of_many_draws_predicts_from_some(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = posterior(case)
    budget = PredictionBudget(cells=1)
    monkeypatch.setattr("revealed.plots.report_prediction.BUDGET", budget)
    some = with_fewer_draws(post, seed=3)
    assert type(some) is type(post)
    assert some.shape == (1, 50)
    for name, array in some.draws.items():
        assert np.isin(array, post.draws[name]).all()
    assert "50 of 120 draws" in page(post)


def test_missing_groups_are_named() -> None:
    post = posterior("separate")
    settings = {**post.settings, "not_fitted": ["cid"], "complete": False}
    fewer = type(post)(post.draws, post.data, post.model, post.sampler, {}, settings)
    assert "1 groups are missing: cid" in page(fewer)


def test_a_report_of_a_folder_says_which_decisions_it_kept() -> None:
    post = posterior("values")
    settings = {**post.settings, "decisions": 5000}
    kept = type(post)(post.draws, post.data, post.model, post.sampler, {}, settings)
    text = page(kept)
    assert "What 5000 decisions say" in text
    assert "keeps the first 20 decisions" in text


def test_what_is_no_posterior_is_refused(tmp_path: Path) -> None:
    not_a_posterior: Any = decisions()
    for figure in ANY:
        with pytest.raises(ValueError, match=r"needs a posterior, such as rv\.fit returns, not a"):
            figure(not_a_posterior)
    with pytest.raises(ValueError, match="a report needs a posterior"):
        write_report(not_a_posterior, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_days_are_shown_as_dates() -> None:
    """Days since 1970-01-01 on the axis, as numbers and as what they are."""
    post = MAKERS["random walk"]()
    for figure, label, tick in (
        (plots.value_paths(post), "time", "0"),
        (plots.value_paths(post, dates=True), "date", "1970"),
    ):
        figure.canvas.draw()
        axes = figure.axes[-1]
        assert axes.get_xlabel() == label
        ticks = [text.get_text() for text in axes.get_xticklabels()]
        assert any(tick in text for text in [*ticks, axes.xaxis.get_offset_text().get_text()])
        assert ("1970-Jan" in axes.xaxis.get_offset_text().get_text()) == (label == "date")
    over_time = MAKERS["ranking over time"]()
    for draw_skills in (plots.skill_curves, plots.leaders):
        assert draw_skills(over_time, dates=True).axes[0].get_xlabel() == "date"


def test_intervals_of_paths_are_of_whole_times_from_first_to_last() -> None:
    """Forty lines: of values all coefficients at some times, and none of the others."""
    post = MAKERS["random walk"]()
    columns, kinds = post.columns(), column_kinds(post)
    # as many columns as forty lines cannot hold
    assert len(columns.names) == 42
    shown, note = columns_with_intervals(columns, kinds)
    names = [columns.names[k] for _, where in shown for k in where]
    values = [name for name in names if " at " in name]
    times = [name.split(" at ")[1] for name in values]
    assert times[0] == "0"
    assert times[-1] == "19"
    assert all(times.count(time) == len(post.names) for time in times)
    assert f"Shown are {len(names)} of 42, of values those at some times, spread evenly" in note
