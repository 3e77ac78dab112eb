"""Experiment 1 (section 5.2): games played by the predicted actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed.environments.tetris import Tetris, sampling_policy, voting_policy
from revealed.environments.tetris.text import board_with_piece
from revealed.replication.figures import plot_boards
from revealed.replication.study import ReportProgress, Section
from revealed.replication.tetris_players import VALUES, player_generator, player_label


def style_section(tetris: Tetris, rollouts: Any, posts: Any, seed: int) -> Section:
    """Boards of the three players, and of the understudies that learnt from 50 decisions."""
    shown: dict[str, list[Any]] = {"true": [], "mimicked": []}
    # Both play by themselves: the same pieces would not help, since boards soon differ.
    for i, name in enumerate(VALUES):
        rng = player_generator(seed, 3000 + i)
        # the other two end their games soon
        steps = 60 if name == "efficient" else 14
        true = list(tetris.play(rng, sampling_policy(VALUES[name]), steps))
        mimicked = list(tetris.play(rng, voting_policy(posts[name][50][0].values), steps))
        shown["true"].append(board_with_piece(true[-1]))
        shown["mimicked"].append(board_with_piece(mimicked[-1]))
    return Section(
        "The style of play",
        "play by the predicted actions is qualitatively similar to play by the true values: "
        "efficient, zig-zag, towers.",
        "see for yourself: the understudies below learnt from 50 decisions each, and play on "
        "other pieces than those.",
        plot_boards(
            "True and mimicked play",
            shown,
            [player_label(name) for name in VALUES],
            "After 60 placements of the first player and up to 14 of the others, whose games end "
            "early; the piece just placed is orange.",
        ),
        "Boards of three players, and of their understudies below.",
    )


def survival_section(
    tetris: Tetris,
    posts: Any,
    seed: int,
    games: int,
    numbers: dict[str, Any],
    report_progress: ReportProgress,
) -> Section:
    """How many games by the predicted action reach 250 placements.

    Adds `survived_250` to the numbers.
    """
    shares: dict[str, float] = {}
    # The paper's board, and one so low that mistakes end the game.
    for rows in (30, 12):
        for count in (50, 100):
            report_progress(f"tetris: {games} games by what {count} decisions teach, {rows} rows")
            small, post = Tetris(rows), posts["efficient"][count][0]
            choose = voting_policy(post.values, 200)
            # games that were still going after 250 placements
            lived = sum(
                len(list(small.play(player_generator(seed, 4000 + g), choose, 250))) == 250
                for g in range(games)
            )
            shares[f"{rows} rows, {count} decisions"] = lived / games
    numbers["survived_250"] = shares
    return Section(
        "A hundred games by the predicted action",
        "with what 100 decisions of (-3, -15, -1) teach, the game did not end within 250 "
        "placements in 80 of 100 trials.",
        f"shares of {games} games that reach 250 placements: "
        + "; ".join(f"{name} {share:.2f}" for name, share in shares.items())
        + f". On the paper's 30 rows that is {shares['30 rows, 100 decisions']:.2f} where "
        "the paper has 0.80; boards of 12 rows show how much the height matters.",
    )


def termination_section(
    seed: int, numbers: dict[str, Any], seeds: int, quick: bool, report_progress: ReportProgress
) -> Section:
    """How soon games end. Adds `median_length` to the numbers."""
    lengths: dict[str, dict[str, float]] = {}
    report_progress("tetris: how long games last")
    # the efficient player's games do not end
    for name in ("zig-zag", "towers"):
        lengths[name] = {}
        for rows in (30, 20):
            rollout = Tetris(rows).simulate(
                player_generator(seed, 5000 + rows), VALUES[name], 500 if quick else 5000
            )
            # the last game was cut off, not ended
            lengths[name][f"{rows} rows"] = float(np.median(np.bincount(rollout.games)[:-1]))
    numbers["median_length"] = lengths
    ended = numbers["terminations"]
    return Section(
        "How soon games end",
        "play by (-3, -15, -1) did not terminate within 500 steps; by the other two, termination "
        "typically came after 10 to 20.",
        "terminations in 500 placements: "
        f"{', '.join(f'{player_label(n)} {min(e)} - {max(e)}' for n, e in ended.items())}. Median "
        "length "
        "of a game: "
        + "; ".join(
            f"{player_label(n)} {', '.join(f'{m:g} on {r}' for r, m in by_rows.items())}"
            for n, by_rows in lengths.items()
        )
        + ".",
    )
