// What has been learnt from a player: the posterior density of each value, the chance the last move
// had been given, and how often the most likely move was not the one made; and, where the studio
// learns lapses, their rate and which moves they probably were.

import { formatNumber, find, createElement, formatPercent, plural } from "./dom.js";
import { pollAfterMoves } from "./poll.js";
import { axis, colour, draw, faint } from "./plots.js";

const LAPSES = "lapses"; // the figure beside those of the values
const LIKELY_LAPSE = 0.5; // from this probability on a move is marked as a lapse
const NAMED_LAPSES = 8; // so many are named below the chart

const WISHES = {
  height: ["low stacks", "high stacks"],
  holes: ["no holes", "holes"],
  bumps: ["smooth tops", "rough tops"],
};

export class Learning {
  /** `onUpdate` is called after every answer. */
  constructor(onUpdate) {
    this.onUpdate = onUpdate;
    this.boxes = new Map();
    this.isDrawing = false;
  }

  start(game) {
    this.stop();
    this.stopped = new AbortController();
    this.game = game;
    this.answer = null;
    find("#learn-trouble").hidden = true;
    find("#score-chance").textContent = "–";
    const path = (turn) => `/api/games/${encodeURIComponent(game.id)}/learning?turn=${turn}`;
    const show = (answer, sentence) => this.show(answer, sentence);
    pollAfterMoves(game, { path, show, movesKnown: (answer) => answer.turn }, this.stopped.signal);
  }

  stop() {
    this.stopped?.abort();
  }

  show(answer, sentence) {
    if (!answer) return this.showError(sentence);
    this.answer = answer;
    find("#learn-trouble").hidden = true;
    const last = answer.history.at(-1);
    find("#chance").textContent = last ? formatPercent(last.probability) : "–";
    find("#score-chance").textContent = last ? formatPercent(last.probability) : "–";
    find("#chance-text").textContent = last
      ? "the chance it gave your last move; " +
        `${last.hit ? "it had expected it most" : "it had expected another one more"}`
      : "the chance it gave your last move";
    find("#error").textContent = answer.history.length ? formatPercent(answer.error) : "–";
    find("#error-text").textContent = answer.history.length
      ? "prediction error: so many of your " +
        `${plural(answer.history.length, "decision")} were not what it expected most`
      : "prediction error: how many of your decisions are not what it expects most";
    find("#learn-note").hidden = answer.history.length > 3;
    answer.names.forEach((name, k) => this.showCaption(name, answer.mean[k], answer.sd[k]));
    this.showLapses(answer.lapse);
    this.drawCharts();
    return this.onUpdate();
  }

  /**
   * How well the player of a finished game was known, in a sentence, once all its moves have been
   * learnt.
   */
  predictionSummary(moves) {
    const { answer } = this;
    if (answer?.turn !== moves || !answer.history.length) return "";
    const foreseen = answer.history.filter(({ hit }) => hit).length;
    return (
      ` Of your ${plural(answer.history.length, "decision")}, ${foreseen} ` +
      `${foreseen === 1 ? "was what" : "were what"} it expected most.`
    );
  }

  showError(sentence) {
    const note = find("#learn-trouble");
    note.textContent = sentence;
    note.hidden = false;
  }

  /** The figure of a quantity, made when it is first shown. */
  figureOf(name) {
    if (!this.boxes.has(name)) {
      const parts = {
        number: createElement("b"),
        words: createElement("span", { class: "small" }),
        plot: createElement("div", { class: "plot", role: "img" }),
      };
      find("#densities").append(
        createElement(
          "figure",
          {},
          createElement(
            "figcaption",
            {},
            createElement("span", {}, name),
            parts.number,
            parts.words,
          ),
          parts.plot,
        ),
      );
      parts.brief = createElement("b");
      find("#wants").append(createElement("li", {}, createElement("span", {}, name), parts.brief));
      this.boxes.set(name, parts);
    }
    return this.boxes.get(name);
  }

  /** How often the player moves blindly, and which moves probably were such lapses. */
  showLapses(lapse) {
    find("#lapses").hidden = !lapse;
    if (!lapse) return;
    const { number, words, plot, brief } = this.figureOf(LAPSES);
    find("#densities").classList.add("with-lapses");
    const [mean, sd] = [formatPercent(lapse.mean), formatPercent(lapse.sd)];
    number.textContent = `${mean} ± ${sd}`;
    words.textContent = "of your moves are made without looking";
    brief.textContent = `${mean} of moves`;
    plot.setAttribute(
      "aria-label",
      `Posterior density of the rate of lapses: mean ${mean}, standard deviation ${sd}`,
    );
    const likely = lapse.decisions
      .map((probability, index) => ({ probability, number: index + 1 }))
      .filter(({ probability }) => probability >= LIKELY_LAPSE)
      .sort((a, b) => b.probability - a.probability);
    const named = likely
      .slice(0, NAMED_LAPSES)
      .sort((a, b) => a.number - b.number)
      .map(({ number: which, probability }) => `${which} (${formatPercent(probability)})`)
      .map((words) => words.replaceAll(" ", "\u00a0"));
    const more = likely.length > NAMED_LAPSES ? ` and ${likely.length - NAMED_LAPSES} more` : "";
    find("#lapses").textContent = named.length
      ? "Probably lapses, made without looking, which say nothing of what you want: " +
        `${likely.length === 1 ? "decision" : "decisions"} ${named.join(", ")}${more}.`
      : "So far it takes none of your decisions for a lapse, made without looking.";
  }

