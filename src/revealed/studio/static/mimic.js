// Mimic: the understudy beside you on the same pieces, the understudy playing on alone, and the
// blind test of who moved.

import { call } from "./api.js";
import { BoardView } from "./board.js";
import {
  findAll,
  find,
  sleep,
  plural,
  announce,
  prefersReducedMotion,
  showMessage,
} from "./dom.js";
import { pollAfterMoves } from "./poll.js";
import { emptyBoard, describeBoard, withoutFullRows, withPiece } from "./rules.js";

const CONTINUATION_MOVES = 40; // pieces that it plays on alone
const MOVE_MILLISECONDS = 260; // milliseconds between them

const MIN_QUIZ_ROWS = 12; // rows of a position that are shown at least
const QUIZ_MARGIN_ROWS = 3; // and free rows above what lies highest

const occupiedRows = (board, cells) => [
  ...cells.map(([row]) => row),
  ...board.flatMap((row, index) => (/[^.]/.test(row) ? [index] : [])),
];

/** How many pieces the understudy has placed; its answers count turns from zero. */
const piecesPlaced = (answer) => (answer.turn === null ? 0 : answer.turn + 1);

export class Mimic {
  constructor() {
    this.view = new BoardView(find("#understudy-canvas"));
    this.quizView = new BoardView(find("#quiz-canvas"), { headroom: 0 });
    find("#continuation-start").addEventListener("click", () => this.startContinuation());
    find("#continuation-stop").addEventListener("click", () => this.stopContinuation());
    find("#quiz-ask").addEventListener("click", () => this.askQuestion());
    for (const button of findAll("[data-guess]"))
      button.addEventListener("click", () => this.sendGuess(button.dataset.guess));
  }

  start(game) {
    if (this.game === game && !this.stopped.signal.aborted) return;
    this.stop();
    this.game = game;
    this.stopped = new AbortController();
    this.latest = null;
    this.reset();
    this.view.show(emptyBoard(game.state.rows, game.state.columns));
    find("#understudy-text").textContent = "It is looking at your first moves.";
    const path = (turn) =>
      `/api/games/${encodeURIComponent(game.id)}/understudy${turn ? `?turn=${turn - 1}` : ""}`;
    const show = (answer, sentence) => this.show(answer, sentence);
    pollAfterMoves(game, { path, show, movesKnown: piecesPlaced }, this.stopped.signal);
  }

  stop() {
    this.stopped?.abort();
    this.continuation = null;
  }

  reset() {
    this.question = null;
    find("#quiz-board").hidden = true;
    find("#quiz-ask").hidden = false;
    find("#quiz-ask").textContent = "Ask me";
    find("#quiz-answer").textContent = find("#quiz-score").textContent = "";
    for (const button of findAll("[data-guess]")) button.hidden = true;
    this.stopContinuation();
  }

  /** The understudy's board after it placed the same pieces as you. */
  show(answer, sentence) {
    if (!answer) {
      find("#understudy-text").textContent = sentence;
      return;
    }
    const { last } = answer;
    this.latest = answer;
    if (this.continuation) return;
    const whole = this.view.board && last && withPiece(this.view.board, last.cells, last.piece);
    if (whole && withoutFullRows(whole).join() === answer.board.join())
      this.view.animateDrop(last.cells, last.piece);
    else this.view.show(answer.board);
    this.describe();
  }

  describe() {
    const { latest } = this;
    if (!latest) return;
    const lines = `${plural(latest.lines, "line")} removed`;
    find("#understudy-text").textContent = latest.over
      ? `Its board is full, with ${lines}. It goes on learning from you.`
      : "With the same pieces, and with what it had learnt from you by then, it has " +
        `placed ${piecesPlaced(latest)}: ${lines}.`;
    if (!piecesPlaced(latest))
      find("#understudy-text").textContent =
        "It waits for your first move. It places each piece you get on a board of its " +
        "own, as it believes you would.";
    find("#understudy-canvas").setAttribute(
      "aria-label",
      `The board of your understudy. ${describeBoard(latest.board)}`,
    );
  }

