// Play and Mimic: the page to start from, the game, and the panels beside it.

import { retryDelay, waitOrReconnect } from "./api.js";
import { BoardView } from "./board.js";
import { find, plural, showMessage } from "./dom.js";
import { Game } from "./game.js";
import { Learning } from "./learning.js";
import { Mimic } from "./mimic.js";
import { rememberGame } from "./recent.js";

const INTRODUCTIONS = {
  play: [
    "Play. Something is watching.",
    "Place the pieces as you like. After every move the studio learns what you want " +
      "from a board, says how sure it is, and guesses what you will do next.",
  ],
  mimic: [
    "Meet your understudy.",
    "Play, and somebody learns your part: on a board beside yours, with the same " +
      "pieces, your understudy does what it believes you would do.",
  ],
};
const END_SENTENCES = {
  full: (state) => [
    "The board is full",
    `You placed ${plural(state.turn, "piece")} and removed ${plural(state.lines, "line")}.`,
  ],
  pieces: (state) => [
    "That was the last piece",
    `You placed all ${state.turn} and removed ${plural(state.lines, "line")}.`,
  ],
};

export class Play {
  constructor(gameView) {
    this.gameView = gameView;
    this.learning = new Learning(() => this.gameView.game && this.stateChanged());
    this.mimic = new Mimic();
    find("#start-form").addEventListener("submit", (event) => this.start(event));
    find("#again").addEventListener("click", () => (location.hash = `#${this.mode}`));
  }

  /**
   * Shows the game of this id, or the page to start one; `mode` is what stands beside the board:
   * play or mimic.
   */
  async enter(mode, id) {
    this.mode = mode;
    if (!id) return this.showStart();
    if (this.gameView.game?.id !== id) {
      this.leave();
      find("#game").hidden = find("#start").hidden = true;
      const game = await this.openGame(id);
      if (!game) return undefined;
      this.gameView.setGame(game);
      game.addEventListener("state", () => this.stateChanged(), { signal: game.closed.signal });
    }
    return this.showGame();
  }

  /**
   * The game of an id; while the server does not answer it is asked again, and the reader is told.
   */
  async openGame(id) {
    const asked = (this.opening = Symbol(id));
    for (let attempt = 0; this.opening === asked; attempt += 1) {
      try {
        const game = await Game.open(id);
        if (this.opening !== asked) return null;
        if (attempt) showMessage("");
        return game;
      } catch (error) {
        if (this.opening !== asked) return null;
        if (!error.isTemporary) {
          location.hash = `#${this.mode}`;
          setTimeout(() => showMessage(error.message), 50);
          return null;
        }
        showMessage(`${error.message} Trying again.`);
        await waitOrReconnect(retryDelay(attempt, error));
      }
    }
    return null;
  }

  leave() {
    this.opening = null;
    this.learning.stop();
    this.mimic.stop();
    this.gameView.leave();
  }

  showStart() {
    this.leave();
    const [title, lead] = INTRODUCTIONS[this.mode];
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
      const game = await Game.start({
        deadline_seconds: number("deadline_seconds"),
        pieces: number("pieces"),
        seed: null,
        learn: this.mode === "mimic" || form.has("learn"),
      });
      showMessage("");
      this.gameView.setGame(game);
      game.addEventListener("state", () => this.stateChanged(), { signal: game.closed.signal });
      location.hash = `#${this.mode}/${game.id}`;
    } catch (error) {
      showMessage(error.message);
    }
    button.disabled = false;
  }

  showGame() {
    const { game } = this.gameView;
    rememberGame(game.id);
    find("#start").hidden = true;
    const page = find("#game");
    page.hidden = false;
    page.dataset.mode = this.mode;
    const { learn } = game.state;
    find("#learn").hidden = this.mode !== "play" || !learn;
    find("#understudy").hidden =
      find("#continuation").hidden =
      find("#quiz").hidden =
        this.mode !== "mimic" || !learn;
    find("#your-caption").hidden = this.mode !== "mimic";
    find("#score-chance-box").hidden = !learn;
    find("#to-mimic").hidden = this.mode === "mimic" || !learn;
    find("#to-mimic").href = `/#mimic/${game.id}`;
    find("#to-replay").href = `/#replay/${game.id}`;
    if (learn && this.learning.game !== game) this.learning.start(game);
    if (this.mode === "play") this.learning.drawCharts();
    if (learn && this.mode === "mimic") this.mimic.start(game);
    else this.mimic.stop();
    if (this.mode === "mimic" && !learn)
      showMessage(
        "This game is played without learning, so nobody can learn your part; start " +
          "one with learning.",
        "note",
      );
    this.stateChanged();
    if (!game.state.over) find("#board").focus({ preventScroll: true });
  }

  stateChanged() {
    const { state } = this.gameView.game;
    const card = find("#result");
    const fresh = card.hidden && state.over;
    card.hidden = !state.over;
    if (!state.over) return;
    const [title, text] = END_SENTENCES[state.why](state);
    find("#result-title").textContent = title;
    const missed = state.misses ? ` You missed ${plural(state.misses, "deadline")}.` : "";
    find("#result-text").textContent =
      `${text}${missed}${this.learning.predictionSummary(state.turn)}`;
    if (fresh) find("#result-title").focus({ preventScroll: false });
  }
}

/** A picture beside the first words: a board somebody has played on, and a piece on its way. */
function poster() {
  const view = new BoardView(find("#poster"));
  const lines = [
    "....L.....",
    "S...LJJJ..",
    "SS.OOLLJZI",
    ".STOOLZZII",
    "TTTJLLZOOI",
    "IIII.SSOOI",
    "JJJTSSLLLI",
    "TTTJ.ZZLOO",
    "SSTJJJZZOO",
  ];
  view.show([...Array(14).fill(".........."), ...lines]);
  const cells = [
    [13, 1],
    [13, 2],
    [13, 3],
    [14, 2],
  ];
  view.showCandidate({ rotation: 0, column: 1, cells }, "T");
  return view;
}
