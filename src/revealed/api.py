"""`fit`: data and a model in, a posterior out; the only function that runs a sampler.

The steps are: check what was given; resolve the model against the data; where there are very many
decisions, try Laplace importance sampling, which certifies its answer or gives none; otherwise
choose a sampler, run its chains, and put draws, data and settings together.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from revealed._validation import Seed
from revealed.data.decisions import Decisions
from revealed.data.trajectories import Trajectories
from revealed.io.checkpoints import CHECKPOINTS, CheckpointMismatch, ResultFolder, fingerprint
from revealed.io.data_and_model import as_data_and_model
from revealed.models.choice import ChoiceModel, ResolvedChoiceModel
from revealed.models.groups import Pooled, Separate
from revealed.models.informed import UninformedWarning, describe_uninformed
from revealed.models.ranking import RankingModel
from revealed.results.classes import make_posterior
from revealed.results.load import load
from revealed.results.separate import SeparatePosterior, join_parts
from revealed.results.summary import CONVERGENCE
from revealed.samplers.background_compile import start_background_compile
from revealed.samplers.laplace_mode import NotCertified
from revealed.samplers.laplace_run import needs_laplace, run_laplace, tries_laplace_first
from revealed.samplers.memory import check_memory
from revealed.samplers.model_kind import Model, ResolvedModel
from revealed.samplers.progress import announce_compiling, progress_bar
from revealed.samplers.registry import BuildArguments, choose_entry
from revealed.samplers.run_settings import RunSettings, check_init
from revealed.samplers.separate import FitTask, fit_all, seed_for


class NotConvergedWarning(UserWarning):
    """The draws should not be relied on yet; the message says why.

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "price"])
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     post = rv.fit(d, sampler="da", draws=100, warmup=0)
    >>> print(said[0].category.__name__)
    NotConvergedWarning
    """


def fit(
    data: Any,
    model: Model | None = None,
    *,
    sampler: str = "auto",
    draws: int = 1000,
    warmup: int | None = None,
    chains: int = 4,
    thin: int = 1,
    seed: Seed = 0,
    init: Any = None,
    options: Mapping[str, Any] | None = None,
    executor: Any = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = CHECKPOINTS.seconds,
) -> Any:
    """Infer the posterior of a model from data.

    Ctrl-C returns the draws made so far; before every chain has one, it is a KeyboardInterrupt. A
    result that has not converged comes with a NotConvergedWarning.

    Parameters
    ----------
    data
        What was observed: ``Decisions``, ``Rankings`` or ``Trajectories``; a long table of one of
        the first two, any dataframe or the path of a .csv or .parquet file, with the column names
        that their readers expect; or a folder of Parquet files, ``rv.scan_parquet(path)``, read
        chunk by chunk.
    model
        What is assumed: a ``ChoiceModel`` or ``RankingModel``; default: that of the data, with a
        default for each part.
    sampler
        "auto", or one of ``rv.samplers_for(model)``. The paper's are "da", "px-scale",
        "px-translate" and "px-both"; "ibis" has as many particles as draws in each chain, which
        take the decisions one by one, need no warm-up, and give the evidence; "laplace" makes a few
        passes with a diagnostic that certifies them. "auto" tries it first where the posterior has
        one mode, unless ``warmup``, ``thin`` or ``init`` ask for chains.
    draws, warmup, chains, thin
        Kept draws a chain, iterations before them (default: what the sampler needs), chains,
        iterations a kept draw.
    seed
        The same number gives the same draws with any number of threads; None picks one and records
        it, and so does a numpy Generator. That of the i-th of separate groups is made of (seed, i).
    init
        Where chains start, (K,) or (chains, K); default: around the posterior mode.
    options
        Of the paper's samplers: {"utilities": "exact" or "metropolis", "a": 0, "b": 0,
        "newton": 3}.
    executor
        How many threads work at once, default: all cores; or a ``dask.distributed.Client`` whose
        workers do the passes of "laplace", the groups of a population, or separate groups. The
        draws are the same to the last bit.
    progress
        Whether there is a progress bar; default: only on a terminal.
    checkpoint
        A file the run is written to now and then, on Ctrl-C and at the end. With separate groups a
        folder, to which the posterior of each is saved as soon as it is there.
    resume
        Continue the run of the checkpoint, to exactly the draws that it would have given.
    checkpoint_seconds
        How often the checkpoint is written, about. A young run is written more often, and one whose
        checkpoints take long more rarely, so that they take up to a twentieth of the time; 0 writes
        one after every chunk of a quarter of a second, whatever it costs.

    Returns
    -------
    Posterior
        Draws of everything unknown, with all they came from.

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "price"])
    >>> post = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)), seed=1)
    >>> post.names[post.mean().argmax()], post.summary().message
    ('tea', 'Converged: ...')
    """
    # check what was given, before any work is done
    if model is not None and not isinstance(model, ChoiceModel | RankingModel):
        raise ValueError(
            f"model must be rv.ChoiceModel(...) or rv.RankingModel(...); it is {model!r}"
        )
    settings = RunSettings.check(
        draws=draws,
        warmup=warmup,
        chains=chains,
        thin=thin,
        seed=seed,
        executor=executor,
        progress=progress,
        checkpoint=None if _is_separate(model) else checkpoint,
        resume=False if _is_separate(model) else resume,
        checkpoint_seconds=checkpoint_seconds,
    )
    data, model = as_data_and_model(data, model)
    particular = {
        "thin": None if thin == 1 else thin,
        "init": init,
        "options": dict(options) if options else None,
    }
    if isinstance(model, ChoiceModel) and isinstance(model.groups, Separate):
        posterior = _fit_separately(data, model, sampler, settings, particular, checkpoint, resume)
    else:
        posterior = _fit_one(data, model, sampler, settings, particular)
        # draws by "laplace" are no chains, and certified already
        if posterior.sampler == "laplace":
            return posterior
    _warn_unless_converged(posterior)
    return posterior


def fit_quietly(data: Any, model: Model | None = None, **settings: Any) -> Any:
    """The posterior that `fit` finds, without its progress bar and its warnings.

    For callers that report convergence themselves. The warnings are switched off for the whole
    process while the fit runs, as Python's warnings are.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        warnings.simplefilter("ignore", UninformedWarning)
        return fit(data, model, progress=False, **settings)


