// Play and Mimic: the page to start from, the game at the table, and what stands beside it.

import { backOff, patience } from "./api.js";
import { BoardView } from "./board.js";
import { find, plural, tell } from "./dom.js";
import { Game } from "./game.js";
import { Learning } from "./learning.js";
import { Mimic } from "./mimic.js";
import { remember } from "./recent.js";

const WORDS = {
  play: [
    "Play. Something is watching.",
    "Place the pieces as you like. After every move the studio learns what you want from a board, says how sure it is, and guesses what you will do next.",
  ],
  mimic: [
    "Meet your understudy.",
    "Play, and somebody learns your part: on a board beside yours, with the same pieces, your understudy does what it believes you would do.",
  ],
};
const ENDS = {
  full: (state) => ["The board is full", `You placed ${plural(state.turn, "piece")} and removed ${plural(state.lines, "line")}.`],
  pieces: (state) => ["That was the last piece", `You placed all ${state.turn} and removed ${plural(state.lines, "line")}.`],
};

export class Play {
  constructor(table) {
    this.table = table;
    this.learning = new Learning(() => this.table.game && this.stateChanged());
    this.mimic = new Mimic();
    find("#start-form").addEventListener("submit", (event) => this.start(event));
    find("#again").addEventListener("click", () => (location.hash = `#${this.mode}`));
  }

  /** Shows the game of this id, or the page to start one; `mode` is what stands beside the board: play or mimic. */
  async enter(mode, id) {
    this.mode = mode;
    if (!id) return this.welcome();
    if (this.table.game?.id !== id) {
      this.leave();
      find("#game").hidden = find("#start").hidden = true;
      const game = await this.opened(id);
      if (!game) return undefined;
      this.table.seat(game);
      game.addEventListener("state", () => this.stateChanged(), { signal: game.gone.signal });
    }
    return this.arrange();
  }

  /** The game of an id; while the server does not answer it is asked again, and the reader is told. */
  async opened(id) {
    const asked = (this.asking = Symbol(id));
    for (let attempt = 0; this.asking === asked; attempt += 1) {
      try {
        const game = await Game.open(id);
        if (this.asking !== asked) return null;
        if (attempt) tell("");
        return game;
      } catch (error) {
        if (this.asking !== asked) return null;
        if (!error.passing) {
          location.hash = `#${this.mode}`;
          setTimeout(() => tell(error.message), 50);
          return null;
        }
        tell(`${error.message} Trying again.`);
        await patience(backOff(attempt, error));
      }
    }
    return null;
  }

  leave() {
    this.asking = null;
    this.learning.stop();
    this.mimic.stop();
    this.table.leave();
  }

  welcome() {
    this.leave();
    const [title, lead] = WORDS[this.mode];
    find("#start-title").textContent = title;
    find("#start-lead").textContent = lead;
    find("#start-learn").hidden = this.mode === "mimic"; // nobody is mimicked unlearnt
    find("#start").hidden = false;
    find("#game").hidden = true;
    this.poster ??= poster();
  }

  async start(event) {
    event.preventDefault();
    const form = new FormData(event.target);
    const number = (name) => (form.get(name) ? Number(form.get(name)) : null);
    const button = find("#start-form button");
    button.disabled = true;
    try {
      const game = await Game.start({ tau: number("tau"), pieces: number("pieces"), seed: null, learn: this.mode === "mimic" || form.has("learn") });
      tell("");
      this.table.seat(game);
      game.addEventListener("state", () => this.stateChanged(), { signal: game.gone.signal });
      location.hash = `#${this.mode}/${game.id}`;
    } catch (error) {
      tell(error.message);
    }
    button.disabled = false;
  }

  arrange() {
    const { game } = this.table;
    remember(game.id);
    find("#start").hidden = true;
    const page = find("#game");
    page.hidden = false;
    page.dataset.mode = this.mode;
    const { learn } = game.state;
    find("#learn").hidden = this.mode !== "play" || !learn;
    find("#beside").hidden = find("#solo").hidden = find("#quiz").hidden = this.mode !== "mimic" || !learn;
    find("#your-caption").hidden = this.mode !== "mimic";
    find("#score-chance-box").hidden = !learn;
    find("#to-mimic").hidden = this.mode === "mimic" || !learn;
    find("#to-mimic").href = `/#mimic/${game.id}`;
    find("#to-replay").href = `/#replay/${game.id}`;
    if (learn && this.learning.game !== game) this.learning.follow(game);
    if (this.mode === "play") this.learning.redraw();
    if (learn && this.mode === "mimic") this.mimic.follow(game);
    else this.mimic.stop();
    if (this.mode === "mimic" && !learn) tell("This game is played without learning, so nobody can learn your part; start one with learning.", "note");
    this.stateChanged();
    if (!game.state.over) find("#board").focus({ preventScroll: true });
  }

  stateChanged() {
    const { state } = this.table.game;
    const card = find("#result");
    const fresh = card.hidden && state.over;
    card.hidden = !state.over;
    if (!state.over) return;
    const [title, text] = ENDS[state.why](state);
    find("#result-title").textContent = title;
    const missed = state.misses ? ` You missed ${plural(state.misses, "deadline")}.` : "";
    find("#result-text").textContent = `${text}${missed}${this.learning.verdict(state.turn)}`;
    if (fresh) find("#result-title").focus({ preventScroll: false });
  }
}

/** A picture beside the first words: a board somebody has played on, and a piece on its way. */
function poster() {
  const view = new BoardView(find("#poster"));
  const lines = ["....L.....", "S...LJJJ..", "SS.OOLLJZI", ".STOOLZZII", "TTTJLLZOOI", "IIII.SSOOI", "JJJTSSLLLI", "TTTJ.ZZLOO", "SSTJJJZZOO"];
  view.show([...Array(14).fill(".........."), ...lines]);
  const cells = [[13, 1], [13, 2], [13, 3], [14, 2]];
  view.aim({ rotation: 0, column: 1, cells }, "T");
  return view;
}