  /** The understudy plays on alone, from your board as it is now. */
  async startContinuation() {
    const show = (this.continuation = Symbol("continuation"));
    find("#continuation-start").disabled = true;
    let moves;
    try {
      moves = await call("POST", `/api/games/${encodeURIComponent(this.game.id)}/continuation`, {
        body: { moves: CONTINUATION_MOVES, seed: null },
        timeout: 60000,
      });
    } catch (error) {
      showMessage(error.message);
      if (this.continuation === show) this.stopContinuation();
      return;
    }
    if (this.continuation !== show) return;
    find("#continuation-start").hidden = true;
    find("#continuation-stop").hidden = false;
    find("#continuation-stop").focus();
    find("#understudy").classList.add("highlighted");
    find("#continuation-title").textContent = "Playing on alone";
    this.view.finishDrop();
    this.view.show(this.game.state.board);
    let count = 0;
    let lines = 0;
    for (const move of moves) {
      if (this.continuation !== show) return;
      if (prefersReducedMotion()) await sleep(MOVE_MILLISECONDS);
      await this.view.animateDrop(move.cells, move.piece);
      if (this.continuation !== show) return;
      this.view.show(move.board);
      count += 1;
      lines = move.lines;
      find("#understudy-text").textContent =
        `Playing on from your board: ${plural(count, "piece")} placed.`;
      if (!prefersReducedMotion()) await sleep(MOVE_MILLISECONDS - 120);
    }
    const end =
      "Your understudy played on from your board: " +
      `${plural(count, "piece")}, ${plural(lines, "line")} in all.`;
    find("#understudy-text").textContent =
      count < CONTINUATION_MOVES ? `${end} Then the board was full.` : end;
    find("#understudy-canvas").setAttribute(
      "aria-label",
      `The board of your understudy. ${describeBoard(this.view.board)}`,
    );
    announce(end);
  }

  /** Back to the two boards beside each other. */
  stopContinuation() {
    const hadFocus = document.activeElement === find("#continuation-stop");
    this.continuation = null;
    find("#understudy").classList.remove("highlighted");
    find("#continuation-title").textContent = "Beside you";
    find("#continuation-start").hidden = find("#continuation-start").disabled = false;
    find("#continuation-stop").hidden = true;
    if (hadFocus) find("#continuation-start").focus();
    this.view.finishDrop();
    if (this.latest) this.view.show(this.latest.board);
    this.describe();
  }

  async askQuestion() {
    find("#quiz-ask").disabled = true;
    find("#quiz-answer").textContent = "";
    try {
      this.question = await call("POST", `/api/games/${encodeURIComponent(this.game.id)}/quiz`);
      const { board, piece, cells } = this.question;
      find("#quiz-board").hidden = false;
      const above = Math.max(
        0,
        Math.min(
          board.length - MIN_QUIZ_ROWS,
          ...occupiedRows(board, cells).map((row) => row - QUIZ_MARGIN_ROWS),
        ),
      );
      find("#quiz-board").style.setProperty("--rows", board.length - above);
      this.quizView.show(board.slice(above));
      this.quizView.showOutline(
        cells.map(([row, column]) => [row - above, column]),
        piece,
      );
      const columns = cells.map(([, column]) => column + 1);
      find("#quiz-canvas").setAttribute(
        "aria-label",
        `${describeBoard(board)} The piece ${piece} was placed on columns ` +
          `${Math.min(...columns)} to ${Math.max(...columns)}.`,
      );
      find("#quiz-text").textContent =
        `The piece ${piece} came, and it was placed where it is outlined. Who did that?`;
      find("#quiz-ask").hidden = true;
      for (const button of findAll("[data-guess]")) button.hidden = false;
      find("[data-guess]").focus();
    } catch (error) {
      find("#quiz-answer").textContent = error.message;
    }
    find("#quiz-ask").disabled = false;
  }

  async sendGuess(guess) {
    const [game, question] = [this.game.id, this.question.question].map(encodeURIComponent);
    const path = `/api/games/${game}/quiz/${question}`;
    try {
      const answer = await call("POST", path, { body: { guess } });
      const mover = answer.mover === "player" ? "the player" : "the understudy";
      find("#quiz-answer").textContent = answer.right
        ? `Right: it was ${mover}.`
        : `No: it was ${mover}.`;
      find("#quiz-score").textContent =
        `${answer.right_so_far} of ${answer.asked} right so far; guessing blindly ` +
        "gives about half.";
    } catch (error) {
      find("#quiz-answer").textContent = error.message;
    }
    for (const button of findAll("[data-guess]")) button.hidden = true;
    find("#quiz-ask").textContent = "Another one";
    find("#quiz-ask").hidden = false;
    find("#quiz-ask").focus();
  }
}
