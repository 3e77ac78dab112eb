"""One small file of every kind that understudy 0.1.0 writes, and what must be read back from them.

    python write.py FOLDER

This program made the files beside it, and is kept as the record of how. It needs understudy 0.1.0,
with its extra "studio" and httpx, and runs with no other version. What the files hold is told by
expected.json, by file, and by expected.npz, whose arrays are called "file:name". Both were taken
from what was saved, not from what was read again.

Every run is short, two chains of thirty draws, and need not have converged. Ids and times in the
studio's database are new whenever this is run, so all files belong to one run.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.csv
import scipy.sparse as sp
import understudy as us
from fastapi.testclient import TestClient
from understudy import each
from understudy.engines import run as running
from understudy.engines.drive import read_checkpoint
from understudy.engines.laplace import Laplace
from understudy.priors import place
from understudy.studio.app import create_app
from understudy.studio.settings import Settings
from understudy.worlds.tetris import Tetris, by_one, read_games, write_games

SHORT: dict[str, Any] = {
    "draws": 30, "warmup": 150, "chains": 2, "seed": 7, "threads": 1, "progress": False
}  # fmt: skip
TOKEN = "a-token-for-this-database"
WISHES = np.array([-0.6, -3.0, -0.2])  # of the player whose games are recorded

Told = tuple[dict[str, Any], dict[str, Any]]
"""What is plain, and arrays."""


# What is learnt from


def states() -> us.Decisions:
    """Of a decision process with four states: sparse rows, and a block that is centred."""
    rng = np.random.default_rng(1)
    world = us.random_mdp(rng, states=4, actions=3)
    path = world.simulate(rng, [1.5, 0.5, -0.5, -1.5], 30)
    d = world.decisions(path.states, path.actions)
    return us.Decisions(sp.csr_array(d.rows), d.start, d.chosen, names=d.names, blocks=d.blocks)


def features(count: int) -> us.Decisions:
    """Two to four actions with three features."""
    rng = np.random.default_rng(2)
    start = np.concatenate([[0], np.cumsum(rng.integers(2, 5, count))])
    rows = rng.standard_normal((start[-1], 3)).round(3)
    worth = rows @ [1.0, -0.5, 0.3] + rng.standard_normal(len(rows))
    chosen = [int(np.argmax(worth[first:last])) for first, last in pairwise(start)]
    return us.Decisions(rows, start, chosen, names=["length", "weight", "age"])


def drinks(count: int = 24) -> us.Decisions:
    """With all that decisions can carry: labels of actions, groups and decisions, and blocks."""
    rng = np.random.default_rng(3)
    price = rng.uniform(1.0, 3.0, (count, 3)).round(2)
    rows = np.column_stack([np.tile(np.eye(3), (count, 1)), price.ravel()])
    worth = (rows @ [0.6, 0.2, -0.8, -0.7]).reshape(count, 3) + rng.standard_normal((count, 3))
    return us.Decisions(
        rows,
        range(0, 3 * count + 1, 3),
        worth.argmax(axis=1),
        names=["tea", "coffee", "water", "price"],
        actions=["tea", "coffee", "water"] * count,
        groups=np.repeat(["ann", "ben", "cid"], count // 3),
        group_name="guest",
        blocks=[us.Block("taste", 3, centred=True), us.Block("price", 1)],
        ids=[f"day {t}" for t in range(count)],
    )


def path_of(world: us.MDP, seed: int) -> Any:
    """What a controller that likes the first state does in a world of three."""
    return world.simulate(np.random.default_rng(seed), [1.5, 0.0, -1.5], 40)


def three_states(*labels: Any) -> us.MDP:
    """A world with two actions, and maybe with labels of states and actions."""
    rows = [[[0.6, 0.4, 0.0], [0.3, 0.4, 0.3], [0.0, 0.5, 0.5]], [[0.1, 0.6, 0.3]] * 3]
    return us.MDP(rows, **dict(zip(("states", "actions"), labels, strict=False)))


LABELS = (["low", "mid", "high"], ["stay", "go"])
POSSIBLE = [[[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]], [[1.0] * 3] * 3]
GAMES = [["ann", "ben", "cid"], ["ben", "ann", "dee"], ["cid", "dee", "ann"], ["dee", "ben", "cid"]]
PAIRS = us.Orders.from_columns(
    game=[1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
    player=["ann", "ben", "cid", "dee", "ann", "cid", "ben", "dee", "ann", "dee", "ben", "cid"],
    position=[1, 1, 2, 2, 1, 1, 1, 1, 2, 2, 1, 1],
    team=["a", "a", "b", "b"] * 3,
)


# Runs


def fitted(make: Callable[[], us.Decisions], prior: Any = None, **settings: Any) -> Any:
    """A fit, to which a checkpoint may be given."""
    return lambda **kept: us.fit(make(), prior, **{**SHORT, **settings, **kept})


FITS: dict[str, Callable[..., Any]] = {
    "blended": fitted(states, us.Gaussian(4.0)),
    "learnt_size": fitted(lambda: features(30), us.Gaussian("learn", shape=[1.0, 4.0, 9.0])),
    "learnt_size_centred": fitted(states, us.Gaussian("learn", scale=2.0), engine="px-translate"),
    "flat": fitted(lambda: features(60), us.Flat()),
    "by_default": fitted(lambda: features(30)),
    "by_block": fitted(drinks, us.Gaussian({"taste": 9.0, "price": 1.0})),
    "by_coefficient": fitted(
        lambda: features(30), us.Gaussian([1.0, 4.0, 25.0], [0.5, 0.0, -0.5]), thin=2
    ),
    "by_matrix": fitted(
        states,
        us.Gaussian(4.0 * np.eye(4) + 2.0 * (np.eye(4, k=1) + np.eye(4, k=-1)), centred=False),
        engine="px-scale",
        options={"a": 2.0, "b": 3.0},
    ),
    "da": fitted(
        lambda: features(30), us.Gaussian(9.0), engine="da", options={"utilities": "metropolis"}
    ),
    "px-both": fitted(states, us.Gaussian(4.0), engine="px-both"),
    "noise": fitted(drinks, us.Gaussian(4.0), noise=us.FullNoise(base="water")),
    "noise_da": fitted(
        drinks,
        us.Gaussian(4.0),
        engine="da",
        noise=us.FullNoise("tea", scale="first", df=5.0, centre="independent"),
    ),
    "ibis": fitted(lambda: features(15), us.Gaussian(1.0), engine="ibis"),
    "laplace": fitted(lambda: features(200), us.Gaussian(25.0), engine="laplace"),
}
OTHERS: dict[str, Callable[..., Any]] = {
    "population": lambda **kept: us.fit_population(
        drinks(), prior=us.Gaussian(25.0), scale=2.0, **SHORT, **kept
    ),
    "learnt_mdp": lambda **kept: us.learn_mdp(
        path_of(three_states(*LABELS), 4), *LABELS, concentration=POSSIBLE, prior=us.Gaussian(9.0),
        action_rewards=True, **SHORT, **kept,
    ),
    "learnt_mdp_unlabelled": lambda **kept: us.learn_mdp(
        path_of(three_states(), 5), 3, 2, prior=us.Gaussian(4.0), **SHORT, **kept
    ),
    "ranking": lambda **kept: us.rank(PAIRS, noise="player", **SHORT, **kept),
    "ranking_given": lambda **kept: us.rank(GAMES, us.Gaussian(4.0), **SHORT, **kept),
    "ranking_flat": lambda **kept: us.rank(GAMES, us.Flat(), **SHORT, **kept),
}  # fmt: skip


def each_guest(**kept: Any) -> us.Each:
    """A fit of every guest."""
    return us.fit_each(drinks(), prior=us.Gaussian(4.0), **SHORT, **kept)


# What must be read back


def under(prefix: str, arrays: Any) -> dict[str, Any]:
    """The same arrays with longer names."""
    return {f"{prefix}/{name}": values for name, values in arrays.items()}


def of_decisions(d: us.Decisions) -> Told:
    """Decisions; rows are dense here."""
    rows = d.rows.toarray() if sp.issparse(d.rows) else d.rows
    plain = {name: getattr(d, name) for name in ("names", "ids", "actions", "groups")}
    plain |= {"blocks": [vars(block) for block in d.blocks], "sparse": sp.issparse(d.rows)}
    return plain, {"rows": rows, "start": d.start, "chosen": d.chosen}


def of_prior(prior: Any, d: us.Decisions) -> Told:
    """A prior as it was given, and what it comes to: v = basis q about mean, of this precision."""
    placed = place(prior, d)
    plain = {"class": type(prior).__name__, **vars(prior)}
    return plain, {name: getattr(placed, name) for name in ("basis", "precision", "mean")}


def of_posterior(post: us.Posterior) -> Told:
    """A posterior, and the probabilities that it gives to the actions it was learnt from."""
    decisions, offered = of_decisions(post.decisions)
    prior, placed = of_prior(post.prior, post.decisions)
    prediction = us.predict(post, post.decisions)
    plain = {
        "class": "Posterior", "engine": post.engine, "settings": post.settings, "prior": prior,
        "noise": None if post.noise is None else vars(post.noise), "decisions": decisions,
    }  # fmt: skip
    arrays = {"draws": post.draws, "mean": post.mean, "sd": post.sd}
    if post.covariance is not None:
        arrays["covariance"] = post.covariance
    arrays |= under("stats", post.stats)
    arrays |= under("prior", placed) | under("decisions", offered)
    arrays |= {"probabilities": prediction.probabilities, "log_taken": prediction.log_taken}
    return plain, arrays


def of_population(found: us.Population) -> Told:
    """A population, a guest of it, somebody new, and what both will drink."""
    decisions, offered = of_decisions(found.decisions)
    prior, placed = of_prior(found.prior, found.decisions)
    ben, ben_arrays = of_posterior(found.player("ben"))
    d = found.decisions
    eve = us.Decisions(
        d.rows, d.start, d.chosen, names=d.names, groups=["eve"] * len(d), blocks=d.blocks
    )
    plain = {
        "class": "Population", "players": found.players, "scale": found.scale, "prior": prior,
        "settings": found.settings, "decisions": decisions, "player": ben,
    }  # fmt: skip
    arrays = {name: getattr(found, name) for name in ("mean", "covariance", "values", "sd")}
    arrays |= under("stats", found.stats)
    arrays |= under("prior", placed) | under("decisions", offered)
    arrays |= under("player", ben_arrays)
    arrays["new_player"] = found.new_player(seed=0)
    arrays["probabilities"] = found.predict(d).probabilities
    arrays["probabilities_new"] = found.predict(eve, new=["eve"]).probabilities
    return plain, arrays


def of_learnt_mdp(found: us.LearntMDP) -> Told:
    """Values and transitions, and what follows from them."""
    value, value_arrays = of_posterior(found.value)
    policy, foreseen = found.policy(), found.predict(list(found.states))
    plain = {
        "class": "LearntMDP", "value": value, "states": found.states, "actions": found.actions,
        "names": found.names,
    }  # fmt: skip
    arrays = {n: getattr(found, n) for n in ("cells", "prior", "counts", "available", "visited")}
    arrays |= under("value", value_arrays)
    arrays |= {"optimal": policy.optimal, "probabilities": foreseen.probabilities}
    return plain, arrays | {"reward": found.reward(0.9).draws}


def of_ranking(found: us.Ranking) -> Told:
    """Skills, the games they come from, and who would win."""
    o = found.orders
    plain = {
        "class": "Ranking", "names": found.names, "noise": found.noise, "settings": found.settings,
        "games": [str(i) for i in o.ids], "table": found.table(),
    }  # fmt: skip
    arrays = {name: getattr(found, name) for name in ("skills", "spread", "margin")}
    arrays |= under("stats", found.stats)
    arrays |= {
        f"orders/{name}": getattr(o, name)
        for name in ("players", "first", "start", "tied", "known")
    }
    return plain, arrays | {"win": found.win_probabilities(["ann", "ben", "cid"])}


def of_stream(stream: us.Stream) -> Told:
    """A stream, its next prediction, and where it is after three decisions more: it is moved on."""
    prior, placed = of_prior(stream.prior, stream.decisions)
    decisions, offered = of_decisions(stream.decisions)
    plain = {
        "class": "Stream", "names": stream.names, "count": len(stream), "prior": prior,
        "log_evidence": stream.log_evidence, "effective": stream.effective, "decisions": decisions,
    }  # fmt: skip
    post = stream.posterior()
    arrays = {"particles": stream.particles, "weights": stream.weights, "draws": post.draws}
    arrays |= under("stats", post.stats)
    arrays |= under("prior", placed) | under("decisions", offered)
    arrays["probabilities"] = stream.probabilities(np.eye(3))
    stream.update(features(18)[15:])
    arrays |= {"later/particles": stream.particles, "later/weights": stream.weights}
    return plain, arrays


def of_games(file: Path) -> Told:
    """Recorded games as they are read, and as decisions."""
    games = read_games(file)
    placements = [
        {name: value for name, value in vars(p).items() if name != "board"}
        for p in games.placements
    ]
    decisions, offered = of_decisions(games.decisions())
    plain = {"rows": games.rows, "columns": games.columns, "placements": placements}
    boards = np.stack([p.board for p in games.placements])
    return plain | {"decisions": decisions}, {"boards": boards, **offered}


def of_checkpoint(file: Path) -> Told:
    """The head of a checkpoint, and the shapes of its arrays."""
    head, arrays = read_checkpoint(file)
    return {"head": head, "shapes": {name: list(a.shape) for name, a in arrays.items()}}, {}


TELLERS: dict[type, Callable[[Any], Told]] = {
    us.Posterior: of_posterior, us.Population: of_population, us.LearntMDP: of_learnt_mdp,
    us.Ranking: of_ranking, us.Stream: of_stream, us.Decisions: of_decisions,
}  # fmt: skip


class Expected:
    """What all files hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plain: dict[str, Any] = {}
        self.arrays: dict[str, Any] = {}

    def add(self, file: Path, told: Told, **more: Any) -> None:
        """Of one more file."""
        name = file.relative_to(self.folder).as_posix()
        self.plain[name] = told[0] | more
        self.arrays |= {f"{name}:{key}": values for key, values in told[1].items()}

    def write(self) -> None:
        """To expected.json and expected.npz."""
        text = json.dumps(self.plain, indent=1, default=np.ndarray.tolist, allow_nan=False)
        (self.folder / "expected.json").write_text(text + "\n", encoding="utf-8")
        np.savez_compressed(self.folder / "expected.npz", **self.arrays)


