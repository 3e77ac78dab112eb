"""Understudy: the learner behind scikit-learn's door.

A scikit-learn classifier sees a table X and labels y. A decision fits into that in three ways:

    fit(decisions)            Decisions carry rows, choice sets and choices
    fit(X, y, decision=ids)   one row an action; rows with the same id compete, and y marks the one chosen
    fit(X, y)                 each row is a decision of its own: take it, or leave it

In the last, taking has utility x'v + intercept, leaving has utility 0, and both carry noise of variance 1, so that
P(take) = Phi((x'v + intercept) / sqrt 2): a binary probit whose noise has variance 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from understudy._arrays import Bools, Floats, Ints
from understudy.decisions import Decisions
from understudy.engines.fit import fit
from understudy.posterior import Posterior
from understudy.predict import Prediction, predict
from understudy.priors import Gaussian, Prior
from understudy.stream import FEWEST, Stream

Labels = np.ndarray[Any, Any]


class Understudy(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn what a controller values from its decisions, and predict it, as a scikit-learn classifier.

    Args:
        prior: ``us.Gaussian(2500.0)`` unless said; ``us.Flat()``; or a number, the variance of a Gaussian.
        engine, draws, warmup, chains, options: as in ``us.fit``.
        intercept: add a constant to what taking a row is worth. Only ``fit(X, y)`` has one: where the rows of a
            decision compete, what all of them share changes nothing.
        random_state: a number gives the same draws every time, and those of ``us.fit`` with that seed; also a
            RandomState, or None.
        progress: show a bar; as in ``us.fit``.

    Attributes:
        posterior_: the Posterior, with all there is to know.
        coef_, coef_sd_: (n_features_in_,) posterior means and standard deviations.
        intercept_: the posterior mean of the constant; 0.0 where there is none.
        classes_: the two labels; the second, in sorted order, marks a row that is chosen.
        grouped_: whether rows compete within decisions (the first two forms).
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.

    Features are used as they come: scale them first, for instance with StandardScaler in a pipeline.

    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 20)  # tea or coffee, twenty times
    >>> y = np.array([1, 0] * 14 + [0, 1] * 6)
    >>> model = us.Understudy(prior=1.0).fit(X, y, decision=np.repeat(np.arange(20), 2))
    >>> model.coef_ > 0.0, model.predict_proba(X[:2], decision=[0, 0]).shape
    (array([ True, False]), (2, 2))
    """

    def __init__(
        self,
        prior: Prior | float | None = None,
        engine: str = "auto",
        draws: int = 1000,
        warmup: int = 1000,
        chains: int = 4,
        intercept: bool = True,
        random_state: int | np.random.RandomState | None = 0,
        progress: bool | None = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.prior = prior
        self.engine = engine
        self.draws = draws
        self.warmup = warmup
        self.chains = chains
        self.intercept = intercept
        self.random_state = random_state
        self.progress = progress
        self.options = options

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, decision: Any = None) -> Understudy:
        """Learn from decisions in any of the three forms.

        Args:
            X: Decisions; or (n, K) features, an array, a dataframe or a scipy sparse matrix.
            y: (n,) two labels, of which the larger marks the rows chosen; the Decisions have their own.
            decision: (n,) the id of the decision each row belongs to; rows of one need not be adjacent.

        A posterior that has not converged comes with a NotConvergedWarning.
        """
        self.__dict__.pop("posterior_", None)  # a fit that fails leaves nothing to predict from
        if isinstance(X, Decisions):
            _refuse_extras(y, decision)
            decisions, classes = X, np.array([False, True])
            self.n_features_in_, self.feature_names_in_ = len(X.names), np.array(X.names, dtype=object)
        else:
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
            classes = _two_labels(y)
            names = list(getattr(self, "feature_names_in_", [f"v{k}" for k in range(X.shape[1])]))
            decisions, _ = _decisions(X, decision, y == classes[1], names, self.intercept)
        posterior = fit(
            decisions,
            _prior(self.prior),
            self.engine,
            self.draws,
            self.warmup,
            self.chains,
            _seed(self.random_state),
            options=self.options,
            progress=self.progress,
        )
        self.__dict__.pop("stream_", None)
        return self._learnt(posterior, classes, isinstance(X, Decisions) or decision is not None)

    def partial_fit(self, X: Any, y: Any = None, decision: Any = None, classes: Any = None) -> Understudy:
        """Learn more decisions, one after the other, on top of all that was learnt before; X, y and decision as in `fit`.

        A ``us.Stream`` of `draws` particles, at least a hundred, carries the posterior, `stream_` afterwards; what `fit` learnt is fed to it first.

        Args:
            classes: the two labels, where the first y does not hold both.
        """
        fitted, grouped = hasattr(self, "posterior_"), isinstance(X, Decisions) or decision is not None
        if fitted:
            self._refuse_other_form(grouped)
        if isinstance(X, Decisions):
            _refuse_extras(y, decision)
            decisions, found = X, np.array([False, True])
            if not fitted:
                self.n_features_in_, self.feature_names_in_ = len(X.names), np.array(X.names, dtype=object)
        else:
            X, y = validate_data(
                self, X, y, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, reset=not fitted
            )
            found = self.classes_ if fitted else _two_labels(y if classes is None else np.asarray(classes))
            names = list(getattr(self, "feature_names_in_", [f"v{k}" for k in range(X.shape[1])]))
            if not np.isin(y, found).all():
                raise ValueError(f"y holds the label {y[~np.isin(y, found)][0]}, but the classes are {found.tolist()}")
            decisions, _ = _decisions(X, decision, y == found[1], names, self.intercept)
        if not hasattr(self, "stream_"):
            seed = _seed(self.random_state)
            particles = max(FEWEST, self.draws)
            stream = Stream(
                decisions.names, _prior(self.prior), particles, 0 if seed is None else seed, blocks=decisions.blocks
            )
            self.stream_ = stream.update(self.posterior_.decisions) if fitted else stream
        self.stream_.update(decisions)
        return self._learnt(self.stream_.posterior(), found, grouped)

    def _learnt(self, posterior: Posterior, classes: Labels, grouped: bool) -> Understudy:
        width = self.n_features_in_
        self.posterior_, self.classes_, self.grouped_ = posterior, classes, grouped
        self.coef_, self.coef_sd_ = posterior.mean[:width], posterior.sd[:width]
        self.intercept_ = float(posterior.mean[width:].sum())  # of one number, or of none
        return self

    def predict(self, X: Any, decision: Any = None) -> Labels:
        """(n,) a label for each row, the chosen one on exactly one row of each decision.

        For Decisions: (T,) the action most likely to be chosen, counted within the decision as ``chosen`` is.
        """
        prediction, order = self._predicted(X, decision)
        mark = prediction.action
        if isinstance(X, Decisions):
            return mark
        if self.grouped_:
            mark = np.zeros(len(order), dtype=np.int64)
            mark[order[prediction.decisions.start[:-1] + prediction.action]] = 1
        return np.asarray(self.classes_[mark])

    def predict_proba(self, X: Any, decision: Any = None) -> Floats:
        """(n, 2) probabilities that a row is not chosen and that it is, averaged over the posterior.

        For Decisions: (P,) the probability that each action is chosen; they sum to one in each decision.
        """
        prediction, order = self._predicted(X, decision)
        if isinstance(X, Decisions):
            return prediction.probabilities
        if not self.grouped_:
            return prediction.probabilities.reshape(-1, 2)
        chosen = np.empty(len(order))
        chosen[order] = prediction.probabilities
        return np.column_stack([1.0 - chosen, chosen])

    def score(self, X: Any, y: Any = None, decision: Any = None) -> float:
        """The share of decisions predicted right, 1 - E_a; y and decision as in `fit`."""
        return 1.0 - self._predicted(X, decision, y)[0].error

    def _predicted(self, X: Any, decision: Any, y: Any = None) -> tuple[Prediction, Ints]:
        """The prediction of what is decided in X, and the row of X behind each row of those decisions."""
        check_is_fitted(self, "posterior_")
        if isinstance(X, Decisions):
            _refuse_extras(y, decision)
            self._refuse_other_form(True)
            return predict(self.posterior_, X), np.arange(X.rows.shape[0])
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
        self._refuse_other_form(decision is not None)
        taken = None if y is None else self._taken(y, X.shape[0])
        names, width = self.posterior_.names, self.n_features_in_
        decisions, order = _decisions(X, decision, taken, list(names[:width]), len(names) > width)
        return predict(self.posterior_, decisions), order

    def _taken(self, y: Any, count: int) -> Bools:
        y = column_or_1d(y)
        if len(y) != count:
            raise ValueError(f"y has {len(y)} labels, but X has {count} rows; give one label for each row")
        strange = ~np.isin(y, self.classes_)
        if strange.any():
            raise ValueError(f"y holds the label {y[strange][0]}, but fit saw only {self.classes_.tolist()}")
        return np.asarray(y == self.classes_[1])

    def _refuse_other_form(self, grouped: bool) -> None:
        if self.grouped_ and not grouped:
            raise ValueError("fit saw rows that compete within decisions; give decision, the id of each row's decision")
        if grouped and not self.grouped_:
            raise ValueError("fit saw each row as a decision of its own, without ids; give X alone here too")


