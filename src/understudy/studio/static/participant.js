// The page of a participant: what to do, one part after the other, and thanks. Nothing of anybody else's, and nothing of the model.

import { backOff, call, patience } from "./api.js";
import { find, make, plural, tell } from "./dom.js";
import { Game } from "./game.js";

const seconds = (tau) => (tau === null ? "as much time as you like" : `${plural(tau, "second")}`);

export class Participant {
  constructor(table, token) {
    Object.assign(this, { table, path: `/api/participants/${encodeURIComponent(token)}` });
    find("#guest-go").addEventListener("click", () => this.next());
  }

  async enter() {
    for (let attempt = 0; ; attempt += 1) {
      try {
        this.study = await call("GET", this.path);
        if (attempt) tell("");
        return this.show();
      } catch (error) {
        tell(error.passing ? `${error.message} Trying again.` : error.message);
        if (!error.passing) return undefined;
        await patience(backOff(attempt, error));
      }
    }
  }

  show() {
    const { conditions, ended } = this.study;
    const part = conditions.findIndex((one) => one.state !== "done");
    find("#game").hidden = true;
    find("#guest").hidden = false;
    const go = find("#guest-go");
    go.hidden = part < 0 || ended;
    find("#guest-parts").hidden = conditions.length < 2;
    find("#guest-parts").replaceChildren(
      ...conditions.map((one, index) =>
        make(
          "li",
          { "data-state": one.state, "aria-current": index === part && !ended ? "step" : false },
          make("span", {}, `${seconds(one.tau)} for each piece${one.pieces ? `, ${plural(one.pieces, "piece")}` : ""}`),
          make("span", { class: "small" }, { done: "done", playing: "begun", "to come": "to come" }[one.state]),
        ),
      ),
    );
    if (part < 0) this.words("Thank you", ["You have played every part, and your decisions are saved. You can close this page."]);
    else if (ended) this.words("This study has ended", ["No more decisions are recorded. Thank you for what you gave."]);
    else if (part === 0 && conditions[0].state === "to come") {
      this.words("Welcome", [
        `You will play Tetris in ${plural(conditions.length, "part")}. One piece comes at a time; choose where it falls, and how it is turned. Full lines disappear. Play as well as you can.`,
        "Move with the arrow keys, turn with the arrow up or x, drop with space or enter; on a phone, drag to move, tap to turn, and swipe down to drop.",
        ...(conditions.some((one) => one.tau !== null) ? ["In some parts there is a time limit for each piece. A bar shows the time left; when it is up, the piece falls straight down where it is at the start, not turned."] : []),
        "Your placements and their times are recorded under a random name, and nothing else. You can come back to this page at any time and go on.",
      ]);
    } else {
      const { tau } = conditions[part];
      this.words(`Part ${part + 1} of ${conditions.length}`, [
        `You have ${seconds(tau)} for each piece.${tau === null ? "" : " The clock starts with the first piece, as soon as you press the button."}`,
      ]);
    }
    go.textContent = conditions[part]?.state === "playing" ? `Go on with part ${part + 1}` : `Start part ${part + 1}`;
    find("#guest-title").focus();
  }

  words(title, paragraphs) {
    find("#guest-title").textContent = title;
    find("#guest-text").replaceChildren(...paragraphs.map((text) => make("p", { class: "lead" }, text)));
  }

  async next() {
    find("#guest-go").disabled = true;
    try {
      const game = new Game(await call("POST", `${this.path}/next`));
      tell("");
      find("#guest").hidden = true;
      find("#game").hidden = false;
      find("#game").dataset.mode = "guest";
      this.table.seat(game);
      game.addEventListener("state", () => this.stateChanged(game), { signal: game.gone.signal });
      game.addEventListener("trouble", () => this.ended(), { signal: game.gone.signal });
      find("#board").focus({ preventScroll: true });
      this.stateChanged(game);
    } catch (error) {
      tell(error.message);
    }
    find("#guest-go").disabled = false;
  }

  /** A move was refused: perhaps because the study has ended meanwhile. */
  async ended() {
    try {
      this.study = await call("GET", this.path);
    } catch {
      return; // the connection is away, and the move is being sent again
    }
    if (!this.study.ended) return;
    this.table.leave();
    tell("");
    this.show();
  }

  stateChanged(game) {
    if (!game.state.over) return;
    setTimeout(() => {
      this.table.leave();
      tell("");
      this.enter();
    }, 700);
  }
}
