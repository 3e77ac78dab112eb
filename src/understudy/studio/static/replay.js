// A recorded game on the page: play, pause, step, scrub, and take it along as an animated picture.

import { call } from "./api.js";
import { BoardView } from "./board.js";
import { find, make, plural, say, still, tell } from "./dom.js";
import { recentGames } from "./recent.js";
import { emptyBoard, inWords, settled, withPiece } from "./rules.js";

const ROWS = 30;
const COLUMNS = 10;
const FILM = 300; // moves that an animated picture holds at most

export class Replay {
  constructor() {
    this.view = new BoardView(find("#replay-canvas"), { loft: 0 });
    this.at = 0;
    const on = (id, event, listener) => find(id).addEventListener(event, listener);
    on("#replay-form", "submit", (event) => this.look(event));
    on("#replay-play", "click", () => (this.timer ? this.rest() : this.run()));
    on("#replay-first", "click", () => this.step(-Infinity));
    on("#replay-back", "click", () => this.step(-1));
    on("#replay-on", "click", () => this.step(1));
    on("#replay-last", "click", () => this.step(Infinity));
    on("#replay-scrub", "input", (event) => this.step(Number(event.target.value) - this.at));
    on("#replay-speed", "change", () => this.timer && this.run());
    on("#gif-form", "input", () => this.links());
    on("#gif-form", "submit", (event) => event.preventDefault());
    document.addEventListener("keydown", (event) => this.key(event));
  }

  async enter(id) {
    this.leave();
    find("#replay").hidden = false;
    find("#replay-none").hidden = Boolean(id);
    find("#replay-game").hidden = true;
    if (!id) return this.list();
    try {
      this.moves = await call("GET", `/api/games/${encodeURIComponent(id)}/moves`);
    } catch (error) {
      find("#replay-none").hidden = false;
      this.list();
      return tell(error.message);
    }
    this.id = id;
    this.boards = [emptyBoard(ROWS, COLUMNS)];
    for (const { cells, piece } of this.moves) this.boards.push(settled(withPiece(this.boards.at(-1), cells, piece)));
    find("#replay-game").hidden = false;
    find("#replay-scrub").max = this.moves.length;
    const { first, last } = find("#gif-form").elements;
    first.max = last.max = last.value = Math.max(1, this.moves.length);
    first.value = Math.max(1, this.moves.length - FILM + 1);
    find("#gif").hidden = find("#jsonl").hidden = !this.moves.length;
    this.links();
    this.at = 0;
    this.view.finish();
    this.show();
    return undefined;
  }

  leave() {
    this.rest();
    this.id = null;
  }

  list() {
    const games = recentGames();
    find("#recent").hidden = !games.length;
    find("#recent-list").replaceChildren(
      ...games.map(({ id, when }) =>
        make("li", {}, make("a", { href: `/#replay/${id}` }, new Date(when).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })), " ", make("code", {}, id.slice(0, 8))),
      ),
    );
  }

  look(event) {
    event.preventDefault();
    const given = new FormData(event.target).get("game").trim();
    const id = given.split(/[/#]/).filter(Boolean).at(-1) ?? "";
    if (/^[\w-]+$/.test(id)) location.hash = `#replay/${id}`;
    else tell("A game's id is made of letters, digits, - and _; paste the id or the whole link.");
  }

  links() {
    const api = `/api/games/${encodeURIComponent(this.id)}`;
    const { first, last } = find("#gif-form").elements;
    find("#gif").href = `${api}/replay.gif?first=${first.value - 1}&last=${last.value - 1}`;
    find("#gif").download = `understudy-${this.id.slice(0, 8)}.gif`;
    find("#jsonl").href = `${api}/game.jsonl`;
    find("#jsonl").download = `understudy-${this.id.slice(0, 8)}.jsonl`;
    find("#replay-link").href = `/replay/${encodeURIComponent(this.id)}`;
  }

  /** The board after `at` moves; a single step forward lets the piece fall. */
  show(fall = false) {
    const move = this.moves[this.at - 1];
    if (fall && move?.cells.length) this.view.land(move.cells, move.piece);
    else {
      this.view.finish();
      this.view.show(this.boards[this.at]);
    }
    const moved = this.at !== Number(find("#replay-scrub").value);
    if (moved) find("#replay-scrub").value = this.at;
    find("#replay-where").textContent = `${this.at} of ${this.moves.length}`;
    const lines = this.moves.slice(0, this.at).reduce((sum, one) => sum + one.cleared, 0);
    const words = move ? this.words(move) : "The board is empty.";
    find("#replay-move").textContent = `${words} ${plural(lines, "line")} so far.`;
    find("#replay-canvas").setAttribute("aria-label", inWords(this.boards[this.at]));
  }

  words({ piece, column, missed, seconds }) {
    if (missed) return `${piece}: the deadline was missed, and it fell straight.`;
    return `${piece} at column ${column + 1}${seconds == null ? "" : `, after ${seconds.toFixed(1)} s`}.`;
  }

  step(count) {
    this.rest();
    this.go(count);
    say(find("#replay-move").textContent);
  }

  go(count) {
    const to = Math.max(0, Math.min(this.moves.length, this.at + count));
    const fall = to === this.at + 1 && !still();
    this.view.finish();
    this.at = to;
    this.show(fall);
  }

  run() {
    if (this.at === this.moves.length) this.go(-Infinity);
    clearInterval(this.timer);
    this.timer = setInterval(() => (this.at < this.moves.length ? this.go(1) : this.rest()), 1000 / Number(find("#replay-speed").value));
    find("#replay-play").textContent = "Pause";
  }

  rest() {
    clearInterval(this.timer);
    this.timer = null;
    find("#replay-play").textContent = "Play";
  }

  key(event) {
    if (find("#replay-game").hidden || find("#replay").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "ArrowLeft") this.step(-1);
    else if (event.key === "ArrowRight") this.step(1);
    else return;
    event.preventDefault();
  }
}
