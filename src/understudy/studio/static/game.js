// One game as the browser sees it. The server owns board and dice; here live the aim, the clock's end, and a move on its way: it is
// sent until the server has answered, however often the connection breaks.

import { Refused, backOff, call, patience } from "./api.js";
import { sideways, spawn, turned } from "./walk.js";

const GRACE = 40; // milliseconds after the deadline before a miss is reported, so that the server's clock agrees

/** Events: state (a new state), aim (the piece moved), sent (a placement falls), moved (the server has answered), trouble (a sentence),
 * well (trouble is over). */
export class Game extends EventTarget {
  constructor(state) {
    super();
    this.gone = new AbortController();
    this.take(state);
  }

  static async start(options) {
    return new Game(await call("POST", "/api/games", { body: options }));
  }

  static async open(id) {
    return new Game(await call("GET", `/api/games/${encodeURIComponent(id)}`));
  }

  get id() {
    return this.state.game;
  }

  /** Whether the piece may be moved now. */
  get awaits() {
    return !this.state.over && !this.sending && this.at !== null;
  }

  /** Seconds left of the deadline, or null without one. */
  get left() {
    return this.until === null ? null : Math.max(0, (this.until - performance.now()) / 1000);
  }

  take(state) {
    if (state.turn !== this.state?.turn) this.refusals = 0;
    this.state = state;
    this.at = state.over ? null : spawn(state.placements, state.columns);
    this.until = state.over || state.remaining == null ? null : performance.now() + 1000 * state.remaining;
    clearTimeout(this.alarm);
    const grace = this.refusals ? 500 * 2 ** Math.min(5, this.refusals) : GRACE;
    if (this.until !== null) this.alarm = setTimeout(() => this.miss(), 1000 * state.remaining + grace);
    this.emit("state");
  }

  emit(name, detail = {}) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  close() {
    clearTimeout(this.alarm);
    this.gone.abort();
  }

  move(step) {
    this.aim((placements) => sideways(placements, this.at, step));
  }

  turn(step) {
    this.aim((placements) => turned(placements, this.at, step));
  }

  /** Moves as far as there is room in one direction. */
  push(step) {
    this.aim((placements) => {
      let at = this.at;
      for (let next = sideways(placements, at, step); next !== at; next = sideways(placements, at, step)) at = next;
      return at;
    });
  }

  aim(choose) {
    if (!this.awaits) return;
    const next = choose(this.state.placements);
    const edge = next === this.at;
    this.at = next;
    this.emit("aim", { edge });
  }

  drop() {
    if (!this.awaits) return;
    const { rotation, column } = this.at;
    this.emit("sent", { placement: this.at, piece: this.state.piece });
    this.send({ turn: this.state.turn, rotation, column });
  }

  miss() {
    if (this.awaits) this.send({ turn: this.state.turn, missed: true });
  }

  /** Sends a move until it is answered, and takes what the server says: accepted, gone on elsewhere, or refused with a sentence. */
  async send(body) {
    this.sending = true;
    const before = this.state;
    const answer = await this.untilAnswered(body);
    this.sending = false;
    if (this.gone.signal.aborted) return;
    const { move = null, state } = answer;
    const elsewhere = !move && state.turn !== before.turn;
    this.refusals += move || elsewhere ? 0 : 1;
    if (answer.sentence && !elsewhere && (!body.missed || this.refusals > 1)) this.emit("trouble", { sentence: answer.sentence });
    this.emit("moved", { before, body, move, elsewhere });
    this.take(state);
  }

  /** The state anew, after a refusal; as it was, if it cannot be had. */
  async asked() {
    try {
      return await call("GET", `/api/games/${encodeURIComponent(this.id)}`, { signal: this.gone.signal });
    } catch {
      return this.state;
    }
  }

  async untilAnswered(body) {
    for (let attempt = 0; !this.gone.signal.aborted; attempt += 1) {
      try {
        const path = `/api/games/${encodeURIComponent(this.id)}/moves`;
        const answer = await call("POST", path, { body, signal: this.gone.signal });
        if (attempt) this.emit("well");
        return answer;
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (error.status === 409 && error.body.state) {
          if (attempt) this.emit("well");
          return { state: error.body.state, sentence: error.message };
        }
        if (!error.passing) return { state: await this.asked(), sentence: error.message };
        const wait = backOff(attempt, error);
        if (!this.gone.signal.aborted) {
          const reason = error.status === 0 ? "The connection is lost." : error.message;
          this.emit("trouble", { sentence: `${reason} Your move is kept and sent again in ${wait} s.` });
        }
        await patience(wait, this.gone.signal);
      }
    }
    return null;
  }
}
