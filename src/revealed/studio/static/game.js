// One game as the browser sees it. The server owns board and pieces; this keeps the placement that
// is chosen, the end of the deadline, and a move on its way: it is sent until the server has
// answered, however often the connection breaks.

import { RequestError, retryDelay, call, waitOrReconnect } from "./api.js";
import { shiftedPlacement, initialPlacement, rotatedPlacement } from "./reachable.js";

// After the deadline before a miss is reported, so that the server's clock agrees.
const MISS_DELAY_MILLISECONDS = 40;

/**
 * One game. Events: state (a new state), placement (the piece was moved), sent (a placement is on
 * its way), moved (the server has answered), trouble (a sentence), recovered (trouble is over).
 */
export class Game extends EventTarget {
  constructor(state) {
    super();
    this.closed = new AbortController();
    this.setState(state);
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
  get acceptsInput() {
    return !this.state.over && !this.sending && this.placement !== null;
  }

  /** Seconds left of the deadline, or null without one. */
  get secondsLeft() {
    return this.deadlineAt === null
      ? null
      : Math.max(0, (this.deadlineAt - performance.now()) / 1000);
  }

  setState(state) {
    if (state.turn !== this.state?.turn) this.refusals = 0;
    this.state = state;
    this.placement = state.over ? null : initialPlacement(state.placements, state.columns);
    this.deadlineAt =
      state.over || state.remaining == null ? null : performance.now() + 1000 * state.remaining;
    clearTimeout(this.deadlineTimer);
    // A clock that goes ahead of the server's is refused; each time, it waits twice as long.
    const delay = this.refusals ? 500 * 2 ** Math.min(5, this.refusals) : MISS_DELAY_MILLISECONDS;
    if (this.deadlineAt !== null)
      this.deadlineTimer = setTimeout(() => this.reportMiss(), 1000 * state.remaining + delay);
    this.emit("state");
  }

  emit(name, detail = {}) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  close() {
    clearTimeout(this.deadlineTimer);
    this.closed.abort();
  }

  shift(step) {
    this.changePlacement((placements) => shiftedPlacement(placements, this.placement, step));
  }

  rotate(step) {
    this.changePlacement((placements) => rotatedPlacement(placements, this.placement, step));
  }

  /** Moves as far as there is room in one direction. */
  shiftToEdge(step) {
    this.changePlacement((placements) => {
      let at = this.placement;
      for (
        let next = shiftedPlacement(placements, at, step);
        next !== at;
        next = shiftedPlacement(placements, at, step)
      )
        at = next;
      return at;
    });
  }

  changePlacement(choose) {
    if (!this.acceptsInput) return;
    const next = choose(this.state.placements);
    const edge = next === this.placement;
    this.placement = next;
    this.emit("placement", { edge });
  }

  drop() {
    if (!this.acceptsInput) return;
    const { rotation, column } = this.placement;
    this.emit("sent", { placement: this.placement, piece: this.state.piece });
    this.send({ turn: this.state.turn, rotation, column });
  }

  reportMiss() {
    if (this.acceptsInput) this.send({ turn: this.state.turn, missed: true });
  }

  /**
   * Sends a move until it is answered, and takes what the server says: accepted, gone on
   * elsewhere, or refused with a sentence.
   */
  async send(body) {
    this.sending = true;
    const before = this.state;
    const answer = await this.sendUntilAnswered(body);
    this.sending = false;
    if (this.closed.signal.aborted) return;
    const { move = null, state } = answer;
    const elsewhere = !move && state.turn !== before.turn;
    this.refusals += move || elsewhere ? 0 : 1;
    if (answer.sentence && !elsewhere && (!body.missed || this.refusals > 1))
      this.emit("trouble", { sentence: answer.sentence });
    this.emit("moved", { before, body, move, elsewhere });
    this.setState(state);
  }

  /** The state anew, after a refusal; as it was, if it cannot be had. */
  async fetchState() {
    try {
      return await call("GET", `/api/games/${encodeURIComponent(this.id)}`, {
        signal: this.closed.signal,
      });
    } catch {
      return this.state;
    }
  }

  async sendUntilAnswered(body) {
    for (let attempt = 0; !this.closed.signal.aborted; attempt += 1) {
      try {
        const path = `/api/games/${encodeURIComponent(this.id)}/moves`;
        const answer = await call("POST", path, { body, signal: this.closed.signal });
        if (attempt) this.emit("recovered");
        return answer;
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        if (error.status === 409 && error.body.state) {
          if (attempt) this.emit("recovered");
          return { state: error.body.state, sentence: error.message };
        }
        if (!error.isTemporary) return { state: await this.fetchState(), sentence: error.message };
        const wait = retryDelay(attempt, error);
        if (!this.closed.signal.aborted) {
          const reason = error.status === 0 ? "The connection is lost." : error.message;
          this.emit("trouble", {
            sentence: `${reason} Your move is kept and sent again in ${wait} s.`,
          });
        }
        await waitOrReconnect(wait, this.closed.signal);
      }
    }
    return null;
  }
}
