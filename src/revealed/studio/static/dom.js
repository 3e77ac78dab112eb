// Small helpers to read and make elements. Text goes in as text, never as markup.

export const find = (selector, root = document) => root.querySelector(selector);
export const findAll = (selector, root = document) => [...root.querySelectorAll(selector)];

/**
 * An element with attributes and children; a function is taken as a listener, `true` as a bare
 * attribute.
 */
export function createElement(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

/** Shows one element of a group and hides the others. */
export function showOnly(element, group) {
  for (const other of group) other.hidden = other !== element;
}

let announceTimer = 0;

/** Announces a sentence to screen readers: the last one wins when several come at once. */
export function announce(sentence) {
  clearTimeout(announceTimer);
  const region = find("#spoken");
  region.textContent = "";
  announceTimer = setTimeout(() => (region.textContent = sentence), 40);
}

// A note stays this long; what went wrong stays until it is closed or right again.
const NOTE_MILLISECONDS = 4000;
let hideTimer = 0;

/**
 * The bar for what went wrong, or for what is worth knowing ("note", "good"): one sentence; an
 * empty one takes it away.
 */
export function showMessage(sentence, kind = "wrong") {
  clearTimeout(hideTimer);
  const bar = find("#message");
  find("#message-text").textContent = sentence;
  bar.dataset.kind = kind;
  bar.hidden = !sentence;
  if (kind !== "wrong") hideTimer = setTimeout(() => (bar.hidden = true), NOTE_MILLISECONDS);
}

find("#message-close").addEventListener("click", () => showMessage(""));

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
export const prefersReducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
export const formatPercent = (share) =>
  `${share > 0 && share < 0.005 ? "<1" : Math.round(100 * share)} %`;
export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** A number as a reader likes it: a real minus sign and about three digits. */
export function formatNumber(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2).replace("-", "\u2212");
}
