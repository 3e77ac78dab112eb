// The desk of a researcher: make a study, hand out links, watch it fill, take the decisions home, and see the values by condition.

import { call, download } from "./api.js";
import { find, make, plural, tell } from "./dom.js";
import { drawFindings } from "./findings.js";

const TOKEN = "understudy.token";
const PAPER = [10, 5, 3, 1].map((tau) => ({ name: `${tau} s`, tau, pieces: 100 }));
const MOST = 12;
const AGAIN = 3000; // milliseconds between two looks at the progress

export class StudyDesk {
  constructor() {
    this.token = sessionStorage.getItem(TOKEN);
    const on = (id, event, listener) => find(id).addEventListener(event, listener);
    on("#token-form", "submit", (event) => this.open(event));
    on("#leave", "click", () => this.forget());
    on("#condition-add", "click", () => this.addCondition({ name: "", tau: null, pieces: 100 }, true));
    on("#study-form", "submit", (event) => this.create(event));
    on("#more-form", "submit", (event) => this.more(event));
    on("#copy-all", "click", () => this.copy(this.study.participants.map(linkOf).join("\n"), "All links are copied."));
    on("#end-study", "click", () => this.end());
    on("#find-out", "click", () => this.findOut());
    for (const button of document.querySelectorAll("[data-file]")) button.addEventListener("click", () => this.take(button));
    for (const condition of PAPER) this.addCondition(condition);
  }

  ask(method, path, body) {
    return call(method, `/api/studies${path}`, { body, token: this.token, timeout: 120000 });
  }

  async enter(id) {
    find("#study").hidden = false;
    this.id = id;
    this.look = Symbol("look");
    find("#found").hidden = true;
    await this.refresh();
  }

  leave() {
    this.look = null;
    clearTimeout(this.timer);
  }

  async refresh() {
    clearTimeout(this.timer);
    const { look } = this;
    find("#gate").hidden = Boolean(this.token);
    find("#desk").hidden = !this.token || Boolean(this.id);
    find("#one-study").hidden = true;
    if (!this.token) return;
    try {
      if (this.id) await this.showOne();
      else this.showAll(await this.ask("GET", ""));
    } catch (error) {
      if (this.look !== look) return;
      if (error.status === 401 || error.status === 403) this.forget();
      tell(error.message);
    }
  }

  async open(event) {
    event.preventDefault();
    this.token = new FormData(event.target).get("token").trim();
    event.target.reset();
    tell("");
    await this.refresh();
    if (this.token) sessionStorage.setItem(TOKEN, this.token);
  }

  forget() {
    this.token = null;
    sessionStorage.removeItem(TOKEN);
    this.refresh();
  }

  showAll(studies) {
    find("#studies-none").hidden = studies.length > 0;
    find("#studies-list").replaceChildren(
      ...studies.map((study) =>
        make("li", {}, make("a", { href: `/#study/${study.study}` }, study.name), " ", make("span", { class: "small" }, about(study))),
      ),
    );
  }

  addCondition({ name, tau, pieces }, focus = false) {
    const rows = find("#conditions");
    if (rows.children.length >= MOST) return tell(`A study has at most ${MOST} conditions.`, "note");
    const row = make(
      "tr",
      {},
      make("td", {}, make("input", { "aria-label": "Name of the condition", "data-field": "name", required: true, maxlength: 100, value: name })),
      make("td", {}, make("input", { "aria-label": "Seconds for each piece, empty for no limit", "data-field": "tau", type: "number", min: 0.2, max: 60, step: 0.1, placeholder: "no limit", value: tau })),
      make("td", {}, make("input", { "aria-label": "Number of pieces", "data-field": "pieces", type: "number", min: 1, max: 2000, required: true, value: pieces })),
      make("td", {}, make("button", { type: "button", "aria-label": "Remove this condition", click: () => rows.children.length > 1 && row.remove() }, "×")),
    );
    rows.append(row);
    if (focus) find("input", row).focus();
    return undefined;
  }

  async create(event) {
    event.preventDefault();
    const form = new FormData(event.target);
    const number = (text) => (text === "" || text == null ? null : Number(text));
    const conditions = [...find("#conditions").children].map((row) => {
      const field = (name) => find(`[data-field="${name}"]`, row).value;
      return { name: field("name"), tau: number(field("tau")), pieces: number(field("pieces")) };
    });
    try {
      const body = { name: form.get("name"), conditions, participants: number(form.get("participants")), seed: number(form.get("seed")) };
      const study = await this.ask("POST", "", body);
      location.hash = `#study/${study.study}`;
    } catch (error) {
      tell(error.message);
    }
  }