# Files of results and checkpoints


def write_results(folder: Path, expected: Expected) -> None:
    """What is saved when a run is over."""
    (folder / "posteriors").mkdir()
    for name, run in (FITS | OTHERS).items():
        found = run()
        file = folder / "posteriors" / f"{name}.nc" if name in FITS else folder / f"{name}.nc"
        found.save(file, **({"log_likelihood": True} if name == "by_block" else {}))
        expected.add(file, TELLERS[type(found)](found))
    stream = us.Stream(["length", "weight", "age"], us.Gaussian(9.0), particles=100, seed=7)
    stream.update(features(15)).save(folder / "stream.nc")
    expected.add(folder / "stream.nc", of_stream(stream))
    found = each_guest(checkpoint=folder / "each")
    for i, (label, post) in enumerate(found.items()):
        expected.add(folder / "each" / f"{i}.nc", of_posterior(post), controller=label)
    mark = folder / "each" / each.MARK
    expected.add(mark, ({"labels": list(found), **json.loads(mark.read_text())}, {}))


@contextmanager
def stopped(share: float) -> Iterator[None]:
    """Ctrl-C when more than a share of a run is done, however quick the machine is."""
    go = running.Run.go

    def until(run: running.Run, threads: int) -> Iterator[int]:
        for done in go(run, threads):
            if done > share * run.total:
                raise KeyboardInterrupt
            yield done

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(running.Run, "go", until))
        patches.enter_context(mock.patch.object(running, "PIECE_SECONDS", 0.0))
        patches.enter_context(mock.patch.object(Laplace, "_judge", side_effect=KeyboardInterrupt))
        yield


