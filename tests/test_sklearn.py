"""The scikit-learn door: its contract in full, and the three forms of decisions it takes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import log_ndtr, ndtr
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from revealed._types import Floats, Ints
from revealed.api import NotConvergedWarning, fit
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.models.choice import ChoiceModel
from revealed.models.groups import Hierarchical, Separate
from revealed.models.priors import Flat, Normal
from revealed.online import OnlineLearner
from revealed.sklearn import ChoiceClassifier
from tests.support.cases import choose, ragged_offers
from tests.support.statistical_asserts import assert_mean, assert_sd, grid_moments

NORMAL = ChoiceModel(prior=Normal(2.0))
QUICK: dict[str, Any] = {
    "model": NORMAL,
    "draws": 60,
    "warmup": 40,
    "chains": 2,
}  # too few to trust, enough to predict
FLAT = ChoiceModel(prior=Flat())
few_draws = pytest.mark.filterwarnings(
    "ignore::revealed.api.NotConvergedWarning", "ignore::revealed.UninformedWarning"
)


# Nothing is on scikit-learn's list of expected failures: without ids a row is a whole decision, as its checks want it.
@few_draws
@parametrize_with_checks([ChoiceClassifier(**QUICK)])  # type: ignore[untyped-decorator]
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def _ragged(count: int = 40) -> Decisions:
    """Decisions of one to seven actions with three features, taken by a controller that values (1.5, -1, 0.5)."""
    offers = ragged_offers(features=3, count=count, seed=1)
    return offers.with_choices(
        choose(np.random.default_rng(2), offers, np.array([1.5, -1.0, 0.5]))[0]
    )


def _table(d: Decisions) -> tuple[Floats, Ints, Ints]:
    """X, y and ids that say the same as the decisions, rows of different decisions mixed."""
    position = np.arange(d.rows.shape[0]) - d.start[d.decision_of_row]
    mixed = np.lexsort(
        (d.decision_of_row, position)
    )  # all first actions, then all second ones, ...
    y = np.zeros(d.rows.shape[0], dtype=np.int64)
    y[d.chosen_row] = 1
    ids = (7 * d.decision_of_row + 3) % len(
        d
    )  # 7 shares no factor with len(d): every decision its own id, unsorted
    return d.rows[mixed], y[mixed], ids[mixed]


def _binary(count: int = 60) -> tuple[Floats, Ints]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((count, 2))
    return X, (X @ [2.0, -1.0] + 0.5 + np.sqrt(2.0) * rng.standard_normal(count) > 0).astype(
        np.int64
    )


@few_draws
def test_a_table_says_what_decisions_say() -> None:
    d = _ragged()
    X, y, ids = _table(d)
    direct = fit(d, ChoiceModel(prior=Normal(2.0)), draws=60, warmup=40, chains=2, seed=7)
    by_decisions = ChoiceClassifier(**QUICK, random_state=7).fit(d)
    by_table = ChoiceClassifier(**QUICK, random_state=7).fit(X, y, decision=ids)
    for model in (by_decisions, by_table):
        np.testing.assert_array_equal(model.posterior_.draws["value"], direct.draws["value"])
        np.testing.assert_array_equal(model.coef_, direct.mean())
        np.testing.assert_array_equal(model.coef_sd_, direct.sd())
        assert model.intercept_ == 0.0
        assert model.n_features_in_ == 3
    assert by_table.score(X, y, decision=ids) == by_decisions.score(d) == by_table.score(d)
    assert by_decisions.predict(d).shape == (len(d),)
    np.testing.assert_array_equal(by_table.predict_proba(d), by_decisions.predict_proba(d))


@few_draws
def test_competing_rows_are_predicted_together_and_in_place() -> None:
    X, y, ids = _table(_ragged())
    words = np.array(["no", "yes"])[y]
    model = ChoiceClassifier(**QUICK).fit(X, words, decision=[f"d{i}" for i in ids])
    assert list(model.classes_) == ["no", "yes"]
    predicted, probabilities = model.predict(X, decision=ids), model.predict_proba(X, decision=ids)
    assert set(predicted) == {"no", "yes"}
    table = pd.DataFrame(
        {
            "ids": ids,
            "yes": predicted == "yes",
            "p": probabilities[:, 1],
            "right": predicted == words,
        }
    )
    by_decision = table.groupby("ids")
    assert (by_decision.yes.sum() == 1).all()
    np.testing.assert_allclose(by_decision.p.sum(), 1.0, atol=1e-8)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (
        table.p[table.yes].to_numpy() == by_decision.p.max()[table.ids[table.yes]].to_numpy()
    ).all()
    # a decision with a single action cannot be predicted wrongly, and does not count
    share = float(by_decision.right.all()[by_decision.size() > 1].mean())
    assert 0.3 < share < 1.0, (
        "the problem must be neither hopeless nor trivial for the next line to tell anything"
    )
    assert model.score(X, words, decision=ids) == pytest.approx(share)

    shuffle = np.random.default_rng(0).permutation(len(y))
    # rows in another order are added in another order, in single precision
    np.testing.assert_allclose(
        model.predict_proba(X[shuffle], decision=ids[shuffle]), probabilities[shuffle], atol=3e-7
    )
    np.testing.assert_array_equal(
        model.predict(X[shuffle], decision=ids[shuffle]), predicted[shuffle]
    )


@pytest.mark.proves(model="scikit-learn classifier", sampler="composite")
def test_a_row_alone_is_a_binary_probit() -> None:
    """One feature, no intercept: P(take) = Phi(x v / sqrt 2), and the posterior is known by summing on a grid."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((25, 1))
    y = X[:, 0] + np.sqrt(2.0) * rng.standard_normal(25) > 0
    model = ChoiceClassifier(NORMAL, intercept=False, draws=5000, warmup=500, chains=2).fit(X, y)
    grid = np.linspace(-10.0, 10.0, 4001)
    signed = np.where(y, 1.0, -1.0) * X[:, 0]
    mean, sd = grid_moments(
        grid[:, None], log_ndtr(np.outer(grid, signed) / np.sqrt(2.0)).sum(axis=1) - grid**2 / 8.0
    )
    draws = model.posterior_.values[:, 0]
    assert_mean(draws, mean[0])
    assert_sd(draws, mean[0], sd[0])
    assert model.coef_.shape == model.coef_sd_.shape == (1,)
    assert model.intercept_ == 0.0


