// The board on a canvas: squares, the piece that waits above, its outline below, a drop and a
// flash. It paints only while something moves; `frames` and `isMoving` of the canvas say so to
// tests.

import { prefersReducedMotion } from "./dom.js";
import { fullRows, withoutFullRows, withPiece } from "./rules.js";
import { height } from "./reachable.js";

const DROP_MILLISECONDS = 120; // from the top to the ground
const FLASH_MILLISECONDS = 190; // for full rows to fade
const GLIDE_MILLISECONDS = 28; // time constant of the sideways motion
const LETTERS = [..."IOTSZJL", "X"];

export class BoardView {
  /** `headroom`: rows above the board where the piece waits. */
  constructor(canvas, { headroom = 4 } = {}) {
    Object.assign(this, {
      canvas,
      headroom,
      pen: canvas.getContext("2d"),
      board: null,
      candidate: null,
      outlined: null,
      drop: null,
    });
    this.canvas.frames = 0;
    this.frame = 0;
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.readColours());
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  readColours() {
    const style = getComputedStyle(this.canvas);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colours = Object.fromEntries(LETTERS.map((letter) => [letter, read(`piece-${letter}`)]));
    Object.assign(this.colours, {
      floor: read("board"),
      grid: read("grid"),
      lane: read("lane"),
      flash: read("flash"),
      edge: read("edge"),
    });
    this.requestPaint();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = devicePixelRatio || 1;
    if (!clientWidth) return;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.requestPaint();
  }

  /** The board as it lies. A drop on its way goes on and ends with this board. */
  show(board) {
    if (this.drop) this.drop.after = board;
    else this.board = board;
    this.requestPaint();
  }

  /**
   * The piece above the board and its outline below, or nothing. A new piece appears where it is;
   * the same piece glides.
   */
  showCandidate(placement, letter = null) {
    const same =
      this.candidate &&
      placement &&
      this.candidate.letter === letter &&
      this.candidate.placement.rotation === placement.rotation;
    const x = same && !prefersReducedMotion() ? this.candidate.x : placement?.column;
    this.candidate = placement && { placement, letter, x };
    this.requestPaint();
  }

  /** A placement to look at, on the board as it lies. */
  showOutline(cells, letter) {
    this.outlined = cells && { cells, letter };
    this.requestPaint();
  }

  /**
   * Lets a piece fall onto the board as it lies, and full rows fade. Fulfilled when all is still.
   */
  animateDrop(cells, letter) {
    this.finishDrop();
    const full = withPiece(this.board, cells, letter);
    const after = withoutFullRows(full);
    if (prefersReducedMotion()) {
      this.board = after;
      this.requestPaint();
      return Promise.resolve();
    }
    return new Promise((done) => {
      this.drop = {
        cells,
        letter,
        full,
        rows: fullRows(full),
        after,
        start: performance.now(),
        done,
      };
      this.requestPaint();
    });
  }

  /** Ends a drop at once. */
  finishDrop() {
    if (!this.drop) return;
    const { after, done } = this.drop;
    this.drop = null;
    this.board = after;
    done();
  }

  requestPaint() {
    this.canvas.isMoving = true;
    this.frame ||= requestAnimationFrame((now) => this.paint(now));
  }

  paint(now) {
    this.frame = 0;
    this.canvas.isMoving = false;
    const { pen, canvas, board } = this;
    if (!board || !canvas.width) return;
    canvas.frames += 1;
    this.side = canvas.width / board[0].length;
    this.top = canvas.height - this.side * board.length;
    const age = this.drop ? now - this.drop.start : 0;
    if (this.drop && age > DROP_MILLISECONDS + (this.drop.rows.length ? FLASH_MILLISECONDS : 0))
      this.finishDrop();

    pen.clearRect(0, 0, canvas.width, canvas.height);
    this.paintBackground(this.board);
    const falling = this.drop && age < DROP_MILLISECONDS;
    this.paintSquares(this.drop && !falling ? this.drop.full : this.board);
    if (falling) this.paintFalling(Math.max(0, age) / DROP_MILLISECONDS);
    else if (this.drop) this.paintFlash((age - DROP_MILLISECONDS) / FLASH_MILLISECONDS);
    if (this.outlined) this.paintOutline(this.outlined);
    const gliding = this.candidate && this.paintCandidate(now);
    this.last = now;
    if (this.drop || gliding) this.requestPaint();
  }

