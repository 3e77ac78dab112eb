"""Tetris as an environment: what a board and a piece offer, and a noisy controller that plays.

The state is the board and the piece, drawn evenly from seven. An action is a placement
(rotation, column), and its row holds the features of the board it leads to, so the controller of
the paper's section 5.2 chooses the placement a with the largest utility

    e(a) + features(board after a) @ value,    e(a) ~ N(0, 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Cells, Floats, Ints
from revealed._validation import Seed, as_generator, check_count
from revealed.data.decisions import Decisions
from revealed.environments.tetris.board import Landing, as_board, drop, has_ended
from revealed.environments.tetris.features import FEATURE_SETS, FeatureFunction, Move
from revealed.environments.tetris.pieces import PIECES, outlines, piece_number
from revealed.environments.tetris.rollout import Policy, Rollout, Step
from revealed.kernels.tetris import legal_placements, simulate_games, stack_legal_placements


@dataclass(frozen=True)
class Tetris:
    """The game on a board of any size.

    Parameters
    ----------
    rows, columns
        The size of the board; the paper's is 30 x 10.
    actions
        "distinct" offers each resulting position once. "literal" offers four rotations of every
        piece, so some placements are offered twice or four times, as the paper's text has it.
    features
        What a row holds: "paper", "bertsekas", "dellacherie" or "rich" (see `features.py`), or a
        function from a `Move` to numbers, equally many for every move.
    names
        The names of the features, where `features` is a function.

    Examples
    --------
    >>> tetris = rv.environments.Tetris(rows=20)
    >>> rollout = tetris.simulate(np.random.default_rng(1), [-3, -15, -1], 50)
    >>> tetris.decisions(rollout)
    <Decisions: 50 decisions of 9 to 34 actions, 3 coefficients, dense>
    """

    rows: int = 30
    columns: int = 10
    actions: str = "distinct"
    features: str | FeatureFunction = "paper"
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        # Checked at birth: everything later may rely on it.
        for name in ("rows", "columns"):
            check_count(name, getattr(self, name))
        outlines(self.actions)  # refuses an unknown word
        if isinstance(self.features, str) and self.features not in FEATURE_SETS:
            raise ValueError(
                f"features is {self.features!r}; it must be one of {', '.join(FEATURE_SETS)}, "
                "or a function"
            )
        if self.names is not None and isinstance(self.features, str):
            raise ValueError(
                f"the features {self.features!r} have names of their own; leave names out"
            )
        # A game must be able to begin with any piece.
        for piece in PIECES:
            if not len(self._legal_placements(self.empty(), PIECES.index(piece))):
                raise ValueError(
                    f"the piece {piece} does not fit on a board of {self.rows} x {self.columns}"
                )

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the K features."""
        if isinstance(self.features, str):
            return FEATURE_SETS[self.features].names(self.columns)
        # How many numbers a function returns is found by trying it on an empty board.
        empty = self.empty()
        width = self._computed_features(empty, 0, self._legal_placements(empty, 0)).shape[1]
        names = (
            tuple(self.names)
            if self.names is not None
            else tuple(f"feature {k}" for k in range(width))
        )
        if len(names) != width:
            raise ValueError(
                f"{len(names)} names were given, but the feature function returns {width} numbers"
            )
        return names

    def empty(self) -> Cells:
        """The empty board, which a game begins with."""
        return np.zeros((self.rows, self.columns), np.uint8)

    def placements(self, board: Any, piece: Any) -> Ints:
        """The legal placements of a piece.

        Parameters
        ----------
        board
            A board of this size, as an array or as texts.
        piece
            Its letter, or its position in I O T S Z J L.

        Returns
        -------
        Ints
            (M, 2) rotation and column, by rotation and then from left to right. M is 0 when the
            game has ended.
        """
        return self._legal_placements(self.check_board(board), piece_number(piece))[:, :2]

    def placements_with_rows(self, board: Any, piece: Any) -> Ints:
        """(M, 3) the legal placements, each with the row of the piece's topmost square at rest."""
        return self._legal_placements(self.check_board(board), piece_number(piece))

    def placements_with_features(self, board: Any, piece: Any) -> tuple[Ints, Floats]:
        """The legal placements (M, 2), and the features (M, K) of the board after each."""
        # Features of the user's own need Python; named sets are compiled.
        cells, p = self.check_board(board), piece_number(piece)
        if not isinstance(self.features, str):
            placements = self._legal_placements(cells, p)
            return placements[:, :2], self._computed_features(cells, p, placements)
        placements, features = self._output_arrays(1)
        # The compiled loop writes into arrays for the most placements there can be.
        code = FEATURE_SETS[self.features].code
        count = legal_placements(code, cells, outlines(self.actions), p, placements, features)
        return placements[:count, :2], features[:count]

    def _output_arrays(self, states: int) -> tuple[Ints, Floats]:
        """Arrays large enough for the placements and the features of so many states."""
        most = 4 * self.columns * states
        return np.empty((most, 3), np.int64), np.empty((most, len(self.feature_names)))

    def _legal_placements(self, board: Cells, piece: int) -> Ints:
        """(M, 3) rotation, column and row at rest of the legal placements."""
        # The paper's features are the cheapest to compute, and are thrown away.
        placements: Ints = np.empty((4 * self.columns, 3), np.int64)
        unused = np.empty((4 * self.columns, 3))
        code = FEATURE_SETS["paper"].code
        shapes = outlines(self.actions)
        return placements[: legal_placements(code, board, shapes, piece, placements, unused)]

    def _computed_features(self, board: Cells, piece: int, placements: Ints) -> Floats:
        """(M, K) what the user's feature function returns for each placement."""
        assert not isinstance(self.features, str)
        rows = []
        # Each placement is made, and the function is shown what came of it.
        for rotation, column, row in placements.tolist():
            landing = drop(board, piece, rotation, column)
            move = Move(board, PIECES[piece], rotation, column, row, landing.board, landing.cleared)
            rows.append(np.atleast_1d(np.asarray(self.features(move), dtype=np.float64)))
        shape = rows[0].shape if rows else (0,)
        # Name the first placement for which the function misbehaves.
        for numbers, (rotation, column, _) in zip(rows, placements.tolist(), strict=True):
            if numbers.ndim != 1 or numbers.shape != shape or not np.isfinite(numbers).all():
                raise ValueError(
                    "the feature function must return as many finite numbers for every move; for "
                    f"the piece {PIECES[piece]} with rotation {rotation} at column {column} it "
                    f"returned {numbers.tolist()}"
                )
        # without placements there is nothing to stack: keep two dimensions
        return np.array(rows).reshape(len(rows), *shape)

    def drop(self, board: Any, piece: Any, rotation: int, column: int) -> Landing:
        """The landing of a piece that falls: its row, the board after, and the rows removed."""
        return drop(self.check_board(board), piece, rotation, column)

    def simulate(self, seed: Seed, value: Any, count: int, board: Any = None) -> Rollout:
        """What a noisy controller does for `count` placements.

        When a game has ended, the next decision is the first of a new one, on an empty board, as
        in the paper's first experiment.

        Parameters
        ----------
        seed
            Where pieces and noise come from: a numpy Generator, which is used; or a number, or
            None.
        value
            (K,) the weights of the features.
        count
            How many placements to make.
        board
            The board to begin with; default: an empty one.

        Returns
        -------
        Rollout
            Boards, pieces, placements and game numbers, `count` of each.
        """
        rng = as_generator(seed)
        check_count("count", count)
        # one weight for each feature
        names, weights = self.feature_names, np.asarray(value, dtype=np.float64)
        if weights.shape != (len(names),) or not np.isfinite(weights).all():
            raise ValueError(
                f"value must be {len(names)} finite numbers, for {', '.join(names)}; it is {value}"
            )
        # Begin with an empty board, or with a given one.
        begin = self.empty() if board is None else self.check_board(board)
        if not isinstance(self.features, str):
            return self._simulate_slowly(rng, weights, count, begin)
        # Named feature sets are played by one compiled loop.
        boards = np.empty((count, self.rows, self.columns), np.uint8)
        pieces, games = np.empty(count, np.int64), np.empty(count, np.int64)
        chosen: Ints = np.empty((count, 3), np.int64)
        code, shapes = FEATURE_SETS[self.features].code, outlines(self.actions)
        simulate_games(code, rng, begin, weights, shapes, boards, pieces, chosen, games)
        return Rollout(boards, pieces, chosen[:, 0], chosen[:, 1], games)

    def _simulate_slowly(
        self, rng: np.random.Generator, weights: Floats, count: int, board: Cells
    ) -> Rollout:
        """The same as `simulate` with a feature function, which is called from Python."""

        def noisy(rng: np.random.Generator, rows: Floats) -> int:
            return int(np.argmax(rows @ weights + rng.standard_normal(len(rows))))

        # One game after the other, until there are enough placements.
        steps: list[Step] = []
        game = 0
        while len(steps) < count:
            steps += [
                step._replace(game=game)
                for step in self.play(rng, noisy, count - len(steps), board)
            ]
            game, board = game + 1, self.empty()
        return Rollout(
            np.stack([step.board for step in steps]),
            *(
                np.array([getattr(s, name) for s in steps])
                for name in ("piece", "rotation", "column", "game")
            ),
        )

    def play(
        self,
        rng: np.random.Generator,
        policy: Policy,
        max_steps: int,
        board: Any = None,
        pieces: Any = None,
    ) -> Iterator[Step]:
        """One game, placement by placement, until it ends or `max_steps` are made.

        Parameters
        ----------
        rng
            Where pieces come from; also handed to the policy.
        policy
            Picks among the features of what is offered.
        max_steps
            How many placements are made at most.
        board
            The board to begin with; default: an empty one.
        pieces
            The pieces in their order; default: drawn evenly.

        Returns
        -------
        Iterator[Step]
            One step for each placement.
        """
        now = self.empty() if board is None else self.check_board(board)
        given = None if pieces is None else [piece_number(p) for p in pieces]
        for t in range(max_steps if given is None else min(max_steps, len(given))):
            # the piece is drawn before anything else, so that a policy cannot change the pieces
            piece = int(rng.integers(len(PIECES))) if given is None else given[t]
            placements, features = self.placements_with_features(now, piece)
            # the piece does not fit: the game has ended
            if not len(placements):
                return
            # The policy sees features only, as the model assumes.
            rotation, column = placements[policy(rng, features)].tolist()
            landing = drop(now, piece, rotation, column)
            yield Step(now, piece, rotation, column, landing, 0)
            now = landing.board
            if has_ended(now):
                return

    def decisions(self, rollout: Rollout, *, ids: Any = None) -> Decisions:
        """The decisions of a rollout: a row of features for every legal placement.

        Parameters
        ----------
        rollout
            What was observed, on boards of this size.
        ids
            (T,) labels of the decisions; default: their positions.

        Returns
        -------
        Decisions
            One decision for each step.
        """
        # Refuse what cannot be decisions, with the reason.
        if not len(rollout):
            raise ValueError("there are no decisions: the rollout is empty; at least one is needed")
        if rollout.boards.shape != (len(rollout), self.rows, self.columns):
            raise ValueError(
                f"the boards have shape {rollout.boards.shape}, but {len(rollout)} boards of "
                f"{self.rows} x {self.columns} are needed"
            )
        labels = np.arange(len(rollout)) if ids is None else ids
        start, placements, features = self._all_placements(rollout)
        # Find the chosen placement among those of its decision.
        decision = np.repeat(np.arange(len(rollout)), np.diff(start))
        is_chosen = (placements[:, 0] == rollout.rotations[decision]) & (
            placements[:, 1] == rollout.columns[decision]
        )
        chosen = np.full(len(rollout), -1, np.int64)
        chosen[decision[is_chosen]] = (np.arange(start[-1]) - start[decision])[is_chosen]
        # What was done must be among what was offered.
        illegal = np.flatnonzero(chosen < 0)
        if illegal.size:
            t = int(illegal[0])
            raise ValueError(
                f"decision {labels[t]}: the placement of piece {PIECES[rollout.pieces[t]]} with "
                f"rotation {rollout.rotations[t]} at column {rollout.columns[t]} is not legal"
            )
        # Labels of all placements that there could be, looked up for those that are legal.
        action_labels = np.array(
            [[f"rotation {r}, column {c}" for c in range(self.columns)] for r in range(4)]
        )
        return Decisions(
            features,
            start,
            chosen,
            names=self.feature_names,
            actions=action_labels[placements[:, 0], placements[:, 1]],
            ids=ids,
        )

    def _all_placements(self, rollout: Rollout) -> tuple[Ints, Ints, Floats]:
        """Where each step's placements begin (T + 1,), the placements (P, 3), features (P, K)."""
        start: Ints = np.zeros(len(rollout) + 1, np.int64)
        # Named sets: one compiled loop over all steps, into arrays that are cut afterwards.
        if isinstance(self.features, str):
            placements, features = self._output_arrays(len(rollout))
            stack_legal_placements(
                FEATURE_SETS[self.features].code,
                rollout.boards,
                rollout.pieces,
                outlines(self.actions),
                start,
                placements,
                features,
            )
            return start, placements[: start[-1]], features[: start[-1]]
        # A feature function is called once for every placement of every step.
        pieces = rollout.pieces.tolist()
        by_step = [
            self._legal_placements(board, piece)
            for board, piece in zip(rollout.boards, pieces, strict=True)
        ]
        states = zip(rollout.boards, pieces, by_step, strict=True)
        start[1:] = np.cumsum([len(placements) for placements in by_step])
        return (
            start,
            np.concatenate(by_step),
            np.concatenate([self._computed_features(*state) for state in states]),
        )

    def check_board(self, given: Any) -> Cells:
        """A board of this environment's size, from an array or texts; others are refused."""
        # first the kind of thing, then its size
        board = as_board(given)
        if board.shape != (self.rows, self.columns):
            raise ValueError(
                f"the board has {board.shape[0]} rows and {board.shape[1]} columns; "
                f"this environment has {self.rows} and {self.columns}"
            )
        return board