@few_draws
def test_probabilities_average_over_the_posterior() -> None:
    X, y = _binary()
    model = ChoiceClassifier(**QUICK).fit(X, y)
    v = model.posterior_.values
    take = ndtr((X @ v[:, :2].T + v[:, 2]) / np.sqrt(2.0)).mean(axis=1)
    np.testing.assert_allclose(
        model.predict_proba(X), np.column_stack([1.0 - take, take]), atol=1e-8
    )
    np.testing.assert_array_equal(model.predict(X), take > 0.5)
    assert model.score(X, y) == pytest.approx(np.mean((take > 0.5) == y))
    assert model.score(X, y) > 0.6
    assert model.posterior_.names == ("v0", "v1", "intercept")
    assert model.intercept_ == model.posterior_.mean()[2]
    assert model.coef_[0] > 0 > model.coef_[1]


@few_draws
def test_sparse_and_named_tables_are_the_same_tables() -> None:
    X, y = _binary()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    frame = pd.DataFrame(X, columns=["height", "holes"])
    plain = ChoiceClassifier(**QUICK).fit(X, y)
    sparse = ChoiceClassifier(**QUICK).fit(sp.csr_array(X), y)
    named = ChoiceClassifier(**QUICK).fit(frame, y)
    np.testing.assert_allclose(sparse.posterior_.draws["value"], plain.posterior_.draws["value"])
    np.testing.assert_allclose(sparse.predict_proba(sp.coo_array(X)), plain.predict_proba(X))
    np.testing.assert_array_equal(named.posterior_.draws["value"], plain.posterior_.draws["value"])
    assert named.posterior_.names == ("height", "holes", "intercept")
    assert list(named.feature_names_in_) == ["height", "holes"]

    X, y, ids = _table(_ragged())
    mixed = [
        ChoiceClassifier(**QUICK).fit(kind(X), y, decision=ids)
        for kind in (np.asarray, sp.csr_array)
    ]
    np.testing.assert_allclose(
        mixed[0].posterior_.draws["value"], mixed[1].posterior_.draws["value"]
    )


