// The values by condition, as in the paper's Experiment 3: a density for each value, then what
// pressure changed: how consistently wishes are followed, what is wished for, and how many
// deadlines were missed.

import { formatNumber, createElement, formatPercent } from "./dom.js";
import { axis, colour, draw, faint } from "./plots.js";

const HUES = ["hue-1", "hue-2", "hue-3", "hue-4", "hue-5", "hue-6"];
const hue = (index) => HUES[index % HUES.length];
const dash = (index) => ["solid", "dash", "dot"][Math.floor(index / HUES.length) % 3];

const EXPLANATION =
  "Consistency is the size of the value in units of what was offered: how strictly " +
  "wishes are followed. Direction is what is wished for, whatever the noise. " +
  "p is how often two conditions would look as different as this one and the first if " +
  "the wishes were the same. Intervals hold 90 % of the posterior.";

/** Fills a box with charts and with a table of the same numbers. */
export async function drawStudyResults(box, { names, conditions }) {
  const known = conditions.filter((one) => one.densities);
  const plots = [];
  const chart = (title, label, build) => {
    const div = createElement("div", { class: "plot", role: "img", "aria-label": label });
    plots.push([div, build]);
    return createElement("figure", {}, createElement("figcaption", {}, title), div);
  };
  const values = names.map((name, k) =>
    chart(
      `Value of ${name}`,
      `Posterior densities of the value of ${name} by condition; the means are in the table`,
      () => densities(known, k),
    ),
  );
  const pressure = [
    chart(
      "Consistency",
      "How consistently wishes are followed, by condition, with 90 % intervals",
      () => intervals(known, (one) => one.consistency),
    ),
    chart("Missed deadlines", "Share of pieces whose deadline was missed, by condition", () =>
      misses(conditions),
    ),
  ];
  const wishes = names.map((name, k) =>
    chart(
      `Direction: ${name}`,
      `Share of ${name} in the direction of the value, by condition, with 90 % intervals`,
      () =>
        intervals(known, ({ direction }) => ({
          median: direction.median[k],
          low: direction.low[k],
          high: direction.high[k],
        })),
    ),
  );
  box.replaceChildren(
    key(known),
    createElement("div", { class: "row" }, values),
    createElement("div", { class: "row" }, pressure),
    createElement("div", { class: "row" }, wishes),
    table(names, conditions),
    createElement("p", { class: "note" }, EXPLANATION),
  );
  box.hidden = false;
  for (const [div, build] of plots) await draw(div, build);
}

function key(conditions) {
  const line = (index) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    svg.setAttribute("viewBox", "0 0 22 10");
    svg.setAttribute("aria-hidden", "true");
    for (const [name, value] of Object.entries({
      d: "M0 5h22",
      "stroke-width": 3,
      class: hue(index),
    }))
      path.setAttribute(name, value);
    svg.append(path);
    return svg;
  };
  return createElement(
    "ul",
    { class: "key" },
    conditions.map((one, index) => createElement("li", {}, line(index), one.name)),
  );
}

function densities(conditions, k) {
  return {
    data: conditions.map((one, index) => ({
      ...one.densities[k],
      type: "scatter",
      mode: "lines",
      fill: "tozeroy",
      fillcolor: faint(hue(index), 0.1),
      line: { color: colour(hue(index)), width: 2.5, shape: "spline", dash: dash(index) },
    })),
    layout: {
      xaxis: axis({ showgrid: false }),
      yaxis: axis({ visible: false, rangemode: "tozero" }),
    },
  };
}

/** One line a condition: the median and the middle 90 % of the posterior. */
function intervals(conditions, of) {
  const at = conditions.map((_, index) => conditions.length - index);
  return {
    data: conditions.map((one, index) => {
      const { median, low, high } = of(one);
      return {
        x: [median],
        y: [at[index]],
        type: "scatter",
        mode: "markers",
        marker: { size: 10, color: colour(hue(index)) },
        error_x: {
          type: "data",
          symmetric: false,
          array: [high - median],
          arrayminus: [median - low],
          color: colour(hue(index)),
          thickness: 2.5,
          width: 0,
        },
      };
    }),
    layout: {
      margin: { l: 70, r: 12, t: 6, b: 24 },
      xaxis: axis(),
      yaxis: axis({
        tickvals: at,
        ticktext: conditions.map((one) => one.name),
        range: [0.4, conditions.length + 0.6],
        zeroline: false,
        showgrid: false,
      }),
    },
  };
}

const share = ({ made, missed }) => (made + missed ? missed / (made + missed) : 0);

function misses(conditions) {
  return {
    data: [
      {
        x: conditions.map((one) => one.name),
        y: conditions.map(share),
        type: "bar",
        marker: { color: conditions.map((_, index) => colour(hue(index))) },
      },
    ],
    layout: {
      margin: { l: 42, r: 8, t: 6, b: 28 },
      xaxis: axis({ type: "category", showgrid: false }),
      yaxis: axis({ range: [0, 1.04], tickvals: [0, 0.5, 1], tickformat: ".0%" }),
      bargap: 0.5,
    },
  };
}

function table(names, conditions) {
  const head = [
    "Condition",
    "Decisions",
    "Missed",
    ...names.map((name) => `Value of ${name}`),
    "Consistency (90 %)",
    "Same wishes? (p)",
  ];
  const rows = conditions.map((one) => {
    const { made, missed, mean, sd, consistency, chance } = one;
    const learnt = mean
      ? [
          ...mean.map((value, k) => `${formatNumber(value)} ± ${formatNumber(sd[k])}`),
          `${formatNumber(consistency.median)} (${formatNumber(consistency.low)} to ` +
            `${formatNumber(consistency.high)})`,
        ]
      : [...names.map(() => "–"), "too few"];
    return [
      one.name,
      made,
      made + missed ? `${missed} (${formatPercent(share(one))})` : "–",
      ...learnt,
      chance == null ? "–" : chance.toPrecision(2),
    ];
  });
  return createElement(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "The same in numbers" },
    createElement(
      "table",
      { class: "progress" },
      createElement(
        "thead",
        {},
        createElement(
          "tr",
          {},
          head.map((text) => createElement("th", { scope: "col" }, text)),
        ),
      ),
      createElement(
        "tbody",
        {},
        rows.map(([name, ...rest]) =>
          createElement(
            "tr",
            {},
            createElement("th", { scope: "row" }, name),
            rest.map((cell) => createElement("td", {}, String(cell))),
          ),
        ),
      ),
    ),
  );
}
