// The board with everything around it that a player needs: keys, fingers, buttons, the clock, the
// score, and words for those who listen. Used by Play, Mimic and the participant's page.

import { BoardView } from "./board.js";
import { findAll, find, plural, announce, prefersReducedMotion, showMessage } from "./dom.js";
import { Game } from "./game.js";
import { describeBoard } from "./rules.js";
import { width } from "./reachable.js";

const KEYS = {
  ArrowLeft: (game) => game.shift(-1),
  ArrowRight: (game) => game.shift(1),
  Home: (game) => game.shiftToEdge(-1),
  End: (game) => game.shiftToEdge(1),
  ArrowUp: (game) => game.rotate(1),
  x: (game) => game.rotate(1),
  X: (game) => game.rotate(1),
  z: (game) => game.rotate(-1),
  Z: (game) => game.rotate(-1),
};
const DROP_KEYS = new Set([" ", "Enter", "ArrowDown"]);
const BUTTONS = {
  left: (game) => game.shift(-1),
  right: (game) => game.shift(1),
  turn: (game) => game.rotate(1),
  drop: (game) => game.drop(),
};
const MOVED_ELSEWHERE = "This game went on in another tab; this is where it stands now.";

/** The board of one game at a time, with all its controls. */
export class GameView {
  constructor() {
    this.view = new BoardView(find("#board-canvas"));
    this.game = null;
    document.addEventListener("keydown", (event) => this.onKey(event));
    for (const button of findAll("#buttons button")) {
      button.addEventListener("click", () => this.game && BUTTONS[button.dataset.do](this.game));
    }
    this.addTouchControls(find("#board"));
  }

  /** Shows a game; the one before is left as it stands. */
  setGame(game) {
    this.leave();
    this.game = game;
    this.view.finishDrop();
    this.view.board = null;
    const on = (name, listener) =>
      game.addEventListener(name, listener, { signal: game.closed.signal });
    on("state", () => this.stateChanged());
    on("placement", ({ detail }) => this.placementChanged(detail));
    on("sent", ({ detail }) => this.moveSent(detail));
    on("moved", ({ detail }) => this.moved(detail));
    on("trouble", ({ detail }) => showMessage(detail.sentence));
    on("recovered", () => showMessage("The connection is back, and your move is saved.", "good"));
    this.stateChanged();
  }

  leave() {
    this.game?.close();
    this.game = null;
    cancelAnimationFrame(this.clockFrame);
  }

  /** Opens a recorded game; when the server does not answer, it asks again. */
  async open(id) {
    this.setGame(await Game.open(id));
    return this.game;
  }

  stateChanged() {
    const { state } = this.game;
    this.view.show(state.board);
    this.view.showCandidate(this.game.placement, state.piece);
    find("#score-pieces").textContent = state.pieces
      ? `${state.turn} / ${state.pieces}`
      : state.turn;
    find("#score-lines").textContent = state.lines;
    find("#score-missed").textContent = state.misses;
    find("#score-missed-box").hidden = state.deadline_seconds === null && !state.misses;
    find("#board-text").textContent = describeBoard(state.board);
    find("#clock").hidden = state.deadline_seconds === null;
    find("#game").classList.toggle("timed", state.deadline_seconds !== null);
    find("#buttons").inert = state.over;
    if (!state.over) this.announceWithMove(`Piece ${state.piece}.`);
    this.updateClock();
  }

  placementChanged({ edge }) {
    this.view.showCandidate(this.game.placement, this.game.state.piece);
    announce(edge ? "No room further that way." : this.describePlacement(this.game.placement));
  }

  describePlacement(placement) {
    const first = placement.column + 1;
    const last = placement.column + width(placement);
    const turns = ["not turned", "turned once", "turned twice", "turned three times"][
      placement.rotation
    ];
    return `${first === last ? `Column ${first}` : `Columns ${first} to ${last}`}, ${turns}.`;
  }

