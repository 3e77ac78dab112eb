"""Who decided: how the values of different groups belong together.

    Pooled         one value for all
    Separate       a value for each group, none of which says anything about another
    Hierarchical   v_i ~ N(mean, covariance) for each group i, both inferred with the rest

Under `Hierarchical` a group with few decisions, or decisions that say little, is drawn towards the
population; one with many stands for itself. The decisions carry the groups.
"""

from __future__ import annotations

from dataclasses import dataclass

from revealed._validation import check_positive


@dataclass(frozen=True)
class Pooled:
    """One value for all decisions, whoever made them.

    Examples
    --------
    >>> rv.ChoiceModel().groups
    Pooled()
    """


@dataclass(frozen=True)
class Separate:
    """A value for each group by itself: as many independent fits as there are groups.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(400, 1))
    >>> best = (rows[:, 0] + rng.normal(size=400)).reshape(-1, 2).argmax(axis=1)
    >>> d = rv.Decisions(rows, range(0, 401, 2), best, groups=np.repeat(["ann", "ben"], 100))
    >>> found = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(2.0), groups=rv.Separate()))
    >>> found.select(group="ann").mean() > 0.0
    array([ True])
    """


@dataclass(frozen=True)
class Hierarchical:
    """A value for each group, and all from one normal population that is inferred too.

    Parameters
    ----------
    sd_scale
        Of the prior of the groups' sds: sd_scale times |t|, t Student with two degrees of freedom,
        for each coefficient; the correlations are marginally uniform (Huang and Wand 2013).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(300, 2))  # ten people decide fifteen times between two things
    >>> likes = np.repeat(rng.normal([1.0, -1.0], 0.5, (10, 2)), 30, axis=0)
    >>> utility = (rows * likes).sum(axis=1) + rng.normal(size=300)
    >>> best = utility.reshape(-1, 2).argmax(axis=1)
    >>> d = rv.Decisions(rows, range(0, 301, 2), best, groups=np.repeat(range(10), 15))
    >>> people = rv.fit(d, rv.ChoiceModel(groups=rv.Hierarchical()), draws=3000)
    >>> people.mean("population_mean") > 0.0
    array([ True, False])
    """

    sd_scale: float = 5.0

    def __post_init__(self) -> None:
        check_positive("the scale of the groups' sds", self.sd_scale)


Groups = Pooled | Separate | Hierarchical
"""What `ChoiceModel.groups` may be."""