def _is_separate(model: Model | None) -> bool:
    return isinstance(model, ChoiceModel) and isinstance(model.groups, Separate)


def _fit_one(
    data: Any,
    model: Model,
    sampler: str,
    settings: RunSettings,
    particular: Mapping[str, Any],
) -> Any:
    """The posterior of a model whose groups are not separate."""
    # a folder or a cluster leaves no choice of the sampler
    asked = needs_laplace(model, data, sampler, settings.client)
    on_cluster = settings.client is not None
    entry = choose_entry("laplace" if asked else sampler, model, particular, on_cluster=on_cluster)
    resolved = model.resolve(data)
    _warn_of_uninformed([("", resolved)])
    # the workers of a cluster have memory of their own
    if settings.client is None:
        check_memory(resolved, entry.name, settings)
    announce_compiling(settings.progress)
    chains_only = {**particular, "warmup": settings.warmup}
    if asked or tries_laplace_first(resolved, sampler, chains_only):
        assert isinstance(resolved, ResolvedChoiceModel)
        posterior, resume = _try_laplace(resolved, settings, asked)
        if posterior is not None:
            return posterior
        settings = replace(settings, resume=resume)
    return _fit_chains(resolved, sampler, settings, particular)


def _try_laplace(
    resolved: ResolvedChoiceModel, settings: RunSettings, asked: bool
) -> tuple[Any, bool]:
    """The posterior by "laplace", or None where chains have to be run; and whether these resume.

    asked: whether the caller wants this sampler and no other; then its failures are errors.
    """
    try:
        draws, stats, recorded = run_laplace(resolved, settings)
    except NotCertified as reason:
        if asked:
            # where there is no posterior, that is the better reason
            resolved.refuse_improper()
            raise ValueError(f'the sampler "laplace" cannot certify an answer: {reason}') from None
        # the checkpoint was of the passes that came to nothing; chains begin afresh
        return None, False
    except CheckpointMismatch:
        if asked:
            raise
        # the checkpoint may belong to the chains that took over in an earlier run
        return None, settings.resume
    draws = resolved.name_draws(draws)
    made = make_posterior(resolved.model, resolved.data, draws, "laplace", stats, recorded)
    # chains may do better, but not where draws are too few for any answer to be trusted
    enough = settings.draws >= 2 * CONVERGENCE.min_ess_per_chain
    return (None if enough and not (asked or made.converged) else made), False


def _fit_chains(
    resolved: ResolvedModel,
    sampler_name: str,
    settings: RunSettings,
    particular: Mapping[str, Any],
) -> Any:
    """Choose the sampler, run its chains, and put the posterior together."""
    entry = choose_entry(
        sampler_name, resolved.model, particular, resolved, settings.client is not None
    )
    assert entry.build is not None
    resolved.refuse_improper()
    if entry.name == "composite":
        start_background_compile()
    options = particular["options"] or {}
    arguments = BuildArguments(options, settings.draws, settings.threads, settings.client)
    sampler = entry.build(resolved, arguments)
    # the iterations of "ibis" are the decisions
    count = len(resolved.data)
    settings = (
        replace(settings, warmup=count)
        if entry.name == "ibis"
        else settings.with_warmup(entry.warmup)
    )
    # what decides the draws is recorded with them, and stands in the fingerprint
    recorded = settings.recorded(options=options)
    width = len(resolved.parameters[0].coords.get("coefficient", ()))
    run, complete = settings.run(
        sampler,
        recorded,
        *resolved.fingerprint_parts,
        init=resolved.start_at(check_init(particular["init"], settings.chains, width)),
    )
    draws, stats = run.collect()
    draws = resolved.name_draws(draws)
    recorded["complete"] = complete
    return make_posterior(resolved.model, resolved.data, draws, entry.name, stats, recorded)


