"""`walk_forward`: fit to what was seen, foretell what comes next, see it, and go on.

Times from `first` on are cut into blocks of `every` dates. Before each block the model is fitted to
all that was seen before it, and foretells the whole block; so nothing is foretold by what came at
its time or later (prequential validation, Dawid 1984).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Ints
from revealed._validation import Seed, as_seed_number, check_count
from revealed.api import fit_quietly
from revealed.data.rankings import Rankings
from revealed.data.time_blocks import Block, cut_into_blocks
from revealed.data.trajectories import Trajectories
from revealed.io.data_and_model import as_data_and_model
from revealed.models.over_time import Constant, MeanReverting, RandomWalk
from revealed.models.propriety import UnboundedSkillWarning
from revealed.models.ranking import RankingModel
from revealed.results.baselines import has_frequencies
from revealed.results.dated_ranking import without_changes
from revealed.results.events import ChoiceEvents, GameEvents
from revealed.results.forecasts import RESAMPLING, Scores
from revealed.results.walk_forward import Refits, WalkForward
from revealed.samplers.model_kind import Model
from revealed.samplers.progress import progress_bar
from revealed.samplers.separate import seed_for
from revealed.samplers.skill_filter import SkillFilter

# what only skills by their mode take
OWN = frozenset({"from_last"})


def walk_forward(
    data: Any,
    model: Model | None = None,
    *,
    every: float = 1,
    unit: str = "dates",
    first: Any = None,
    baselines: Sequence[str] | None = None,
    resample: str | None = None,
    resamples: int = 1000,
    seed: Seed = 0,
    progress: bool | None = None,
    update: bool = False,
    **settings: Any,
) -> WalkForward:
    """Score a model by what it foretells of events that it has not seen, as time goes on.

    Ctrl-C returns the scores of the blocks that were foretold; before the first it is a
    KeyboardInterrupt.

    Parameters
    ----------
    data
        ``Decisions`` or ``Rankings`` with times, or a table of them as ``rv.fit`` takes it.
    model
        Any model that ``rv.fit`` takes for such data.
    every, unit
        The model is fitted anew before every so many "dates", which are different times; or, with
        unit="time", before every stretch of so much time, in days where times are dates.
    first
        The first time that is foretold, a number or a date; default: that after half of them.
    baselines
        Some of "static" (the same model without change), "elo" (ratings whose step is the best for
        what came before `first`; of rankings), "frequencies" (how often each action was chosen so
        far; of decisions) and "chance"; default: all that there are for these data. Elo and
        frequencies learn as often as the model does.
    resample
        "game", "decision", "group", "session" or "date": what is drawn with replacement for
        intervals. Default: games; groups or sessions where there are ten, or else decisions.
    resamples
        How often.
    seed
        Of fits and of resampling.
    progress
        Whether there is a progress bar; default: only on a terminal.
    update
        Whether a fit goes on from the one before it (``post.update``) in place of a fit of all that
        was seen: for decisions whose values change.
    settings
        Others of ``rv.fit``: sampler, draws, warmup, chains, executor. For skills that change
        sampler="laplace" is a ``SkillFilter``, which takes seconds in place of hours and does
        not draw; it also takes from_last.

    Returns
    -------
    WalkForward
        Log losses, accuracy and calibration of the model and of baselines.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> games = [["ann", "bob"] if rng.random() < 0.8 else ["bob", "ann"] for _ in range(40)]
    >>> d = rv.Rankings.from_lists(games, times=range(40))
    >>> rv.walk_forward(d, every=10, draws=200)
    <WalkForward: 20 pairs after 2 fits; log loss model 0..., elo 0..., chance 0.6931>
    """
    count = check_count("resamples", resamples, least=100)
    if "checkpoint" in settings or "resume" in settings:
        raise ValueError(
            "walk_forward makes many fits, and keeps no checkpoint of any; leave it out"
        )
    data, model = as_data_and_model(data, model)
    if isinstance(data, Trajectories):
        raise ValueError("walk_forward takes Decisions or Rankings; these data are Trajectories")
    if data.times is None:
        raise ValueError(
            'walk_forward needs to know when: give times=... to the data, or time="column" to '
            "the reader"
        )
    blocks = cut_into_blocks(data.times, every, unit, first)
    known = _known_baselines(data, model)
    names = _check_baselines(known if baselines is None else baselines, known)
    what, unit_of = _units(data, resample)
    number = as_seed_number(seed)
    walker = (GameEvents if isinstance(data, Rankings) else ChoiceEvents)(data, blocks, names)
    # the same seeds for both: what they differ in is change alone
    forecasters: dict[str, Any] = {"model": _forecaster(walker, model, settings, update)}
    if "static" in names:
        usual = {name: given for name, given in settings.items() if name not in ("sampler", *OWN)}
        # of skills, components and covariates go too: they are of those that change
        static: Model
        if isinstance(model, RankingModel):
            static = without_changes(model)
        else:
            static = model.replace(over_time=Constant())
        forecasters["static"] = RefittedModel(walker, static, usual, False)
    made = _walk(walker, forecasters, blocks, number, progress)
    order = ["model", *names]
    events = walker.events(made.blocks, order, unit_of)
    return WalkForward(events, made.refits, what, walker.elo_step, count, number, made.complete)


def _known_baselines(data: Any, model: Model) -> tuple[str, ...]:
    """Those that there are for these data and this model.

    The model without change is one only where values change.
    """
    # rankings whose skills are constant have no such part
    part = getattr(model, "over_time", Constant())
    static = () if part is None or isinstance(part, Constant) else ("static",)
    if isinstance(data, Rankings):
        return (*static, "elo", "chance")
    often = ("frequencies",) if has_frequencies(data) else ()
    return (*static, *often, "chance")


def _check_baselines(names: Sequence[str], known: tuple[str, ...]) -> tuple[str, ...]:
    """The baselines that are wanted, each once and in the usual order."""
    # a single name is not a list of letters
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in known:
            raise ValueError(
                f"baselines has {name!r}; for these data and this model there are "
                f"{', '.join(known)}"
            )
    return tuple(name for name in known if name in wanted)


def _units(data: Any, resample: str | None) -> tuple[str, Ints]:
    """What is resampled, in words, and which unit each decision or game belongs to.

    resample: what the caller asked for, or None.
    """
    # all kinds of units that these data have
    of: dict[str, Any] = {"date": data.times}
    if isinstance(data, Rankings):
        of["game"] = np.arange(len(data))
    else:
        of |= {"decision": np.arange(len(data)), "group": data.groups, "session": data.sessions}
    numbers = {
        name: np.unique(labels, return_inverse=True)[1]
        for name, labels in of.items()
        if labels is not None
    }
    # groups are independent, and decisions of one are not
    if resample is None:
        for name in ("group", "session"):
            if name in numbers and numbers[name].max() + 1 >= RESAMPLING.fewest_units:
                return f"{name}s", numbers[name]
        resample = "game" if isinstance(data, Rankings) else "decision"
    if resample not in numbers:
        raise ValueError(f"resample must be one of {', '.join(numbers)}; it is {resample!r}")
    return f"{resample}s", numbers[resample]


def _forecaster(walker: Any, model: Model, settings: dict[str, Any], update: bool) -> Any:
    """How a model learns: by fits, each from the beginning or from the last one, or by its mode."""
    by_mode = settings.get("sampler") == "laplace"
    if by_mode and isinstance(model, RankingModel) and isinstance(model.over_time, RandomWalk):
        return FilteredSkills(walker, model, settings)
    # an argument that does nothing is refused
    for name in OWN:
        if name in settings:
            raise ValueError(
                f'{name} goes with skills that change and sampler="laplace"; leave it out'
            )
    if update and not isinstance(model.over_time, RandomWalk | MeanReverting):
        raise ValueError(
            "update=True goes with values and skills that drift; leave it out, or give "
            "over_time=rv.RandomWalk()"
        )
    return RefittedModel(walker, model, settings, update)


class RefittedModel:
    """A model that is fitted before each block, by `rv.fit`."""

    def __init__(self, walker: Any, model: Model, settings: dict[str, Any], update: bool) -> None:
        self.walker, self.model, self.settings, self.update = walker, model, settings, update
        self._posterior: Any = None
        self._seen = 0

    def forecast(self, block: Block, seed: int) -> tuple[dict[str, Scores], bool]:
        """Scores of a block from what was seen before it, and whether the fit converged."""
        # a fit of all that was seen, or what came since the last one added to it
        if self.update and self._posterior is not None:
            lengths = {"draws", "warmup"} & set(self.settings)
            given = {name: self.settings[name] for name in lengths}
            new = self.walker.take(block.seen[self._seen :])
            posterior = self._posterior.update(new, seed=seed, progress=False, **given)
        else:
            seen = self.walker.take(block.seen)
            posterior = fit_quietly(seen, self.model, seed=seed, **self.settings)
        # draws of a fit that was cut short are too few to foretell anything
        if not posterior.settings.get("complete", True):
            raise KeyboardInterrupt
        self._posterior, self._seen = posterior, len(block.seen)
        return self.walker.score(posterior, self.walker.take(block.next)), bool(posterior.converged)


class FilteredSkills:
    """Skills that change, by the mode of all of them; their sizes are found now and then."""

    def __init__(self, walker: Any, model: RankingModel, settings: dict[str, Any]) -> None:
        # there are no chains whose length could be set
        allowed = {"sampler", *OWN}
        for name in settings:
            if name not in allowed:
                raise ValueError(f'sampler="laplace" of skills has no use for {name}; leave it out')
        self.walker, self.model = walker, model
        self.from_last = bool(settings.get("from_last", False))
        self._filter: SkillFilter | None = None

    def forecast(self, block: Block, seed: int) -> tuple[dict[str, Scores], bool]:
        """Scores of a block from what was seen before it; a mode is found, or it raises."""
        if self._filter is None:
            # all games have their nodes at once, those without results too
            self._filter = SkillFilter(
                self.walker.data, self.model, len(block.seen), from_last=self.from_last
            )
        scores = self._filter.learn(len(block.seen)).score(block.next)
        return scores._asdict(), True


@dataclass
class _Made:
    """What a walk has made: scores by forecaster and kind of each block, and the fits."""

    blocks: list[dict[str, dict[str, Scores]]]
    refits: Refits
    complete: bool


def _walk(
    walker: Any, forecasters: dict[str, Any], blocks: list[Block], seed: int, progress: bool | None
) -> _Made:
    """Fit, foretell and see, block by block.

    forecasters: by name, the one that is asked about first.
    """
    found: list[dict[str, dict[str, Scores]]] = []
    seconds: list[float] = []
    converged: list[bool] = []
    complete = True
    with (
        progress_bar("walk forward", total=len(blocks), show=progress, counted=True) as update,
        warnings.catch_warnings(),
    ):
        # players that no game of a young league tells apart are no news at every fit
        warnings.simplefilter("ignore", UnboundedSkillWarning)
        try:
            for b, block in enumerate(blocks):
                scores, took, good = {}, 0.0, True
                for f, (name, forecaster) in enumerate(forecasters.items()):
                    began = time.perf_counter()
                    # a seed of its own for each fit: errors of draws do not add up
                    scores[name], converges = forecaster.forecast(block, seed_for(seed, b))
                    if f == 0:
                        took, good = time.perf_counter() - began, converges
                scores |= walker.baselines(block)
                found.append(scores)
                seconds.append(took)
                converged.append(good)
                update(len(found))
        except KeyboardInterrupt:
            if not found:
                raise
            complete = False
    # after Ctrl-C there are fewer than blocks
    refits = Refits(
        np.array([block.time for block in blocks[: len(found)]]),
        np.array([float(len(block.seen)) for block in blocks[: len(found)]]),
        np.array(seconds),
        np.array(converged, np.bool_),
    )
    return _Made(found, refits, complete)
