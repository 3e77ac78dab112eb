"""WalkForward: forecasts of what came next, refit after refit, and how good they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Bools, Floats
from revealed.results.forecasts import Forecasts
from revealed.results.text import align_columns, count_things


@dataclass(frozen=True, eq=False)
class Refits:
    """The fits of a walk forward, one before each block of events; arrays (R,).

    Attributes
    ----------
    times
        When the first event of each block was.
    observations
        How many decisions or games were seen before it.
    seconds
        How long the model's fit took.
    converged
        Whether it converged.
    """

    times: Floats
    observations: Floats
    seconds: Floats
    converged: Bools


@dataclass(frozen=True, eq=False, repr=False)
class WalkForward:
    """How well a model foretells what comes next, beside baselines.

    Attributes
    ----------
    events
        Forecasts by the kind of event: "choices" of decisions; "pairs" and, where games have more
        than two entries, "winners" of rankings. The model is the first of `forecasters`.
    refits
        When the model was fitted, and how long that took.
    unit
        What is resampled for intervals: games, groups, sessions, dates or decisions.
    elo_step
        The step of the Elo ratings on the logistic scale; NaN without them.
    resamples, seed
        How often units are resampled, and from which seed.
    complete
        Whether it came to its end; Ctrl-C leaves the blocks before it.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> taken = (rng.logistic(size=60) < np.linspace(-4.0, 4.0, 60)).astype(int)
    >>> d = rv.Decisions([[0.0], [1.0]] * 60, range(0, 121, 2), taken, times=range(60))
    >>> model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk(0.3))
    >>> walk = rv.walk_forward(d, model, every=15, draws=200)
    >>> print(walk)
    choices          log loss ...
    >>> lines = walk.table()
    >>> lines[0]["forecaster"], lines[1]["forecaster"]
    ('model', 'static')
    """

    events: Mapping[str, Forecasts]
    refits: Refits
    unit: str
    elo_step: float
    resamples: int
    seed: int
    complete: bool

    @property
    def forecasters(self) -> tuple[str, ...]:
        """Who foretold: the model first, then baselines."""
        return next(iter(self.events.values())).forecasters

    @cached_property
    def _resampled(self) -> dict[str, Floats]:
        """(resamples, F) mean losses of each kind of event."""
        return {
            kind: found.resampled(self.resamples, self.seed) for kind, found in self.events.items()
        }

    def table(self) -> list[dict[str, Any]]:
        """A line for each kind of event and forecaster.

        Returns
        -------
        list of dict
            kind; forecaster; log_loss and its 95 % interval, low and high; worse, by how much that
            is more than the model's, with its interval, worse_low and worse_high; accuracy;
            calibration_error; events; units.
        """
        lines = []
        for kind, found in self.events.items():
            drawn = self._resampled[kind]
            # the same resamples for all: differences are much better known than losses
            worse = drawn - drawn[:, :1]
            for f, forecaster in enumerate(found.forecasters):
                low, high = np.quantile(drawn[:, f], [0.025, 0.975])
                worse_low, worse_high = np.quantile(worse[:, f], [0.025, 0.975])
                lines.append(
                    {
                        "kind": kind,
                        "forecaster": forecaster,
                        "log_loss": float(found.log_loss[f]),
                        "low": float(low),
                        "high": float(high),
                        "worse": float(found.log_loss[f] - found.log_loss[0]),
                        "worse_low": float(worse_low),
                        "worse_high": float(worse_high),
                        "accuracy": float(found.accuracy[f]),
                        "calibration_error": found.calibration(forecaster).error,
                        "events": len(found),
                        "units": found.units,
                    }
                )
        return lines

    def to_dataframe(self) -> Any:
        """A pyarrow table, a row for each event and forecaster.

        Columns: kind, event, time, unit, forecaster, log_probability, confidence, correct.
        """
        import pyarrow as pa

        parts = []
        # one event after the other, forecaster by forecaster
        for kind, found in self.events.items():
            count, events = len(found.forecasters), len(found)
            parts.append(
                pa.table(
                    {
                        "kind": [kind] * (count * events),
                        "event": np.tile(np.arange(events), count),
                        "time": np.tile(found.times, count),
                        "unit": np.tile(found.unit, count),
                        "forecaster": np.repeat(np.array(found.forecasters), events),
                        "log_probability": found.log_probability.ravel(),
                        "confidence": found.confidence.ravel(),
                        "correct": found.correct.ravel(),
                    }
                )
            )
        return pa.concat_tables(parts)

    def plot(self, kind: str | None = None) -> Any:
        """The figure of `rv.plots.walk_forward`: calibration, and losses over time."""
        import importlib

        # figures need matplotlib, which is optional
        return importlib.import_module("revealed.plots").walk_forward(self, kind)

    def __repr__(self) -> str:
        # the first kind stands for all
        kinds = ", ".join(f"{len(found)} {kind}" for kind, found in self.events.items())
        losses = ", ".join(
            f"{name} {loss:.4f}"
            for name, loss in zip(
                self.forecasters, next(iter(self.events.values())).log_loss, strict=True
            )
        )
        cut = "" if self.complete else "; interrupted"
        fits = count_things(len(self.refits.times), "fit")
        return f"<WalkForward: {kinds} after {fits}; log loss {losses}{cut}>"

    def __str__(self) -> str:
        said = []
        # a table for each kind of event
        for kind in self.events:
            lines = [line for line in self.table() if line["kind"] == kind]
            # the model comes first: what others lose more is beside it
            heads = (kind, "log loss", "95%", "worse by", "95%", "right", "calibration error")
            columns = [
                [line["forecaster"] for line in lines],
                [f"{line['log_loss']:.4f}" for line in lines],
                [f"{line['low']:.4f} to {line['high']:.4f}" for line in lines],
                ["-", *(f"{line['worse']:+.4f}" for line in lines[1:])],
                ["-", *(_interval(line["worse_low"], line["worse_high"]) for line in lines[1:])],
                [f"{line['accuracy']:.1%}" for line in lines],
                [f"{line['calibration_error']:.3f}" for line in lines],
            ]
            said.append(
                align_columns([[h, *cells] for h, cells in zip(heads, columns, strict=True)])
            )
            found = self.events[kind]
            said.append(f"{len(found)} {kind}; intervals by resampling {found.units} {self.unit}")
        # what a reader wants to know of the fits
        unsure = int((~self.refits.converged).sum())
        fits = count_things(len(self.refits.times), "fit")
        foot = f"{fits} of the model, {self.refits.seconds.sum():.1f} s"
        foot += f"; {unsure} not converged" if unsure else ""
        foot += f"; Elo's step is {self.elo_step:.3f}" if np.isfinite(self.elo_step) else ""
        foot += "" if self.complete else "; interrupted: later events are left out"
        return "\n".join([*said, foot])


def _interval(low: float, high: float) -> str:
    """An interval of differences, with signs."""
    return f"{low:+.4f} to {high:+.4f}"