  showCaption(name, mean, sd) {
    const { number, words, plot, brief } = this.figureOf(name);
    const [less, more] = WISHES[name] ?? [`less ${name}`, `more ${name}`];
    number.textContent = `${formatNumber(mean)} ± ${formatNumber(sd)}`;
    const wish = Math.abs(mean) < 2 * sd ? null : mean < 0 ? less : more;
    words.textContent = wish ? `you want ${wish}` : "not sure yet";
    brief.textContent = wish ?? "not sure yet";
    plot.setAttribute(
      "aria-label",
      `Posterior density of the value of ${name}: mean ${formatNumber(mean)}, ` +
        `standard deviation ${formatNumber(sd)}`,
    );
  }

  /** Charts are drawn when the browser has nothing better to do; of several answers, the last. */
  drawCharts() {
    if (this.isDrawing || !this.answer || find("#learn").hidden) return;
    this.isDrawing = true;
    const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 30));
    idle(
      async () => {
        const { answer } = this;
        try {
          for (const [k, name] of answer.names.entries())
            await draw(this.boxes.get(name).plot, () => density(answer.densities[k], k));
          if (answer.lapse)
            await draw(this.boxes.get(LAPSES).plot, () => rateDensity(answer.lapse.density));
          await draw(find("#history"), () => history(answer.history, answer.lapse?.decisions));
        } catch (error) {
          this.showError(error.message);
        }
        this.isDrawing = false;
        if (this.answer !== answer) this.drawCharts();
      },
      { timeout: 500 },
    );
  }
}

const HUES = ["hue-1", "hue-2", "hue-3", "hue-4", "hue-5", "hue-6"];

function density({ x, y }, k) {
  const hue = HUES[k % HUES.length];
  return {
    data: [
      {
        x,
        y,
        type: "scatter",
        mode: "lines",
        line: { color: colour(hue), width: 2.5, shape: "spline" },
        fill: "tozeroy",
        fillcolor: faint(hue, 0.16),
      },
    ],
    layout: {
      xaxis: axis({ showgrid: false, nticks: 4 }),
      yaxis: axis({ visible: false, rangemode: "tozero" }),
    },
  };
}

function rateDensity(curve) {
  const { data, layout } = density(curve, 3);
  layout.xaxis = { ...layout.xaxis, tickformat: ".0%", rangemode: "tozero" };
  return { data, layout };
}

function history(moves, lapses = []) {
  const x = moves.map((_, index) => index + 1);
  let wrong = 0;
  const running = moves.map(({ hit }, index) => (wrong += hit ? 0 : 1) / (index + 1));
  const dots = (hit) => ({
    x: x.filter((_, index) => moves[index].hit === hit),
    y: moves.filter((move) => move.hit === hit).map((move) => move.probability),
    type: "scatter",
    mode: "markers",
    cliponaxis: false,
    name: hit ? "expected most" : "expected less",
    marker: {
      size: 7,
      color: hit ? colour("hue-1") : colour("card"),
      line: { width: 1.5, color: colour("hue-1") },
    },
  });
  const likely = x.filter((number) => lapses[number - 1] >= LIKELY_LAPSE);
  const crosses = {
    x: likely,
    y: likely.map((number) => moves[number - 1].probability),
    type: "scatter",
    mode: "markers",
    cliponaxis: false,
    name: "probably a lapse",
    marker: { size: 12, symbol: "x-thin", line: { width: 2.5, color: colour("hue-6") } },
  };
  return {
    data: [
      {
        x,
        y: running,
        type: "scatter",
        mode: "lines",
        name: "prediction error",
        line: { color: colour("accent"), width: 2.5 },
      },
      dots(false),
      dots(true),
      ...(likely.length ? [crosses] : []),
    ],
    layout: {
      showlegend: true,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 11 } },
      margin: { l: 40, r: 10, t: 30, b: 36 },
      xaxis: axis({
        title: { text: "decision", font: { size: 11 }, standoff: 4 },
        range: [0.5, Math.max(10, moves.length) + 0.5],
        showgrid: false,
        zeroline: false,
      }),
      yaxis: axis({ range: [-0.03, 1.03], tickformat: ".0%" }),
    },
  };
}