@few_draws
def test_the_random_state_decides_the_draws() -> None:
    X, y = _binary()

    def draws(state: Any) -> Floats:
        return np.asarray(
            ChoiceClassifier(**QUICK, random_state=state).fit(X, y).posterior_.draws["value"]
        )

    np.testing.assert_array_equal(draws(5), draws(5))
    np.testing.assert_array_equal(draws(np.random.RandomState(5)), draws(np.random.RandomState(5)))
    shared = np.random.RandomState(5)
    assert not np.array_equal(draws(shared), draws(shared))
    assert not np.array_equal(draws(5), draws(6))
    assert not np.array_equal(draws(None), draws(None))
    model = ChoiceClassifier(**QUICK, random_state=5).fit(X, y)
    first = model.coef_
    np.testing.assert_array_equal(model.fit(X, y).coef_, first)


@few_draws
def test_it_can_be_cloned_pickled_and_told_otherwise() -> None:
    X, y = _binary()
    model = ChoiceClassifier(**QUICK, sampler="da", options={"utilities": "metropolis"})
    twin = clone(model).get_params()
    assert twin.pop("model").prior == Normal(2.0)
    assert twin == {name: v for name, v in model.get_params().items() if name != "model"}
    model.set_params(model=ChoiceModel(prior=Normal(3.0)), intercept=False).fit(X, y)
    assert model.posterior_.sampler == "da"
    assert model.posterior_.prior == Normal(3.0)
    assert model.posterior_.settings["options"] == {"utilities": "metropolis"}
    assert model.posterior_.draws["value"].shape == (2, 60, 2)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@few_draws
@pytest.mark.parametrize(
    ("given", "used"),
    [(None, Normal(50.0)), (ChoiceModel(prior=Normal(4.0)), Normal(4.0)), (FLAT, Flat())],
)
def test_models(given: Any, used: Any) -> None:
    X, y = _binary()
    assert ChoiceClassifier(**{**QUICK, "model": given}).fit(X, y).posterior_.prior == used


@few_draws
@pytest.mark.parametrize("groups", [Separate(), Hierarchical()])
def test_groups_are_told_by_every_method(groups: Any) -> None:
    d = _ragged()
    X, y, ids = _table(d)
    who = np.where(ids % 2, "ann", "ben")
    settings = {**QUICK, "model": NORMAL.replace(groups=groups)}
    model = clone(ChoiceClassifier(**settings)).fit(X, y, decision=ids, group=who)
    assert model.coef_.shape == (2, 3)
    assert model.posterior_.groups == tuple(dict.fromkeys(who.tolist()))
    assert model.predict_proba(X, decision=ids, group=who).shape == (len(X), 2)
    assert 0.0 <= model.score(X, y, decision=ids, group=who) <= 1.0
    with pytest.raises(ValueError, match="do not say who decided"):
        model.fit(X, y, decision=ids)
    with pytest.raises(ValueError, match="its rows have different groups"):
        model.fit(X, y, decision=ids, group=np.arange(len(X)))
    online = ChoiceClassifier(**settings).partial_fit(X, y, decision=ids, group=who)
    assert online.coef_.shape == (2, 3)
    assert online.learner_.groups == online.posterior_.groups
    single = ChoiceClassifier(**settings).fit(*_binary(), group=np.arange(60) % 2)
    assert single.intercept_.shape == (2,)


def test_too_few_draws_are_never_silent() -> None:
    with pytest.warns(NotConvergedWarning):
        ChoiceClassifier(draws=10, warmup=0, chains=2).fit(_ragged())