  moveSent({ placement, piece }) {
    if (find("#message").dataset.kind !== "wrong") showMessage(""); // a note has been read
    this.lastDrop = this.describePlacement(placement);
    this.view.showCandidate(null);
    this.view.animateDrop(placement.cells, piece);
  }

  moved({ before, body, move, elsewhere }) {
    if (elsewhere) {
      this.view.finishDrop();
      showMessage(MOVED_ELSEWHERE, "note");
      this.announcement = MOVED_ELSEWHERE;
      return;
    }
    if (!move) return; // the deadline had not quite passed: the clock goes on
    const { missed, cleared, cells, piece } = move;
    if (missed && body.missed && cells.length) {
      this.view.showCandidate(null);
      this.view.animateDrop(cells, piece);
    } else if (missed) this.view.finishDrop();
    if (missed)
      showMessage(
        body.missed
          ? "Time was up: the piece fell straight down."
          : "Your move came too late: the piece fell straight down.",
        "note",
      );
    const lines = cleared ? ` ${plural(cleared, "line")} removed.` : "";
    const placed = `${before.piece} placed. ${this.lastDrop ?? ""}`;
    this.announcement = `${missed ? "Time was up, the piece fell straight." : placed}${lines}`;
  }

  announceWithMove(sentence) {
    announce([this.announcement, sentence].filter(Boolean).join(" "));
    this.announcement = null;
  }

  /**
   * The clock of the deadline: a bar that shrinks with every frame, or by halves of a second where
   * motion is unwelcome.
   */
  updateClock() {
    cancelAnimationFrame(this.clockFrame);
    const { game } = this;
    if (game?.state.over) find("#clock-number").textContent = "–";
    if (!game || game.secondsLeft === null) return;
    const share = Math.min(1, game.secondsLeft / game.state.deadline_seconds);
    const steps = 2 * game.state.deadline_seconds;
    find("#clock-fill").style.transform =
      `scaleX(${prefersReducedMotion() ? Math.ceil(share * steps) / steps : share})`;
    const number = game.secondsLeft.toFixed(1);
    if (find("#clock-number").textContent !== `${number} s`)
      find("#clock-number").textContent = `${number} s`;
    find("#clock").classList.toggle("short", share < 0.3);
    if (game.secondsLeft > 0) this.clockFrame = requestAnimationFrame(() => this.updateClock());
  }

  onKey(event) {
    const { game } = this;
    if (!game || find("#game").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
    const control = event.target.closest(
      "a, button, input, select, textarea, summary, dialog, .scroll",
    );
    if (control && !(control.closest("#buttons") && KEYS[event.key])) return;
    if (DROP_KEYS.has(event.key)) {
      if (!event.repeat) game.drop();
    } else if (KEYS[event.key]) KEYS[event.key](game);
    else return;
    if (!game.state.over) event.preventDefault();
  }

  /**
   * A finger (or a mouse) that drags moves the piece a column for each square; a tap turns it; a
   * swipe down drops it.
   */
  addTouchControls(area) {
    let from = null;
    area.addEventListener("pointerdown", (event) => {
      if (!this.game || event.button) return;
      from = { x: event.clientX, y: event.clientY, column: event.clientX, moved: false };
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", (event) => {
      if (!from || !this.game) return;
      const square = area.clientWidth / this.game.state.columns;
      // A finger on its way down drops the piece, and does not move it sideways.
      if (event.clientY - from.y > 1.6 * Math.abs(event.clientX - from.x) + square) return;
      for (; Math.abs(event.clientX - from.column) >= square; from.moved = true) {
        const step = Math.sign(event.clientX - from.column);
        from.column += step * square;
        this.game.shift(step);
      }
    });
    area.addEventListener("pointerup", (event) => {
      if (!from || !this.game) return;
      const [across, down] = [event.clientX - from.x, event.clientY - from.y];
      const { moved } = from;
      from = null;
      if (down > 40 && down > 1.6 * Math.abs(across)) this.game.drop();
      else if (!moved && Math.hypot(across, down) < 12) this.game.rotate(1);
    });
    area.addEventListener("pointercancel", () => (from = null));
  }
}
