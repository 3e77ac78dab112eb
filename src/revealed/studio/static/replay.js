// A recorded game on the page: play, pause, step, scrub, and take it along as an animated picture.

import { call } from "./api.js";
import { BoardView } from "./board.js";
import { find, createElement, plural, announce, prefersReducedMotion, showMessage } from "./dom.js";
import { recentGames } from "./recent.js";
import { emptyBoard, describeBoard, withoutFullRows, withPiece } from "./rules.js";

const ROWS = 30;
const COLUMNS = 10;
const MAX_GIF_MOVES = 300; // moves that an animated picture holds at most

export class Replay {
  constructor() {
    this.view = new BoardView(find("#replay-canvas"), { headroom: 0 });
    this.position = 0;
    const on = (id, event, listener) => find(id).addEventListener(event, listener);
    on("#replay-form", "submit", (event) => this.openFromForm(event));
    on("#replay-play", "click", () => (this.timer ? this.pause() : this.play()));
    on("#replay-first", "click", () => this.step(-Infinity));
    on("#replay-back", "click", () => this.step(-1));
    on("#replay-on", "click", () => this.step(1));
    on("#replay-last", "click", () => this.step(Infinity));
    on("#replay-scrub", "input", (event) => this.step(Number(event.target.value) - this.position));
    on("#replay-speed", "change", () => this.timer && this.play());
    on("#gif-form", "input", () => this.updateLinks());
    on("#gif-form", "submit", (event) => event.preventDefault());
    document.addEventListener("keydown", (event) => this.key(event));
  }

  async enter(id) {
    this.leave();
    find("#replay").hidden = false;
    find("#replay-none").hidden = Boolean(id);
    find("#replay-game").hidden = true;
    if (!id) return this.listRecent();
    try {
      this.moves = await call("GET", `/api/games/${encodeURIComponent(id)}/moves`);
    } catch (error) {
      find("#replay-none").hidden = false;
      this.listRecent();
      return showMessage(error.message);
    }
    this.id = id;
    this.boards = [emptyBoard(ROWS, COLUMNS)];
    for (const { cells, piece } of this.moves)
      this.boards.push(withoutFullRows(withPiece(this.boards.at(-1), cells, piece)));
    find("#replay-game").hidden = false;
    find("#replay-scrub").max = this.moves.length;
    const { first, last } = find("#gif-form").elements;
    first.max = last.max = last.value = Math.max(1, this.moves.length);
    first.value = Math.max(1, this.moves.length - MAX_GIF_MOVES + 1);
    find("#gif").hidden = find("#jsonl").hidden = !this.moves.length;
    this.updateLinks();
    this.position = 0;
    this.view.finishDrop();
    this.show();
    return undefined;
  }

  leave() {
    this.pause();
    this.id = null;
  }

  listRecent() {
    const games = recentGames();
    find("#recent").hidden = !games.length;
    find("#recent-list").replaceChildren(
      ...games.map(({ id, when }) =>
        createElement(
          "li",
          {},
          createElement(
            "a",
            { href: `/#replay/${id}` },
            new Date(when).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }),
          ),
          " ",
          createElement("code", {}, id.slice(0, 8)),
        ),
      ),
    );
  }

  openFromForm(event) {
    event.preventDefault();
    const given = new FormData(event.target).get("game").trim();
    const id = given.split(/[/#]/).filter(Boolean).at(-1) ?? "";
    if (/^[\w-]+$/.test(id)) location.hash = `#replay/${id}`;
    else
      showMessage(
        "A game's id is made of letters, digits, - and _; paste the id or the whole link.",
      );
  }

  updateLinks() {
    const api = `/api/games/${encodeURIComponent(this.id)}`;
    const { first, last } = find("#gif-form").elements;
    find("#gif").href = `${api}/replay.gif?first=${first.value - 1}&last=${last.value - 1}`;
    find("#gif").download = `revealed-${this.id.slice(0, 8)}.gif`;
    find("#jsonl").href = `${api}/game.jsonl`;
    find("#jsonl").download = `revealed-${this.id.slice(0, 8)}.jsonl`;
    find("#replay-link").href = `/replay/${encodeURIComponent(this.id)}`;
  }

  /** The board after `at` moves; a single step forward lets the piece fall. */
  show(fall = false) {
    const move = this.moves[this.position - 1];
    if (fall && move?.cells.length) this.view.animateDrop(move.cells, move.piece);
    else {
      this.view.finishDrop();
      this.view.show(this.boards[this.position]);
    }
    const moved = this.position !== Number(find("#replay-scrub").value);
    if (moved) find("#replay-scrub").value = this.position;
    find("#replay-where").textContent = `${this.position} of ${this.moves.length}`;
    const lines = this.moves.slice(0, this.position).reduce((sum, one) => sum + one.cleared, 0);
    const words = move ? this.describeMove(move) : "The board is empty.";
    find("#replay-move").textContent = `${words} ${plural(lines, "line")} so far.`;
    find("#replay-canvas").setAttribute("aria-label", describeBoard(this.boards[this.position]));
  }

  describeMove({ piece, column, missed, seconds }) {
    if (missed) return `${piece}: the deadline was missed, and it fell straight.`;
    const time = seconds == null ? "" : `, after ${seconds.toFixed(1)} s`;
    return `${piece} at column ${column + 1}${time}.`;
  }

  step(count) {
    this.pause();
    this.moveTo(count);
    announce(find("#replay-move").textContent);
  }

  moveTo(count) {
    const to = Math.max(0, Math.min(this.moves.length, this.position + count));
    const fall = to === this.position + 1 && !prefersReducedMotion();
    this.view.finishDrop();
    this.position = to;
    this.show(fall);
  }

  play() {
    if (this.position === this.moves.length) this.moveTo(-Infinity);
    clearInterval(this.timer);
    this.timer = setInterval(
      () => (this.position < this.moves.length ? this.moveTo(1) : this.pause()),
      1000 / Number(find("#replay-speed").value),
    );
    find("#replay-play").textContent = "Pause";
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    find("#replay-play").textContent = "Play";
  }

  key(event) {
    if (
      find("#replay-game").hidden ||
      find("#replay").hidden ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey
    )
      return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "ArrowLeft") this.step(-1);
    else if (event.key === "ArrowRight") this.step(1);
    else return;
    event.preventDefault();
  }
}