  paintBackground(board) {
    const { pen, side, top, colours } = this;
    const [columns, rows] = [board[0].length, board.length];
    pen.fillStyle = colours.floor;
    pen.fillRect(0, top, columns * side, rows * side);
    if (this.candidate) {
      const across = this.candidate.placement.cells.map(([, column]) => column);
      pen.fillStyle = colours.lane;
      pen.fillRect(
        Math.min(...across) * side,
        top,
        (Math.max(...across) - Math.min(...across) + 1) * side,
        rows * side,
      );
    }
    pen.fillStyle = colours.grid;
    const line = Math.max(1, Math.round(side / 24));
    for (let column = 1; column < columns; column += 1)
      pen.fillRect(Math.round(column * side), top, line, rows * side);
    for (let row = 1; row < rows; row += 1)
      pen.fillRect(0, Math.round(top + row * side), columns * side, line);
    pen.fillStyle = colours.edge;
    pen.fillRect(0, top - 2 * line, columns * side, 2 * line);
  }

  paintSquares(board) {
    board.forEach((row, y) => {
      for (let x = 0; x < row.length; x += 1) if (row[x] !== ".") this.paintSquare(x, y, row[x]);
    });
  }

  paintSquare(x, y, letter, alpha = 1) {
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

  paintFalling(share) {
    const { cells, letter } = this.drop;
    const from = -Math.max(...cells.map(([row]) => row)) - 1;
    const up = from * (1 - share * share);
    for (const [row, column] of cells) this.paintSquare(column, row + up, letter);
  }

  paintFlash(share) {
    const { pen, side, top, colours, board } = this;
    pen.globalAlpha = Math.sin(Math.PI * Math.min(1, share) * 0.5);
    pen.fillStyle = colours.flash;
    for (const row of this.drop.rows)
      pen.fillRect(0, top + row * side, board[0].length * side, side);
    pen.globalAlpha = 1;
  }

  /** Paints the piece above the board and its outline; whether it still glides. */
  paintCandidate(now) {
    const { placement, letter } = this.candidate;
    const share = 1 - Math.exp(-Math.min(50, now - (this.last ?? now) || 16) / GLIDE_MILLISECONDS);
    const rest = placement.column - this.candidate.x;
    this.candidate.x = Math.abs(rest) < 0.02 ? placement.column : this.candidate.x + rest * share;
    if (!this.drop) this.paintOutline({ cells: placement.cells, letter });
    const first = Math.min(...placement.cells.map(([row]) => row));
    const offset = this.candidate.x - placement.column;
    const lift = -height(placement) - 0.25 - first;
    for (const [row, column] of placement.cells)
      this.paintSquare(column + offset, row + lift, letter);
    return this.candidate.x !== placement.column;
  }

  paintOutline({ cells, letter }) {
    const { pen, side, top, colours } = this;
    const gap = Math.max(1.5, side * 0.1);
    pen.lineWidth = Math.max(1.5, side * 0.09);
    pen.strokeStyle = pen.fillStyle = colours[letter] ?? colours.X;
    for (const [row, column] of cells) {
      pen.beginPath();
      pen.roundRect(
        column * side + gap,
        top + row * side + gap,
        side - 2 * gap,
        side - 2 * gap,
        side * 0.16,
      );
      pen.globalAlpha = 0.24;
      pen.fill();
      pen.globalAlpha = 1;
      pen.stroke();
    }
  }
}