@few_draws
def test_pipelines_and_searches() -> None:
    X, y = _binary()
    scaled = make_pipeline(StandardScaler(), ChoiceClassifier(**QUICK))
    scores = cross_val_score(scaled, X * 1000.0, y, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.6
    narrow = ChoiceModel(prior=Normal(1e-4))
    search = GridSearchCV(
        scaled, {"choiceclassifier__model": [narrow, NORMAL]}, cv=3, scoring="neg_log_loss"
    ).fit(X, y)
    assert search.best_params_["choiceclassifier__model"].prior == Normal(2.0)


@few_draws
def test_cross_validation_keeps_decisions_whole() -> None:
    X, y, ids = _table(_ragged())
    by_hand = [
        ChoiceClassifier(**QUICK)
        .fit(X[a], y[a], decision=ids[a])
        .score(X[b], y[b], decision=ids[b])
        for a, b in GroupKFold(3).split(X, y, groups=ids)
    ]
    with config_context(enable_metadata_routing=True):
        routed = cross_val_score(
            ChoiceClassifier(**QUICK)
            .set_fit_request(decision=True)
            .set_score_request(decision=True),
            X,
            y,
            cv=GroupKFold(3),
            params={"decision": ids, "groups": ids},
        )
    np.testing.assert_array_equal(routed, by_hand)
    assert np.mean(by_hand) > 0.3  # guessing gets 1/4 or so, less when one action is all there is


@few_draws
def test_a_pipeline_scores_under_metadata_routing() -> None:
    X, y, ids = _table(_ragged())
    by_hand = ChoiceClassifier(**QUICK).fit(StandardScaler().fit_transform(X), y, decision=ids)
    expected = by_hand.score(StandardScaler().fit_transform(X), y, decision=ids)
    taken, labels = _binary()
    with config_context(enable_metadata_routing=True):
        asked = ChoiceClassifier(**QUICK).set_fit_request(decision=True)
        asked = asked.set_score_request(decision=True, sample_weight=True)
        pipeline = make_pipeline(StandardScaler(), asked).fit(X, y, decision=ids)
        assert pipeline.score(X, y, decision=ids) == expected
        # the weights are passed on: a decision that alone counts is right or wrong
        several = [t for t in range(40) if (ids == t).sum() > 1]
        alone = [pipeline.score(X, y, sample_weight=ids == t, decision=ids) for t in several]
        assert set(alone) == {0.0, 1.0}
        assert np.mean(alone) == pytest.approx(expected, rel=1e-12)
        # nothing asked for: each row a decision
        plain = make_pipeline(StandardScaler(), ChoiceClassifier(**QUICK)).fit(taken, labels)
        assert plain.score(taken, labels) > 0.5


@few_draws
def test_weights_of_a_score() -> None:
    d = _ragged()
    X, y, ids = _table(d)
    model = ChoiceClassifier(**QUICK).fit(X, y, decision=ids)
    weights = np.arange(1.0, len(d) + 1.0)
    right, several = model.predict(d) == d.chosen, d.sizes > 1
    expected = np.average(right[several], weights=weights[several])
    assert model.score(d, sample_weight=weights) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="40 finite numbers, one for each decision, none neg"):
        model.score(d, sample_weight=-weights)
    with pytest.raises(ValueError, match="its rows have different sample weights"):
        model.score(X, y, decision=ids, sample_weight=np.arange(len(y)))
    with pytest.raises(ValueError, match="zero throughout"):
        model.score(X, y, decision=ids, sample_weight=np.zeros(len(y)))


TWO = np.array([[1.0], [2.0], [3.0], [4.0]])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"y": [1, 0, 0, 0], "decision": ["b", "b", "a", "a"]},
            "decision a: no row is marked chosen in y",
        ),
        (
            {"y": [1, 0, 1, 1], "decision": [7, 7, 9, 9]},
            "decision 9: 2 rows are marked chosen in y; exactly one",
        ),
        ({"y": [1, 0, 1, 0], "decision": [7, 7, 9]}, "decision has shape (3,), but X has 4 rows"),
        (
            {"y": [1, 0, 1, 0], "decision": [[7], [7], [9], [9]]},
            "decision has shape (4, 1), but X has 4 rows",
        ),
        (
            {"y": [1, 0, 1, 0], "decision": [7, 7, np.nan, np.nan]},
            "ids must be all numbers or all text, and none may",
        ),
        (
            {"y": [1, 0, 1, 0], "decision": ["a", "a", None, None]},
            "ids must be all numbers or all text, and none may",
        ),
        (
            {"y": [1, 0, 1, 0], "decision": pd.Series([1, 1, None, 2], dtype="Int64")},
            "none may be missing",
        ),
        (
            {"y": [1, 0, 0, 0], "decision": None, "X": Decisions(TWO, [0, 4], [0])},
            "Decisions know their own choices and choice sets; leave out y",
        ),
        ({"y": None, "decision": [1], "X": Decisions(TWO, [0, 4], [0])}, "leave out decision"),
        ({"y": None, "decision": None, "X": Decisions(TWO, [0, 4])}, "carry no choices"),
        ({"y": [1, 1, 1, 1], "decision": None}, "y holds one class only, 1"),
        (
            {"y": [1, 2, 3, 1], "decision": None},
            "Only binary classification is supported: y must hold two labels",
        ),
        (
            {"y": [1, 0, 1, 0], "decision": [7, 7, 9, 9], "X": [[1.0], [2.0], [np.nan], [4.0]]},
            "decision 9, action 0: a feature is NaN or infinite",
        ),
        (
            {"y": [1, 0, 1, 0], "decision": None, "model": ChoiceModel(prior=Normal(0.0))},
            "the prior sd must be positive",
        ),
        (
            {"y": [1, 0, 1, 0], "decision": None, "model": 2.0},
            "model must be rv.ChoiceModel(...); it is 2.0",
        ),
        ({"y": [1, 0, 1, 0], "decision": None, "draws": 0}, "draws must be a whole number"),
        ({"y": [1, 0, 1, 0], "decision": None, "random_state": "x"}, "cannot be used to seed"),
    ],
)
def test_bad_input_to_fit(arguments: dict[str, Any], sentence: str) -> None:
    settings: dict[str, Any] = {
        n: arguments[n] for n in ("model", "draws", "random_state") if n in arguments
    }
    model = ChoiceClassifier(**{**QUICK, **settings})
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the sentence is compared below, brackets and all)
        model.fit(arguments.get("X", TWO), arguments["y"], decision=arguments["decision"])
    assert sentence in str(error.value)
    with pytest.raises(NotFittedError):
        model.predict(TWO)


