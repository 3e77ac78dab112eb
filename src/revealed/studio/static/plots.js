// Plotly, fetched when the first chart is drawn, in the colours of the page.

// Plotly's bundle brings styles for maps, which the page's policy would refuse, unless an element
// of this name is there already.
const MAP_STYLES = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";
let fetched;

/** Plotly's own bundle, once. */
export function plotly() {
  fetched ??= new Promise((resolve, reject) => {
    const styles = document.createElement("meta");
    styles.id = MAP_STYLES;
    const script = document.createElement("script");
    script.src = "/plotly.js";
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => {
      fetched = undefined;
      script.remove();
      styles.remove();
      reject(new Error("The charts could not be loaded; the numbers beside them are complete."));
    });
    document.head.append(styles, script);
  });
  return fetched;
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A colour of the page with some of it let through. */
export function faint(name, share) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour(name).slice(at, at + 2), 16));
  return `rgba(${red},${green},${blue},${share})`;
}

export function axis(more = {}) {
  return {
    color: colour("soft"),
    gridcolor: colour("line"),
    linecolor: colour("line"),
    zerolinecolor: colour("soft"),
    zerolinewidth: 1.5,
    tickfont: { size: 11 },
    fixedrange: true,
    nticks: 5,
    automargin: false,
    ...more,
  };
}

const layouts = new WeakMap();

/**
 * Draws into a div; `build` gives {data, layout} and is asked again when the colours of the page
 * change.
 */
export async function draw(div, build) {
  const Plotly = await plotly();
  if (!layouts.has(div)) {
    matchMedia("(prefers-color-scheme: dark)").addEventListener(
      "change",
      () => div.isConnected && render(Plotly, div),
    );
  }
  layouts.set(div, build);
  await render(Plotly, div);
}

function render(Plotly, div) {
  if (!div.clientWidth) return undefined; // out of sight: drawn when it is next asked for
  const { data, layout } = layouts.get(div)();
  const base = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    autosize: true,
    dragmode: false,
    margin: { l: 8, r: 8, t: 6, b: 22 },
    font: { family: getComputedStyle(document.body).fontFamily, color: colour("ink"), size: 12 },
  };
  return Plotly.react(
    div,
    data,
    { ...base, ...layout },
    { displayModeBar: false, responsive: true, staticPlot: true },
  );
}
