// Mimic: the understudy beside you on the same pieces, the understudy alone on stage, and the blind test of who moved.

import { call } from "./api.js";
import { BoardView } from "./board.js";
import { all, find, pause, plural, say, still, tell } from "./dom.js";
import { follow } from "./follow.js";
import { emptyBoard, inWords, settled, withPiece } from "./rules.js";

const SHOW = 40; // pieces of a solo
const BEAT = 260; // milliseconds between them

const SMALL = 12; // rows of a position that are shown at least
const ROOM = 3; // and free rows above what lies highest

const highest = (board, cells) => [...cells.map(([row]) => row), ...board.flatMap((row, index) => (/[^.]/.test(row) ? [index] : []))];

/** How many pieces the understudy had before it; its answers count turns from zero. */
const placed = (answer) => (answer.turn === null ? 0 : answer.turn + 1);

export class Mimic {
  constructor() {
    this.view = new BoardView(find("#beside-canvas"));
    this.asked = new BoardView(find("#quiz-canvas"), { loft: 0 });
    find("#stage").addEventListener("click", () => this.stage());
    find("#stage-stop").addEventListener("click", () => this.curtain());
    find("#quiz-ask").addEventListener("click", () => this.ask());
    for (const button of all("[data-guess]")) button.addEventListener("click", () => this.guess(button.dataset.guess));
  }

  follow(game) {
    if (this.game === game && !this.stopped.signal.aborted) return;
    this.stop();
    this.game = game;
    this.stopped = new AbortController();
    this.latest = null;
    this.reset();
    this.view.show(emptyBoard(game.state.rows, game.state.columns));
    find("#beside-text").textContent = "It is looking at your first moves.";
    const path = (turn) => `/api/games/${encodeURIComponent(game.id)}/understudy${turn ? `?turn=${turn - 1}` : ""}`;
    const show = (answer, sentence) => this.show(answer, sentence);
    follow(game, { path, show, knows: placed }, this.stopped.signal);
  }

  stop() {
    this.stopped?.abort();
    this.solo = null;
  }

  reset() {
    this.question = null;
    find("#quiz-board").hidden = true;
    find("#quiz-ask").hidden = false;
    find("#quiz-ask").textContent = "Ask me";
    find("#quiz-answer").textContent = find("#quiz-score").textContent = "";
    for (const button of all("[data-guess]")) button.hidden = true;
    this.curtain();
  }

  /** The understudy's board after it placed the same pieces as you. */
  show(answer, sentence) {
    if (!answer) {
      find("#beside-text").textContent = sentence;
      return;
    }
    const { last } = answer;
    this.latest = answer;
    if (this.solo) return;
    const whole = this.view.board && last && withPiece(this.view.board, last.cells, last.piece);
    if (whole && settled(whole).join() === answer.board.join()) this.view.land(last.cells, last.piece);
    else this.view.show(answer.board);
    this.words();
  }

  words() {
    const { latest } = this;
    if (!latest) return;
    const lines = `${plural(latest.lines, "line")} removed`;
    find("#beside-text").textContent = latest.over
      ? `Its board is full, with ${lines}. It goes on learning from you.`
      : `With the same pieces, and with what it had learnt from you by then, it has placed ${placed(latest)}: ${lines}.`;
    if (!placed(latest)) find("#beside-text").textContent = "It waits for your first move. It places each piece you get on a board of its own, as it believes you would.";
    find("#beside-canvas").setAttribute("aria-label", `The board of your understudy. ${inWords(latest.board)}`);
  }

  /** The understudy plays on alone, from your board as it is now. */
  async stage() {
    const show = (this.solo = Symbol("solo"));
    find("#stage").disabled = true;
    let moves;
    try {
      moves = await call("POST", `/api/games/${encodeURIComponent(this.game.id)}/stage`, { body: { moves: SHOW, seed: null }, timeout: 60000 });
    } catch (error) {
      tell(error.message);
      if (this.solo === show) this.curtain();
      return;
    }
    if (this.solo !== show) return;
    find("#stage").hidden = true;
    find("#stage-stop").hidden = false;
    find("#stage-stop").focus();
    find("#beside").classList.add("lit");
    find("#solo-title").textContent = "On stage";
    this.view.finish();
    this.view.show(this.game.state.board);
    let count = 0;
    let lines = 0;
    for (const move of moves) {
      if (this.solo !== show) return;
      if (still()) await pause(BEAT);
      await this.view.land(move.cells, move.piece);
      if (this.solo !== show) return;
      this.view.show(move.board);
      count += 1;
      lines = move.lines;
      find("#beside-text").textContent = `On stage, from your board: ${plural(count, "piece")} placed.`;
      if (!still()) await pause(BEAT - 120);
    }
    const end = `Your understudy played on from your board: ${plural(count, "piece")}, ${plural(lines, "line")} in all.`;
    find("#beside-text").textContent = count < SHOW ? `${end} Then the board was full.` : end;
    find("#beside-canvas").setAttribute("aria-label", `The board of your understudy. ${inWords(this.view.board)}`);
    say(end);
  }

  /** Back to the two boards beside each other. */
  curtain() {
    const had = document.activeElement === find("#stage-stop");
    this.solo = null;
    find("#beside").classList.remove("lit");
    find("#solo-title").textContent = "Beside you";
    find("#stage").hidden = find("#stage").disabled = false;
    find("#stage-stop").hidden = true;
    if (had) find("#stage").focus();
    this.view.finish();
    if (this.latest) this.view.show(this.latest.board);
    this.words();
  }

  async ask() {
    find("#quiz-ask").disabled = true;
    find("#quiz-answer").textContent = "";
    try {
      this.question = await call("POST", `/api/games/${encodeURIComponent(this.game.id)}/quiz`);
      const { board, piece, cells } = this.question;
      find("#quiz-board").hidden = false;
      const above = Math.max(0, Math.min(board.length - SMALL, ...highest(board, cells).map((row) => row - ROOM)));
      find("#quiz-board").style.setProperty("--rows", board.length - above);
      this.asked.show(board.slice(above));
      this.asked.mark(cells.map(([row, column]) => [row - above, column]), piece);
      const columns = cells.map(([, column]) => column + 1);
      find("#quiz-canvas").setAttribute(
        "aria-label",
        `${inWords(board)} The piece ${piece} was placed on columns ${Math.min(...columns)} to ${Math.max(...columns)}.`,
      );
      find("#quiz-text").textContent = `The piece ${piece} came, and it was placed where it is outlined. Who did that?`;
      find("#quiz-ask").hidden = true;
      for (const button of all("[data-guess]")) button.hidden = false;
      find("[data-guess]").focus();
    } catch (error) {
      find("#quiz-answer").textContent = error.message;
    }
    find("#quiz-ask").disabled = false;
  }

  async guess(guess) {
    const path = `/api/games/${encodeURIComponent(this.game.id)}/quiz/${encodeURIComponent(this.question.question)}`;
    try {
      const answer = await call("POST", path, { body: { guess } });
      const mover = answer.mover === "player" ? "the player" : "the understudy";
      find("#quiz-answer").textContent = answer.right ? `Right: it was ${mover}.` : `No: it was ${mover}.`;
      find("#quiz-score").textContent = `${answer.right_so_far} of ${answer.asked} right so far; guessing blindly gives about half.`;
    } catch (error) {
      find("#quiz-answer").textContent = error.message;
    }
    for (const button of all("[data-guess]")) button.hidden = true;
    find("#quiz-ask").textContent = "Another one";
    find("#quiz-ask").hidden = false;
    find("#quiz-ask").focus();
  }
}
