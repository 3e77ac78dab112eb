// The board with everything around it that a player needs: keys, fingers, buttons, the clock, the score, and words for those who
// listen. Used by Play, Mimic and the participant's page.

import { BoardView } from "./board.js";
import { all, find, plural, say, still, tell } from "./dom.js";
import { Game } from "./game.js";
import { inWords } from "./rules.js";
import { width } from "./walk.js";

const KEYS = {
  ArrowLeft: (game) => game.move(-1),
  ArrowRight: (game) => game.move(1),
  Home: (game) => game.push(-1),
  End: (game) => game.push(1),
  ArrowUp: (game) => game.turn(1),
  x: (game) => game.turn(1),
  X: (game) => game.turn(1),
  z: (game) => game.turn(-1),
  Z: (game) => game.turn(-1),
};
const DROPS = new Set([" ", "Enter", "ArrowDown"]);
const BUTTONS = { left: (game) => game.move(-1), right: (game) => game.move(1), turn: (game) => game.turn(1), drop: (game) => game.drop() };
const ELSEWHERE = "This game went on in another tab; this is where it stands now.";

export class Table {
  constructor() {
    this.view = new BoardView(find("#board-canvas"));
    this.game = null;
    document.addEventListener("keydown", (event) => this.key(event));
    for (const button of all("#buttons button")) {
      button.addEventListener("click", () => this.game && BUTTONS[button.dataset.do](this.game));
    }
    this.fingers(find("#board"));
  }

  /** Sits a game at the table; the one before is left as it stands. */
  seat(game) {
    this.leave();
    this.game = game;
    this.view.finish();
    this.view.board = null;
    const on = (name, listener) => game.addEventListener(name, listener, { signal: game.gone.signal });
    on("state", () => this.stateChanged());
    on("aim", ({ detail }) => this.aimed(detail));
    on("sent", ({ detail }) => this.dropped(detail));
    on("moved", ({ detail }) => this.moved(detail));
    on("trouble", ({ detail }) => tell(detail.sentence));
    on("well", () => tell("The connection is back, and your move is saved.", "good"));
    this.stateChanged();
  }

  leave() {
    this.game?.close();
    this.game = null;
    cancelAnimationFrame(this.ticking);
  }

  /** Opens a recorded game; when the server does not answer, it asks again. */
  async open(id) {
    this.seat(await Game.open(id));
    return this.game;
  }

  stateChanged() {
    const { state } = this.game;
    this.view.show(state.board);
    this.view.aim(this.game.at, state.piece);
    find("#score-pieces").textContent = state.pieces ? `${state.turn} / ${state.pieces}` : state.turn;
    find("#score-lines").textContent = state.lines;
    find("#score-missed").textContent = state.misses;
    find("#score-missed-box").hidden = state.tau === null && !state.misses;
    find("#board-text").textContent = inWords(state.board);
    find("#clock").hidden = state.tau === null;
    find("#game").classList.toggle("timed", state.tau !== null);
    find("#buttons").inert = state.over;
    if (!state.over) this.speak(`Piece ${state.piece}.`);
    this.tick();
  }

  aimed({ edge }) {
    this.view.aim(this.game.at, this.game.state.piece);
    say(edge ? "No room further that way." : this.where(this.game.at));
  }

  where(placement) {
    const first = placement.column + 1;
    const last = placement.column + width(placement);
    const turns = ["not turned", "turned once", "turned twice", "turned three times"][placement.rotation];
    return `${first === last ? `Column ${first}` : `Columns ${first} to ${last}`}, ${turns}.`;
  }

  dropped({ placement, piece }) {
    if (find("#message").dataset.kind !== "wrong") tell(""); // a note has been read
    this.before = this.where(placement);
    this.view.aim(null);
    this.view.land(placement.cells, piece);
  }

  moved({ before, body, move, elsewhere }) {
    if (elsewhere) {
      this.view.finish();
      tell(ELSEWHERE, "note");
      this.told = ELSEWHERE;
      return;
    }
    if (!move) return; // the deadline had not quite passed: the clock goes on
    const { missed, cleared, cells, piece } = move;
    if (missed && body.missed && cells.length) {
      this.view.aim(null);
      this.view.land(cells, piece);
    } else if (missed) this.view.finish();
    if (missed) tell(body.missed ? "Time was up: the piece fell straight down." : "Your move came too late: the piece fell straight down.", "note");
    const lines = cleared ? ` ${plural(cleared, "line")} removed.` : "";
    this.told = `${missed ? "Time was up, the piece fell straight." : `${before.piece} placed. ${this.before ?? ""}`}${lines}`;
  }

  speak(sentence) {
    say([this.told, sentence].filter(Boolean).join(" "));
    this.told = null;
  }

  /** The clock of the deadline: a bar that shrinks with every frame, or by halves of a second where motion is unwelcome. */
  tick() {
    cancelAnimationFrame(this.ticking);
    const { game } = this;
    if (game?.state.over) find("#clock-number").textContent = "–";
    if (!game || game.left === null) return;
    const share = Math.min(1, game.left / game.state.tau);
    const steps = 2 * game.state.tau;
    find("#clock-fill").style.transform = `scaleX(${still() ? Math.ceil(share * steps) / steps : share})`;
    const number = game.left.toFixed(1);
    if (find("#clock-number").textContent !== `${number} s`) find("#clock-number").textContent = `${number} s`;
    find("#clock").classList.toggle("short", share < 0.3);
    if (game.left > 0) this.ticking = requestAnimationFrame(() => this.tick());
  }

  key(event) {
    const { game } = this;
    if (!game || find("#game").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
    const control = event.target.closest("a, button, input, select, textarea, summary, dialog, .scroll");
    if (control && !(control.closest("#buttons") && KEYS[event.key])) return;
    if (DROPS.has(event.key)) {
      if (!event.repeat) game.drop();
    } else if (KEYS[event.key]) KEYS[event.key](game);
    else return;
    if (!game.state.over) event.preventDefault();
  }

  /** A finger (or a mouse) that drags moves the piece a column for each square; a tap turns it; a swipe down drops it. */
  fingers(area) {
    let from = null;
    area.addEventListener("pointerdown", (event) => {
      if (!this.game || event.button) return;
      from = { x: event.clientX, y: event.clientY, column: event.clientX, moved: false };
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", (event) => {
      if (!from || !this.game) return;
      const square = area.clientWidth / this.game.state.columns;
      if (event.clientY - from.y > 1.6 * Math.abs(event.clientX - from.x) + square) return; // on its way down
      for (; Math.abs(event.clientX - from.column) >= square; from.moved = true) {
        const step = Math.sign(event.clientX - from.column);
        from.column += step * square;
        this.game.move(step);
      }
    });
    area.addEventListener("pointerup", (event) => {
      if (!from || !this.game) return;
      const [across, down] = [event.clientX - from.x, event.clientY - from.y];
      const { moved } = from;
      from = null;
      if (down > 40 && down > 1.6 * Math.abs(across)) this.game.drop();
      else if (!moved && Math.hypot(across, down) < 12) this.game.turn(1);
    });
    area.addEventListener("pointercancel", () => (from = null));
  }
}