def _fit_separately(
    data: Any,
    model: ChoiceModel,
    sampler: str,
    settings: RunSettings,
    particular: Mapping[str, Any],
    checkpoint: Any,
    resume: bool,
) -> SeparatePosterior:
    """Every group by itself: an independent fit of the data of each."""
    pooled = model.replace(groups=Pooled())
    choose_entry(sampler, pooled, particular)
    resolved = model.resolve(data)
    parts = resolved.split()
    _warn_of_uninformed((f"group {name!r}", pooled.resolve(part)) for name, part in parts.items())
    # every fit has the same settings, and a seed of its own
    common = {
        "model": pooled,
        "sampler": sampler,
        "draws": settings.draws,
        "warmup": settings.warmup,
        "chains": settings.chains,
        **{name: value for name, value in particular.items() if value is not None},
    }

    def make_fingerprint() -> str:
        # paths are of each group; pooled, their times and sessions would be mixed
        mixed = resolved if resolved.group_paths is not None else pooled.resolve(data)
        whole = mixed.fingerprint_parts
        labels = [str(label) for label in np.asarray(data.groups).tolist()]
        run = {**common, "model": "", "seed": settings.seed}
        return fingerprint("separate", run, labels, *whole)

    # what an earlier run has finished need not be done again
    folder = ResultFolder.open(checkpoint, resume, make_fingerprint, _load_complete)
    found: dict[Hashable, Any] = {}
    for i, label in enumerate(parts):
        if (kept := folder.get(i)) is not None:
            found[label] = kept
    tasks = (
        FitTask(i, label, part, {**common, "seed": seed_for(settings.seed, i)})
        for i, (label, part) in enumerate(parts.items())
        if label not in found
    )
    announce_compiling(settings.progress)
    bar = progress_bar(
        "groups", total=len(parts), completed=len(found), show=settings.progress, counted=True
    )
    # one warning at the end stands for those of all fits
    with bar as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        warnings.simplefilter("ignore", UninformedWarning)
        try:
            for i, label, posterior in fit_all(tasks, fit_task, settings.threads, settings.client):
                folder.put(i, posterior)
                found[label] = posterior
                update(len(found))
        except KeyboardInterrupt:
            if not found:
                raise
    # in the order of the labels, not of the work
    ordered = {label: found[label] for label in parts if label in found}
    missing = [str(label) for label in parts if label not in found]
    settled: dict[str, Any] = {"seed": settings.seed}
    if missing:
        settled |= {"not_fitted": missing, "complete": False}
    kept = data if not missing else _data_of(data, set(ordered))
    return join_parts(ordered, kept, model, settled)


def _data_of(data: Any, labels: set[Hashable]) -> Any:
    """The data of some groups only."""
    which = [i for i, label in enumerate(np.asarray(data.groups).tolist()) if label in labels]
    return data.take(which) if isinstance(data, Trajectories) else data[which]


def fit_task(task: FitTask) -> tuple[int, Hashable, Any]:
    """The position, label and posterior of one group, fitted by a single thread."""
    try:
        posterior = fit_quietly(task.data, **task.settings, executor=1)
    except ValueError as reason:
        raise ValueError(f"group {task.label!r}: {reason}") from None
    return task.position, task.label, posterior


def _load_complete(file: Path) -> Any:
    """The posterior of a file; None where its run was interrupted.

    Such a one is run again from the beginning.
    """
    posterior = load(file)
    return posterior if posterior.settings.get("complete") else None


def _warn_of_uninformed(models: Iterable[tuple[str, ResolvedModel]]) -> None:
    """Warn once of coefficients that the choices cannot inform, in the first model and how many.

    models: each with the name of its group, empty where there is only one.
    """
    said = [
        (name, sentence)
        for name, resolved in models
        if isinstance(resolved, ResolvedChoiceModel)
        and isinstance(resolved.data, Decisions)
        and (sentence := describe_uninformed(resolved.data, resolved.prior)) is not None
    ]
    if not said:
        return
    (name, sentence), more = said[0], f" (and {len(said) - 1} more)" if len(said) > 1 else ""
    where = f"{name}{more}: " if name else ""
    warnings.warn(where + sentence, UninformedWarning, stacklevel=4)


def _warn_unless_converged(posterior: Any) -> None:
    """Warn where a result has not converged; the warning points at the caller of `fit`."""
    if not posterior.converged:
        warnings.warn(posterior.message, NotConvergedWarning, stacklevel=3)
