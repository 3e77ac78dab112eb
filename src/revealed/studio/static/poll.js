// Following what the server works out behind a game: asked again after every move, one question at
// a time, and never in the way of play.

import { retryDelay, call, waitOrReconnect } from "./api.js";

/**
 * Asks `path(turn)` whenever the game has more moves than the last answer knew of (`known`), until
 * game or signal end.
 */
export async function pollAfterMoves(game, { path, movesKnown, show }, signal) {
  const stopped = AbortSignal.any([game.closed.signal, signal]);
  for (let known = -1, failures = 0; !stopped.aborted;) {
    const { turn } = game.state;
    if (known >= turn) {
      await nextState(game, stopped);
      continue;
    }
    try {
      const answer = await call("GET", path(turn), { signal: stopped, timeout: 30000 });
      if (stopped.aborted) return;
      failures = 0;
      const isNews = movesKnown(answer) > known;
      known = movesKnown(answer);
      show(answer);
      if (!isNews) await waitOrReconnect(0.4, stopped);
    } catch (error) {
      if (stopped.aborted) return;
      show(null, error.message);
      if (!error.isTemporary) return;
      await waitOrReconnect(retryDelay((failures += 1), error), stopped);
    }
  }
}

function nextState(game, stopped) {
  return new Promise((resolve) => {
    const done = () => {
      game.removeEventListener("state", done);
      stopped.removeEventListener("abort", done);
      resolve();
    };
    game.addEventListener("state", done);
    stopped.addEventListener("abort", done);
  });
}
