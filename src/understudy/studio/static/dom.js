// Small helpers to read and make elements. Text goes in as text, never as markup.

export const find = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/** An element with attributes and children; a function is taken as a listener, `true` as a bare attribute. */
export function make(tag, attributes = {}, ...children) {
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

let politely;

/** Says a sentence to those who listen to the page: the last one wins when several come at once. */
export function say(sentence) {
  clearTimeout(politely);
  const region = find("#spoken");
  region.textContent = "";
  politely = setTimeout(() => (region.textContent = sentence), 40);
}

const BRIEF = 4000; // milliseconds that a note stays; what went wrong stays until it is closed or right again
let fading;

/** The bar for what went wrong, or for what is worth knowing ("note", "good"): one sentence; an empty one takes it away. */
export function tell(sentence, kind = "wrong") {
  clearTimeout(fading);
  const bar = find("#message");
  find("#message-text").textContent = sentence;
  bar.dataset.kind = kind;
  bar.hidden = !sentence;
  if (kind !== "wrong") fading = setTimeout(() => (bar.hidden = true), BRIEF);
}

find("#message-close").addEventListener("click", () => tell(""));

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
export const percent = (share) => `${share > 0 && share < 0.005 ? "<1" : Math.round(100 * share)} %`;
export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** A number as a reader likes it: a real minus sign and about three digits. */
export function figure(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2).replace("-", "\u2212");
}