def _decisions(X: Any, decision: Any, taken: Bools | None, names: list[str], intercept: bool) -> tuple[Decisions, Ints]:
    """The decisions in a table, and for each of their rows the row of X it came from."""
    if decision is None:
        return _take_or_leave(X, taken, names, intercept), np.repeat(np.arange(X.shape[0]), 2)
    order, start, ids = _grouped(decision, X.shape[0])
    chosen = None if taken is None else _chosen(taken[order], start, ids)
    return Decisions(X[order], start, chosen, names=names, ids=ids), order


def _take_or_leave(X: Any, taken: Bools | None, names: list[str], intercept: bool) -> Decisions:
    """Each row of X a decision: action 0 leaves it, a row of zeros, and action 1 takes it."""
    count = X.shape[0]
    if intercept:
        constant = np.ones((count, 1))
        X = sp.hstack([X, constant], format="csr") if sp.issparse(X) else np.hstack([X, constant])
        names = [*names, "intercept"]
    if sp.issparse(X):
        rows = sp.kron(X, np.array([[0.0], [1.0]]), format="csr")
    else:
        rows = np.zeros((2 * count, X.shape[1]))
        rows[1::2] = X
    return Decisions(rows, 2 * np.arange(count + 1), None if taken is None else taken.astype(np.int64), names=names)