CHECKPOINTS = {
    "blended": 0.9, "blended_warming": 0.5, "learnt_size": 0.9, "da": 0.9, "px-both": 0.9,
    "noise": 0.9, "noise_da": 0.9, "ibis": 0.2, "laplace": 1.0, "population": 0.9,
    "learnt_mdp": 0.9, "ranking": 0.9,
}  # fmt: skip
"""The run, and the share of it after which it was stopped."""


def write_checkpoints(folder: Path, expected: Expected) -> None:
    """What is left of runs that were stopped; resumed, they end with the result that is told."""
    (folder / "checkpoints").mkdir()
    for name, share in CHECKPOINTS.items():
        file, whole = folder / "checkpoints" / f"{name}.checkpoint", name.removesuffix("_warming")
        result = None
        with stopped(share), suppress(KeyboardInterrupt):  # which it is where there is no draw yet
            result = (FITS | OTHERS)[whole](checkpoint=file)
        place_of = f"posteriors/{whole}.nc" if whole in FITS else f"{whole}.nc"
        expected.add(file, of_checkpoint(file), result=place_of)
        if name == "blended":
            assert result is not None
            result.save(folder / "posteriors" / "interrupted.nc")
            expected.add(folder / "posteriors" / "interrupted.nc", of_posterior(result))
    one_fit = each.one_fit

    def two_of_three(task: each.Task) -> Any:
        if task[0] == 2:
            raise KeyboardInterrupt
        return one_fit(task)

    with mock.patch.object(each, "one_fit", two_of_three):
        found = each_guest(checkpoint=folder / "checkpoints" / "each")
    mark = folder / "checkpoints" / "each" / each.MARK
    told = {"labels": list(found), "missing": found.missing, **json.loads(mark.read_text())}
    expected.add(mark, (told, {}), result="each")


