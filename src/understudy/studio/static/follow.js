// Following what the server works out behind a game: asked again after every move, one question at a time, and never in the way of
// play.

import { backOff, call, patience } from "./api.js";

/** Asks `path(turn)` whenever the game has more moves than the last answer knew of (`known`), until game or signal end. */
export async function follow(game, { path, knows, show }, signal) {
  const gone = AbortSignal.any([game.gone.signal, signal]);
  for (let known = -1, failed = 0; !gone.aborted; ) {
    const { turn } = game.state;
    if (known >= turn) {
      await nextState(game, gone);
      continue;
    }
    try {
      const answer = await call("GET", path(turn), { signal: gone, timeout: 30000 });
      if (gone.aborted) return;
      failed = 0;
      const fresh = knows(answer) > known;
      known = knows(answer);
      show(answer);
      if (!fresh) await patience(0.4, gone);
    } catch (error) {
      if (gone.aborted) return;
      show(null, error.message);
      if (!error.passing) return;
      await patience(backOff((failed += 1), error), gone);
    }
  }
}

function nextState(game, gone) {
  return new Promise((resolve) => {
    const done = () => {
      game.removeEventListener("state", done);
      gone.removeEventListener("abort", done);
      resolve();
    };
    game.addEventListener("state", done);
    gone.addEventListener("abort", done);
  });
}
