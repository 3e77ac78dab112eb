// The page of a participant: what to do, one part after the other, and thanks. Nothing of anybody
// else's, and nothing of the model.

import { retryDelay, call, waitOrReconnect } from "./api.js";
import { find, createElement, plural, showMessage } from "./dom.js";
import { Game } from "./game.js";

const timeAllowed = (seconds) =>
  seconds === null ? "as much time as you like" : plural(seconds, "second");

export class Participant {
  constructor(gameView, token) {
    Object.assign(this, { gameView, path: `/api/participants/${encodeURIComponent(token)}` });
    find("#participant-go").addEventListener("click", () => this.next());
  }

  async enter() {
    for (let attempt = 0; ; attempt += 1) {
      try {
        this.study = await call("GET", this.path);
        if (attempt) showMessage("");
        return this.show();
      } catch (error) {
        showMessage(error.isTemporary ? `${error.message} Trying again.` : error.message);
        if (!error.isTemporary) return undefined;
        await waitOrReconnect(retryDelay(attempt, error));
      }
    }
  }

  show() {
    const { conditions, ended } = this.study;
    const part = conditions.findIndex((one) => one.state !== "done");
    find("#game").hidden = true;
    find("#participant").hidden = false;
    const go = find("#participant-go");
    go.hidden = part < 0 || ended;
    find("#participant-parts").hidden = conditions.length < 2;
    find("#participant-parts").replaceChildren(
      ...conditions.map((one, index) =>
        createElement(
          "li",
          { "data-state": one.state, "aria-current": index === part && !ended ? "step" : false },
          createElement(
            "span",
            {},
            `${timeAllowed(one.deadline_seconds)} for each piece` +
              (one.pieces ? `, ${plural(one.pieces, "piece")}` : ""),
          ),
          createElement(
            "span",
            { class: "small" },
            { done: "done", playing: "begun", "to come": "to come" }[one.state],
          ),
        ),
      ),
    );
    if (part < 0)
      this.showText("Thank you", [
        "You have played every part, and your decisions are saved. You can close this page.",
      ]);
    else if (ended)
      this.showText("This study has ended", [
        "No more decisions are recorded. Thank you for what you gave.",
      ]);
    else if (part === 0 && conditions[0].state === "to come") {
      this.showText("Welcome", [
        `You will play Tetris in ${plural(conditions.length, "part")}. One piece ` +
          "comes at a time; choose where it falls, and how it is turned. Full lines " +
          "disappear. Play as well as you can.",
        "Move with the arrow keys, turn with the arrow up or x, drop with space or " +
          "enter; on a phone, drag to move, tap to turn, and swipe down to drop.",
        ...(conditions.some((one) => one.deadline_seconds !== null)
          ? [
              "In some parts there is a time limit for each piece. A bar shows the " +
                "time left; when it is up, the piece falls straight down where it is at " +
                "the start, not turned.",
            ]
          : []),
        "Your placements and their times are recorded under a random name, and " +
          "nothing else. You can come back to this page at any time and go on.",
      ]);
    } else {
      const { deadline_seconds: seconds } = conditions[part];
      this.showText(`Part ${part + 1} of ${conditions.length}`, [
        `You have ${timeAllowed(seconds)} for each ` +
          "piece." +
          (seconds === null
            ? ""
            : " The clock starts with the first piece, as soon as you press the button."),
      ]);
    }
    go.textContent =
      conditions[part]?.state === "playing"
        ? `Go on with part ${part + 1}`
        : `Start part ${part + 1}`;
    find("#participant-title").focus();
  }

  showText(title, paragraphs) {
    find("#participant-title").textContent = title;
    find("#participant-text").replaceChildren(
      ...paragraphs.map((text) => createElement("p", { class: "lead" }, text)),
    );
  }

  async next() {
    find("#participant-go").disabled = true;
    try {
      const game = new Game(await call("POST", `${this.path}/next`));
      showMessage("");
      find("#participant").hidden = true;
      find("#game").hidden = false;
      find("#game").dataset.mode = "participant";
      this.gameView.setGame(game);
      game.addEventListener("state", () => this.stateChanged(game), { signal: game.closed.signal });
      game.addEventListener("trouble", () => this.showIfEnded(), { signal: game.closed.signal });
      find("#board").focus({ preventScroll: true });
      this.stateChanged(game);
    } catch (error) {
      showMessage(error.message);
    }
    find("#participant-go").disabled = false;
  }

  /** A move was refused: perhaps because the study has ended meanwhile. */
  async showIfEnded() {
    try {
      this.study = await call("GET", this.path);
    } catch {
      return; // the connection is away, and the move is being sent again
    }
    if (!this.study.ended) return;
    this.gameView.leave();
    showMessage("");
    this.show();
  }

  stateChanged(game) {
    if (!game.state.over) return;
    setTimeout(() => {
      this.gameView.leave();
      showMessage("");
      this.enter();
    }, 700);
  }
}