  async showOne() {
    const { look, id } = this;
    const study = await this.ask("GET", `/${encodeURIComponent(id)}`);
    if (this.look !== look) return;
    this.study = study;
    find("#one-study").hidden = false;
    find("#one-name").textContent = study.name;
    find("#one-text").textContent = about(study);
    find("#end-study").hidden = find("#more-form").hidden = study.ended;
    this.progress(study);
    this.timer = setTimeout(() => this.again(), AGAIN);
  }

  /** Looks at the progress again; a server that is away for a moment is no reason to stop. */
  async again() {
    if (!this.look) return;
    try {
      await this.showOne();
    } catch {
      this.timer = setTimeout(() => this.again(), 2 * AGAIN);
    }
  }

  progress({ conditions, participants }) {
    const head = make("tr", {}, make("th", { scope: "col" }, "Participant"), ...conditions.map((one) => make("th", { scope: "col" }, one.name)), make("th", { scope: "col" }, "Link"));
    const rows = participants.map((one, index) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, String(index + 1)),
        ...one.conditions.map((part) => make("td", { "data-state": part.state }, stand(part))),
        make("td", {}, make("a", { href: one.link, rel: "noreferrer" }, "open"), " ", make("button", { type: "button", "aria-label": `Copy the link of participant ${index + 1}`, click: () => this.copy(linkOf(one), "The link is copied.") }, "copy")),
      ),
    );
    const table = find("#progress");
    if (table.contains(document.activeElement) && table.rows.length === rows.length + 1) {
      // somebody is at these buttons: change what is told, and leave the buttons where they are
      rows.forEach((row, index) => [...table.tBodies[0].rows[index].cells].slice(1, -1).forEach((cell, k) => cell.replaceWith(row.cells[k + 1].cloneNode(true))));
      return;
    }
    table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  }

  async copy(text, done) {
    try {
      await navigator.clipboard.writeText(text);
      tell(done, "good");
    } catch {
      tell("The browser did not allow copying; open the link and copy it from the address bar.");
    }
  }

  async more(event) {
    event.preventDefault();
    try {
      await this.ask("POST", `/${encodeURIComponent(this.id)}/participants`, { count: Number(new FormData(event.target).get("count")) });
      await this.showOne();
    } catch (error) {
      tell(error.message);
    }
  }

  end() {
    const sure = find("#sure");
    find("#sure-text").textContent = `End “${this.study.name}”? Participants can then no longer play; what they have decided stays.`;
    sure.returnValue = "no";
    sure.addEventListener("close", async () => {
      if (sure.returnValue !== "yes") return;
      try {
        await this.ask("POST", `/${encodeURIComponent(this.id)}/end`);
        await this.showOne();
      } catch (error) {
        tell(error.message);
      }
    }, { once: true });
    sure.showModal();
  }

  async take(button) {
    button.disabled = true;
    try {
      await download(`/api/studies/${encodeURIComponent(this.id)}/${button.dataset.file}`, button.dataset.file, this.token);
    } catch (error) {
      tell(error.message);
    }
    button.disabled = false;
  }

  async findOut() {
    const button = find("#find-out");
    button.disabled = true;
    button.textContent = "Learning …";
    try {
      await drawFindings(find("#found"), await this.ask("GET", `/${encodeURIComponent(this.id)}/posteriors`));
      tell("");
    } catch (error) {
      tell(error.message);
    }
    button.disabled = false;
    button.textContent = "Draw the figure again";
  }
}

const linkOf = (participant) => new URL(participant.link, location.origin).href;

function about({ conditions, participants, ended }) {
  const people = Array.isArray(participants) ? participants.length : participants;
  return `${plural(conditions.length, "condition")}, ${plural(people, "participant")}, ${ended ? "ended" : "open"}`;
}

function stand({ state, moves, misses }) {
  if (state === "to come") return "to come";
  return `${state === "done" ? "done" : "playing"}: ${plural(moves, "piece")}${misses ? `, ${misses} missed` : ""}`;
}
