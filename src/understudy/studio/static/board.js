// The board on a canvas: squares, the piece that waits above, its ghost below, a fall and a flash. It paints what it is told, and
// only while something moves.

import { still } from "./dom.js";
import { fullRows, settled, withPiece } from "./rules.js";
import { height } from "./walk.js";

const FALL = 120; // milliseconds from the top to the ground
const FLASH = 190; // and for full rows to fade
const GLIDE = 28; // time constant of the sideways motion
const SQUARES = [..."IOTSZJL", "X"];

export class BoardView {
  /** `loft`: rows above the board where the piece waits. */
  constructor(canvas, { loft = 4 } = {}) {
    Object.assign(this, { canvas, loft, pen: canvas.getContext("2d"), board: null, aimed: null, marked: null, landing: null });
    this.canvas.frames = 0;
    this.frame = 0;
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.readColours());
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  readColours() {
    const style = getComputedStyle(this.canvas);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colours = Object.fromEntries(SQUARES.map((letter) => [letter, read(`piece-${letter}`)]));
    Object.assign(this.colours, { floor: read("board"), grid: read("grid"), lane: read("lane"), flash: read("flash"), edge: read("edge") });
    this.ask();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = devicePixelRatio || 1;
    if (!clientWidth) return;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.ask();
  }

  /** The board as it lies. A landing on its way goes on and ends with this board. */
  show(board) {
    if (this.landing) this.landing.after = board;
    else this.board = board;
    this.ask();
  }

  /** The piece above and its ghost, or nothing. A new piece appears where it is; the same piece glides. */
  aim(placement, letter = null) {
    const same = this.aimed && placement && this.aimed.letter === letter && this.aimed.placement.rotation === placement.rotation;
    const x = same && !still() ? this.aimed.x : placement?.column;
    this.aimed = placement && { placement, letter, x };
    this.ask();
  }

  /** A placement to look at, on the board as it lies. */
  mark(cells, letter) {
    this.marked = cells && { cells, letter };
    this.ask();
  }

  /** Lets a piece fall onto the board as it lies, and full rows fade. Fulfilled when all is still. */
  land(cells, letter) {
    this.finish();
    const full = withPiece(this.board, cells, letter);
    const after = settled(full);
    if (still()) {
      this.board = after;
      this.ask();
      return Promise.resolve();
    }
    return new Promise((done) => {
      this.landing = { cells, letter, full, rows: fullRows(full), after, start: performance.now(), done };
      this.ask();
    });
  }

  /** Ends a landing at once. */
  finish() {
    if (!this.landing) return;
    const { after, done } = this.landing;
    this.landing = null;
    this.board = after;
    done();
  }

  ask() {
    this.frame ||= requestAnimationFrame((now) => this.paint(now));
  }

  paint(now) {
    this.frame = 0;
    const { pen, canvas, board } = this;
    if (!board || !canvas.width) return;
    canvas.frames += 1;
    this.side = canvas.width / board[0].length;
    this.top = canvas.height - this.side * board.length;
    const age = this.landing ? now - this.landing.start : 0;
    if (this.landing && age > FALL + (this.landing.rows.length ? FLASH : 0)) this.finish();

    pen.clearRect(0, 0, canvas.width, canvas.height);
    this.floor(this.board);
    const falling = this.landing && age < FALL;
    this.squares(this.landing && !falling ? this.landing.full : this.board);
    if (falling) this.fallen(Math.max(0, age) / FALL);
    else if (this.landing) this.flash((age - FALL) / FLASH);
    if (this.marked) this.outline(this.marked);
    const gliding = this.aimed && this.hover(now);
    this.last = now;
    if (this.landing || gliding) this.ask();
  }

  floor(board) {
    const { pen, side, top, colours } = this;
    const [columns, rows] = [board[0].length, board.length];
    pen.fillStyle = colours.floor;
    pen.fillRect(0, top, columns * side, rows * side);
    if (this.aimed) {
      const across = this.aimed.placement.cells.map(([, column]) => column);
      pen.fillStyle = colours.lane;
      pen.fillRect(Math.min(...across) * side, top, (Math.max(...across) - Math.min(...across) + 1) * side, rows * side);
    }
    pen.fillStyle = colours.grid;
    const line = Math.max(1, Math.round(side / 24));
    for (let column = 1; column < columns; column += 1) pen.fillRect(Math.round(column * side), top, line, rows * side);
    for (let row = 1; row < rows; row += 1) pen.fillRect(0, Math.round(top + row * side), columns * side, line);
    pen.fillStyle = colours.edge;
    pen.fillRect(0, top - 2 * line, columns * side, 2 * line);
  }

  squares(board) {
    board.forEach((row, y) => {
      for (let x = 0; x < row.length; x += 1) if (row[x] !== ".") this.square(x, y, row[x]);
    });
  }

  square(x, y, letter, alpha = 1) {
    const { pen, side, top, colours } = this;
    const gap = Math.max(1, side * 0.05);
    const [left, up, size] = [x * side + gap, top + y * side + gap, side - 2 * gap];
    pen.globalAlpha = alpha;
    pen.fillStyle = colours[letter] ?? colours.X;
    pen.beginPath();
    pen.roundRect(left, up, size, size, side * 0.18);
    pen.fill();
    pen.globalAlpha = alpha * 0.22;
    pen.fillStyle = "#fff";
    pen.beginPath();
    pen.roundRect(left + size * 0.14, up + size * 0.12, size * 0.72, size * 0.16, size * 0.08);
    pen.fill();
    pen.globalAlpha = 1;
  }

  fallen(share) {
    const { cells, letter } = this.landing;
    const from = -Math.max(...cells.map(([row]) => row)) - 1;
    const up = from * (1 - share * share);
    for (const [row, column] of cells) this.square(column, row + up, letter);
  }

  flash(share) {
    const { pen, side, top, colours, board } = this;
    pen.globalAlpha = Math.sin(Math.PI * Math.min(1, share) * 0.5);
    pen.fillStyle = colours.flash;
    for (const row of this.landing.rows) pen.fillRect(0, top + row * side, board[0].length * side, side);
    pen.globalAlpha = 1;
  }

  /** The piece in the loft and its ghost; whether it still glides. */
  hover(now) {
    const { placement, letter } = this.aimed;
    const share = 1 - Math.exp(-Math.min(50, now - (this.last ?? now) || 16) / GLIDE);
    const rest = placement.column - this.aimed.x;
    this.aimed.x = Math.abs(rest) < 0.02 ? placement.column : this.aimed.x + rest * share;
    if (!this.landing) this.outline({ cells: placement.cells, letter });
    const first = Math.min(...placement.cells.map(([row]) => row));
    const offset = this.aimed.x - placement.column;
    const lift = -height(placement) - 0.25 - first;
    for (const [row, column] of placement.cells) this.square(column + offset, row + lift, letter);
    return this.aimed.x !== placement.column;
  }

  outline({ cells, letter }) {
    const { pen, side, top, colours } = this;
    const gap = Math.max(1.5, side * 0.1);
    pen.lineWidth = Math.max(1.5, side * 0.09);
    pen.strokeStyle = pen.fillStyle = colours[letter] ?? colours.X;
    for (const [row, column] of cells) {
      pen.beginPath();
      pen.roundRect(column * side + gap, top + row * side + gap, side - 2 * gap, side - 2 * gap, side * 0.16);
      pen.globalAlpha = 0.24;
      pen.fill();
      pen.globalAlpha = 1;
      pen.stroke();
    }
  }
}
