"""ChoiceClassifier: learning from decisions under scikit-learn's contract.

A scikit-learn classifier sees a table X and labels y. A decision fits into that in three ways:

    fit(decisions)            Decisions carry rows, choice sets and choices
    fit(X, y, decision=ids)   one row an action; rows with the same id compete, y marks the chosen
    fit(X, y)                 each row is a decision of its own: take it, or leave it

In the last, taking has utility x'v + intercept, leaving has utility 0, and both carry noise of
variance 1, so that P(take) = Phi((x'v + intercept) / sqrt 2): a binary probit whose noise has
variance 2.

>>> X, y = [[-1.0], [-0.5], [0.5], [1.0]] * 10, [0, 0, 1, 1] * 10
>>> model = rv.ChoiceModel(prior=rv.Normal(1.0))
>>> rv.sklearn.ChoiceClassifier(model).fit(X, y).predict([[-2.0], [2.0]])
array([0, 1])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from revealed._types import Bools, Floats, Ints, Labels
from revealed.api import fit
from revealed.data import matrix
from revealed.data.decisions import Decisions
from revealed.models.choice import ChoiceModel
from revealed.online import MIN_PARTICLES, OnlineLearner
from revealed.results.prediction import Prediction
from revealed.samplers.observations import tells_actions_apart


class ChoiceClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it has no types
    """Learn what a controller values from its decisions, and predict it.

    A scikit-learn classifier. Features are used as they come: scale them first, for instance with
    StandardScaler in a pipeline.

    Parameters
    ----------
    model
        What is assumed: a ``rv.ChoiceModel``; default: that of ``rv.fit``. Where it has groups,
        every method is told who decides.
    sampler, draws, warmup, chains, options
        As in ``rv.fit``.
    intercept
        Add a constant to what taking a row is worth. Only ``fit(X, y)`` has one: where the rows of
        a decision compete, what all of them share changes nothing.
    random_state
        A number gives the same draws every time, and those of ``rv.fit`` with that seed; also a
        RandomState, or None.
    progress
        Show a bar; as in ``rv.fit``.

    Attributes
    ----------
    posterior_
        The posterior, with all there is to know.
    coef_, coef_sd_
        (n_features_in_,) posterior means and standard deviations; (G, n_features_in_) of G groups.
    intercept_
        The posterior mean of the constant, (G,) of groups; 0.0 where there is none.
    classes_
        The two labels; the second, in sorted order, marks a row that is chosen.
    grouped_
        Whether rows compete within decisions (the first two forms).
    learner_
        After `partial_fit`, the ``rv.OnlineLearner`` that carries the posterior.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> X = np.array([[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10)  # tea or coffee
    >>> y, ids = np.array([1, 0] * 14 + [0, 1] * 6), np.repeat(np.arange(20), 2)
    >>> model = rv.ChoiceModel(prior=rv.Normal(1.0))
    >>> tea = rv.sklearn.ChoiceClassifier(model).fit(X, y, decision=ids)
    >>> tea.coef_[0] > 0.0, tea.predict_proba(X[:2], decision=[0, 0]).shape
    (np.True_, (2, 2))
    """

    def __init__(
        self,
        model: ChoiceModel | None = None,
        sampler: str = "auto",
        draws: int = 1000,
        warmup: int | None = None,
        chains: int = 4,
        intercept: bool = True,
        random_state: int | np.random.RandomState | None = 0,
        progress: bool | None = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        # scikit-learn's rule: parameters are stored as given, and checked by `fit`.
        self.model = model
        self.sampler = sampler
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

    def fit(
        self, X: Any, y: Any = None, decision: Any = None, group: Any = None
    ) -> ChoiceClassifier:
        """Learn from decisions in any of the three forms.

        A posterior that has not converged comes with a NotConvergedWarning.

        Parameters
        ----------
        X
            Decisions; or (n, K) features, an array, a dataframe or a scipy sparse matrix.
        y
            (n,) two labels, of which the larger marks the rows chosen; Decisions have their own.
        decision
            (n,) the id of the decision each row belongs to; rows of one need not be adjacent.
        group
            (n,) who decides, where the model has groups; Decisions have their own.

        Returns
        -------
        ChoiceClassifier
            Itself.
        """
        self.__dict__.pop("posterior_", None)  # a fit that fails leaves nothing to predict from
        if isinstance(X, Decisions):
            matrix.check_no_extras(y, decision, group)
            # Decisions know what was chosen; the labels are then true and false.
            decisions, classes = X, np.array([False, True])
            self._set_features(X)
        else:
            X, y = self._validate_table(X, y, reset=True)
            classes = _check_two_labels(y)
            decisions, _ = self._make_decisions(X, decision, y == classes[1], group)
        posterior = fit(
            decisions,
            _as_model(self.model),
            sampler=self.sampler,
            draws=self.draws,
            warmup=self.warmup,
            chains=self.chains,
            seed=_as_seed(self.random_state),
            options=self.options,
            progress=self.progress,
        )
        self.__dict__.pop("learner_", None)
        return self._set_posterior(
            posterior, classes, isinstance(X, Decisions) or decision is not None
        )

    def partial_fit(
        self, X: Any, y: Any = None, decision: Any = None, classes: Any = None, group: Any = None
    ) -> ChoiceClassifier:
        """Learn from more decisions, one after the other, on top of all before.

        A ``rv.OnlineLearner`` of `draws` particles, at least a hundred, carries the posterior,
        `learner_` afterwards; what `fit` learnt from is given to it first. Under correlated noise
        and with habits the actions of the first call are all there are.

        Parameters
        ----------
        X, y, decision, group
            As in `fit`.
        classes
            The two labels, where the first y does not hold both.

        Returns
        -------
        ChoiceClassifier
            Itself.
        """
        fitted = hasattr(self, "posterior_")
        grouped = isinstance(X, Decisions) or decision is not None
        if fitted:
            self._check_same_form(grouped)
        if isinstance(X, Decisions):
            matrix.check_no_extras(y, decision, group)
            decisions, labels = X, np.array([False, True])
            if not fitted:
                self._set_features(X)
        else:
            X, y = self._validate_table(X, y, reset=not fitted)
            if fitted:
                labels = self.classes_
            else:
                labels = _check_two_labels(y if classes is None else np.asarray(classes))
            # A label that appears later could not be told chosen or not.
            if not np.isin(y, labels).all():
                unknown = y[~np.isin(y, labels)][0]
                raise ValueError(
                    f"y holds the label {unknown}, but the classes are {labels.tolist()}"
                )
            decisions, _ = self._make_decisions(X, decision, y == labels[1], group)
        if not hasattr(self, "learner_"):
            model, seed = _as_model(self.model), _as_seed(self.random_state)
            # Begun once, with the same model and seed that `fit` would use.
            learner = OnlineLearner(
                model,
                decisions.names,
                max(MIN_PARTICLES, self.draws),
                0 if seed is None else seed,
                blocks=decisions.blocks,
                actions=decisions.actions if tells_actions_apart(model) else None,
            )
            self.learner_ = learner.update(self.posterior_.decisions) if fitted else learner
        # Only the new decisions are learnt from; the particles carry the rest.
        self.learner_.update(decisions)
        return self._set_posterior(self.learner_.posterior(), labels, grouped)

    def predict(self, X: Any, decision: Any = None, group: Any = None) -> Labels:
        """A label for each row, the chosen one on exactly one row of each decision.

        Parameters
        ----------
        X, decision, group
            As in `fit`, in the form that `fit` saw.

        Returns
        -------
        array
            (n,) labels. For Decisions: (T,) the action most likely to be chosen, counted within the
            decision as ``chosen`` is.
        """
        prediction, order = self._predict(X, decision, group)
        if isinstance(X, Decisions):
            return prediction.predicted
        # Taking and leaving are actions 1 and 0, which are positions in classes_.
        marked = prediction.predicted
        if self.grouped_:
            marked = np.zeros(len(order), dtype=np.int64)
            marked[order[prediction.decisions.start[:-1] + prediction.predicted]] = 1
        return np.asarray(self.classes_[marked])

    def predict_proba(self, X: Any, decision: Any = None, group: Any = None) -> Floats:
        """Probabilities that a row is not chosen and that it is, averaged over the posterior.

        Parameters
        ----------
        X, decision, group
            As in `fit`, in the form that `fit` saw.

        Returns
        -------
        array
            (n, 2). For Decisions: (P,) the probability that each action is chosen; they sum to one
            in each decision.
        """
        prediction, order = self._predict(X, decision, group)
        if isinstance(X, Decisions):
            return prediction.probabilities
        # Two actions a decision: left and taken are the two columns already.
        if not self.grouped_:
            return prediction.probabilities.reshape(-1, 2)
        # Back from decisions brought together to the order of the rows of X.
        chosen = np.empty(len(order))
        chosen[order] = prediction.probabilities
        return np.column_stack([1.0 - chosen, chosen])

    def score(
        self,
        X: Any,
        y: Any = None,
        decision: Any = None,
        group: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """The share of decisions predicted right, 1 - E_a; those of a single row do not count.

        Parameters
        ----------
        X, y, decision, group
            As in `fit`.
        sample_weight
            (n,) how much each row counts, the same for all rows of a decision; (T,) for Decisions.

        Returns
        -------
        float
            From 0 to 1.
        """
        prediction, order = self._predict(X, decision, group, y)
        if sample_weight is None:
            return 1.0 - prediction.error_rate
        by_row = None if isinstance(X, Decisions) else order
        weights = matrix.decision_weights(sample_weight, prediction.decisions, by_row)
        right, scored = prediction.predicted == prediction.decisions.chosen, prediction.scored
        return matrix.weighted_share(right[scored], weights[scored])

    def _set_features(self, decisions: Decisions) -> None:
        """What scikit-learn's validation sets for a table, from the names of coefficients."""
        self.n_features_in_ = len(decisions.names)
        self.feature_names_in_ = np.array(decisions.names, dtype=object)

    def _validate_table(self, X: Any, y: Any, reset: bool) -> tuple[Any, Labels]:
        """X and y as scikit-learn checks them; that numbers are finite is checked by Decisions."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite=False,
            reset=reset,
        )
        return X, y

    def _make_decisions(
        self, X: Any, decision: Any, is_chosen: Bools, group: Any
    ) -> tuple[Decisions, Ints]:
        """The decisions in a table, and for each of their rows the row of X it came from."""
        names = list(getattr(self, "feature_names_in_", [f"v{k}" for k in range(X.shape[1])]))
        return matrix.decisions_from_matrix(X, decision, is_chosen, names, self.intercept, group)

    def _set_posterior(self, posterior: Any, classes: Labels, grouped: bool) -> ChoiceClassifier:
        """Set the fitted attributes, and return itself."""
        # The intercept, where there is one, is the coefficient behind the features.
        width = self.n_features_in_
        self.posterior_, self.classes_, self.grouped_ = posterior, classes, grouped
        mean, sd = posterior.mean("value"), posterior.sd("value")
        self.coef_, self.coef_sd_ = mean[..., :width], sd[..., :width]
        constant = mean[..., width:].sum(axis=-1)  # of one number, or of none
        self.intercept_: Any = float(constant) if constant.ndim == 0 else constant
        return self

    def _predict(self, X: Any, decision: Any, group: Any, y: Any = None) -> tuple[Prediction, Ints]:
        """The prediction of what is chosen in X, and the row of X behind each row of it."""
        check_is_fitted(self, "posterior_")
        if isinstance(X, Decisions):
            matrix.check_no_extras(y, decision, group)
            self._check_same_form(True)
            return self.posterior_.predict(X), np.arange(X.rows.shape[0])
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False
        )
        self._check_same_form(decision is not None)
        labels = None if y is None else column_or_1d(y)
        is_chosen = matrix.marked_rows(labels, self.classes_, X.shape[0])
        # Whether there was an intercept is seen from the posterior itself.
        names, width = self.posterior_.names, self.n_features_in_
        decisions, order = matrix.decisions_from_matrix(
            X, decision, is_chosen, list(names[:width]), len(names) > width, group
        )
        return self.posterior_.predict(decisions), order

    def _check_same_form(self, grouped: bool) -> None:
        """Refuse a form of decisions that differs from the one `fit` saw."""
        if self.grouped_ and not grouped:
            raise ValueError(
                "fit saw rows that compete within decisions; "
                "give decision, the id of each row's decision"
            )
        if grouped and not self.grouped_:
            raise ValueError(
                "fit saw each row as a decision of its own, without ids; give X alone here too"
            )


def _check_two_labels(y: Labels) -> Labels:
    """(2,) the labels in y, sorted; refuses any other number of them."""
    check_classification_targets(y)
    # Also numbers that are no labels at all, as in a regression.
    if type_of_target(y) != "binary":
        # The first words are those that scikit-learn's own checks look for.
        raise ValueError(
            "Only binary classification is supported: "
            "y must hold two labels, for chosen rows and others"
        )
    return matrix.two_classes(y)


def _as_model(given: ChoiceModel | None) -> ChoiceModel:
    """The model, or that of `rv.fit` where none is given."""
    if given is not None and not isinstance(given, ChoiceModel):
        raise ValueError(f"model must be rv.ChoiceModel(...); it is {given!r}")
    return ChoiceModel() if given is None else given


def _as_seed(given: int | np.random.RandomState | None) -> int | None:
    """scikit-learn's random_state as a seed: a RandomState gives its next number."""
    if given is None or (isinstance(given, int | np.integer) and given >= 0):
        return given
    # scikit-learn's own way from its random states to numbers.
    return int(check_random_state(given).randint(np.iinfo(np.int32).max))