@few_draws
def test_a_fit_that_fails_leaves_nothing_to_predict_from() -> None:
    X, y = _binary()
    model = ChoiceClassifier(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, 0 * y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@few_draws
def test_bad_input_to_predictions() -> None:
    d = _ragged()
    X, y, ids = _table(d)
    grouped, single = (
        ChoiceClassifier(**QUICK).fit(X, y, decision=ids),
        ChoiceClassifier(**QUICK).fit(*_binary()),
    )
    with pytest.raises(ValueError, match="rows that compete within decisions; give decision"):
        grouped.predict(X)
    with pytest.raises(
        ValueError, match="each row as a decision of its own, without ids; give X alone"
    ):
        single.predict_proba(X[:, :2], decision=ids)
    with pytest.raises(ValueError, match="each row as a decision of its own"):
        single.predict(d)
    with pytest.raises(
        ValueError, match="coefficient 0 is 'v0' in the posterior and 'a' in the decisions"
    ):
        grouped.predict(
            Decisions(d.rows, d.start, d.chosen, names=["a", "b", "c"], blocks=[Block("value", 3)])
        )
    with pytest.raises(ValueError, match="X has 2 features, but ChoiceClassifier is expecting 3"):
        grouped.predict(X[:, :2], decision=ids)
    with pytest.raises(ValueError, match=r"y holds the label 2, but fit saw only \[0, 1\]"):
        grouped.score(X, y * 2, decision=ids)
    with pytest.raises(ValueError, match="decision 3: no row is marked chosen"):
        grouped.score(X, 0 * y, decision=ids)
    with pytest.raises(ValueError, match=f"y has 3 labels, but X has {len(y)} rows"):
        grouped.score(X, y[:3], decision=ids)
    with pytest.raises(ValueError, match="these decisions carry no choices"):
        grouped.score(X, decision=ids)


def test_partial_fit_goes_on() -> None:
    """In pieces as at once, after a fit as from the beginning, and the labels may come late."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 2))
    y = np.where(X @ [2.0, -1.0] + rng.standard_normal(60) > 0, "yes", "no")
    model = ChoiceClassifier(NORMAL, draws=200, intercept=False)
    whole = clone(model).partial_fit(X, y)
    pieces = clone(model).partial_fit(X[:1], y[:1], classes=["no", "yes"]).partial_fit(X[1:], y[1:])
    assert np.array_equal(whole.coef_, pieces.coef_)
    assert len(pieces.learner_) == 60
    assert pieces.score(X, y) > 0.8
    after = clone(model).fit(X[:30], y[:30])
    after.partial_fit(X[30:], y[30:])
    assert np.array_equal(whole.coef_, after.coef_)
    assert not hasattr(after.fit(X, y), "learner_")
    with pytest.raises(ValueError, match="the label maybe, but the classes are"):
        pieces.partial_fit(X[:1], ["maybe"])
    with pytest.raises(ValueError, match="without ids"):
        pieces.partial_fit(X, y, decision=np.arange(60) // 2)


def test_partial_fit_of_decisions() -> None:
    rng = np.random.default_rng(6)
    offers = ragged_offers(3, 20, seed=6)
    seen = offers.with_choices(choose(rng, offers, np.array([1.0, -1.0, 0.0]))[0])
    model = ChoiceClassifier(NORMAL, draws=200).partial_fit(seen[:12]).partial_fit(seen[12:])
    assert np.array_equal(
        model.learner_.particles,
        OnlineLearner(NORMAL, 3, 200).update(seen).particles,
    )
    assert len(model.predict(seen)) == 20