def _grouped(decision: Any, count: int) -> tuple[Ints, Ints, Labels]:
    """Rows brought together by id, decisions in order of first appearance: the order, where each starts, its id."""
    given = np.asarray(decision)
    if given.shape != (count,):
        raise ValueError(f"decision has shape {given.shape}, but X has {count} rows; give one id for each row")
    try:
        ids, first, code = np.unique(given, return_index=True, return_inverse=True)
        missing = any(label is None or label != label for label in ids.tolist())
    except TypeError:  # numpy cannot sort text among numbers, nor None among either
        missing = True
    if missing:
        raise ValueError("the decision ids must be all numbers or all text, and none may be missing")
    appeared = np.argsort(first)
    rank = np.empty_like(appeared)
    rank[appeared] = np.arange(len(ids))
    code = rank[code]
    start = np.concatenate([[0], np.cumsum(np.bincount(code))])
    return np.argsort(code, kind="stable"), start, ids[appeared]


def _chosen(taken: Bools, start: Ints, ids: Labels) -> Ints:
    """(T,) the position of the one row marked in each decision."""
    marked = np.add.reduceat(taken.astype(np.int64), start[:-1])
    wrong = np.flatnonzero(marked != 1)
    if wrong.size:
        t = wrong[0]
        found = "no row is" if marked[t] == 0 else f"{marked[t]} rows are"
        raise ValueError(f"decision {ids[t]}: {found} marked chosen in y; exactly one must be")
    return np.flatnonzero(taken) - start[:-1]


def _two_labels(y: Labels) -> Labels:
    check_classification_targets(y)
    if type_of_target(y) != "binary":
        raise ValueError("Only binary classification is supported: y must hold two labels, for chosen rows and others")
    classes = np.unique(y)
    if len(classes) == 1:
        raise ValueError(f"y holds one class only, {classes[0]}; give two, of which the larger marks the chosen rows")
    return classes


def _prior(given: Prior | float | None) -> Prior | None:
    return Gaussian(float(given)) if isinstance(given, int | float | np.number) else given


def _seed(given: int | np.random.RandomState | None) -> int | None:
    if given is None or (isinstance(given, int | np.integer) and given >= 0):
        return given
    return int(check_random_state(given).randint(np.iinfo(np.int32).max))


def _refuse_extras(y: Any, decision: Any) -> None:
    for name, value in (("y", y), ("decision", decision)):
        if value is not None:
            raise ValueError(f"Decisions know their own choices and choice sets; leave out {name}")