# Tables, games, and the studio's database


def write_tables(folder: Path, expected: Expected) -> None:
    """Decisions as tables, whole and in pieces; they are read with the blocks that are told."""
    d = drinks()
    for ending in ("parquet", "csv", "csv.gz"):
        us.to_file(d, folder / f"decisions.{ending}")
        expected.add(folder / f"decisions.{ending}", of_decisions(d))
    (folder / "decisions").mkdir()
    for i, part in enumerate((d[:15], d[15:])):
        us.to_file(part, folder / "decisions" / f"{i}.parquet")
    expected.add(folder / "decisions", of_decisions(d))


def write_tetris(folder: Path, expected: Expected) -> None:
    """Two games of Tetris on a small board."""
    rng, world = np.random.default_rng(5), Tetris(12, 6)
    games = [list(world.play(rng, by_one(WISHES), 12)) for _ in range(2)]
    seconds = rng.uniform(0.5, 3.0, sum(map(len, games))).round(2)
    write_games(folder / "games.jsonl", games, seconds)
    expected.add(folder / "games.jsonl", of_games(folder / "games.jsonl"))


class Clock:
    """A clock that goes when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        """The time."""
        self.now += 0.75
        return self.now


@contextmanager
def studio(database: Path) -> Iterator[tuple[Any, Clock]]:
    """A studio in this process, somebody to ask it, and its clock."""
    gate, clock = create_app(Settings(str(database), TOKEN, rate=1e6, particles=100)), Clock()
    gate.app.state.games.clock = clock  # type: ignore[attr-defined]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(gate, base_url="http://127.0.0.1", headers=headers) as client:
        yield client, clock


def play(
    client: Any, clock: Clock, state: dict[str, Any], most: int, late: int = -1
) -> dict[str, Any]:
    """Play on for some turns, one of them too late for the deadline; the state after them."""
    rng, world = np.random.default_rng(6), Tetris()
    for turn in range(most):
        board = [[int(square != ".") for square in row] for row in state["board"]]
        rows = world.offer(np.array(board, np.uint8), state["piece"])[1]
        best = int(np.argmax(rows @ WISHES + rng.standard_normal(len(rows))))
        place = {name: state["placements"][best][name] for name in ("rotation", "column")}
        clock.now += 60.0 if turn == late else 0.0
        answer = client.post(f"/api/games/{state['game']}/moves", json={"turn": turn, **place})
        state = answer.raise_for_status().json()["state"]
    return state


def write_studio(folder: Path, expected: Expected) -> None:
    """A database: games of nobody's, a quiz, a study that two take part in, one that has ended."""
    file = folder / "studio.db"
    conditions = [{"name": "ten seconds", "tau": 10, "pieces": 12}, {"name": "slow", "pieces": 8}]
    with studio(file) as (client, clock):

        def post(path: str, **body: Any) -> Any:
            return client.post(path, json=body).raise_for_status().json()

        learnt = play(client, clock, post("/api/games", seed=11, learn=True), 16)["game"]
        for guess in ("understudy", "player", "understudy", "player", None):
            question = post(f"/api/games/{learnt}/quiz")["question"]
            if guess is not None:
                post(f"/api/games/{learnt}/quiz/{question}", guess=guess)
        short = play(client, clock, post("/api/games", seed=12, tau=5, pieces=4), 4, late=2)["game"]
        study = post("/api/studies", name="haste", conditions=conditions, participants=2, seed=13)
        over = post("/api/studies", name="over", conditions=conditions[:1], participants=1)
        post(f"/api/studies/{over['study']}/end")
        tokens = [person["link"].removeprefix("/p/") for person in study["participants"]]
        for token, turns in zip(tokens, ((12, 8), (12, 3)), strict=True):
            for late, count in zip((4, -1), turns, strict=True):
                play(client, clock, post(f"/api/participants/{token}/next"), count, late)
    with studio(file) as (client, _):  # another one, that knows only what is in the database
        told = {
            path: without_densities(client.get(path).raise_for_status().json())
            for game in (learnt, short)
            for path in (f"/api/games/{game}", f"/api/games/{game}/moves")
        }
        one = f"/api/studies/{study['study']}"
        for path in ("/api/studies", one, f"{one}/posteriors", f"/api/studies/{over['study']}"):
            told[path] = without_densities(client.get(path).raise_for_status().json())
        for token in tokens:
            told[f"/api/participants/{token}"] = client.get(f"/api/participants/{token}").json()
        table = client.get(f"{one}/decisions.csv").raise_for_status().content
        lines = client.get(f"/api/games/{short}/game.jsonl").raise_for_status().content
    (folder / "studio_game.jsonl").write_bytes(lines)
    expected.add(folder / "studio_game.jsonl", of_games(folder / "studio_game.jsonl"))
    columns = pyarrow.csv.read_csv(pyarrow.py_buffer(table)).to_pydict()
    columns["tau"] = [np.nan if tau is None else tau for tau in columns["tau"]]
    decisions = {f"decisions/{name}": np.array(column) for name, column in columns.items()}
    expected.add(file, ({"tables": tables_of(file), "answers": told}, decisions))


def without_densities(answer: Any) -> Any:
    """An answer of the studio without the curves in it."""
    if isinstance(answer, dict):
        kept = {k: v for k, v in answer.items() if k not in ("density", "densities")}
        return {k: without_densities(v) for k, v in kept.items()}
    return [without_densities(v) for v in answer] if isinstance(answer, list) else answer


def tables_of(file: Path) -> dict[str, Any]:
    """All rows of all tables of an SQLite database."""
    connection = sqlite3.connect(file)
    connection.row_factory = sqlite3.Row
    asked = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    names = [name for (name,) in connection.execute(asked)]
    found = {n: [dict(row) for row in connection.execute(f"SELECT * FROM {n}")] for n in names}
    connection.close()
    return found


def main() -> None:
    """Write everything into a folder that is made for it."""
    if us.__version__ != "0.1.0":
        sys.exit(f"these files are understudy 0.1.0's to write, and this is {us.__version__}")
    warnings.simplefilter("ignore")  # of what has not converged
    folder = Path(sys.argv[1])
    folder.mkdir()
    expected = Expected(folder)
    for part in (write_results, write_checkpoints, write_tables, write_tetris, write_studio):
        part(folder, expected)
    expected.write()


if __name__ == "__main__":
    main()
