// The page of a researcher: make a study, hand out links, watch it fill, take the decisions home,
// and see the values by condition.

import { call, download } from "./api.js";
import { find, createElement, plural, showMessage } from "./dom.js";
import { drawStudyResults } from "./study_results.js";

const TOKEN = "revealed.token";
const PAPER_CONDITIONS = [10, 5, 3, 1].map((seconds) => ({
  name: `${seconds} s`,
  deadline_seconds: seconds,
  pieces: 100,
}));
const MAX_CONDITIONS = 12;
// The first results after an installation wait for the compiler, which takes minutes.
const RESULTS_MILLISECONDS = 1200000;
const REFRESH_MILLISECONDS = 3000; // between two requests for the progress

export class StudyPage {
  constructor() {
    this.token = sessionStorage.getItem(TOKEN);
    const on = (id, event, listener) => find(id).addEventListener(event, listener);
    on("#token-form", "submit", (event) => this.open(event));
    on("#leave", "click", () => this.forget());
    on("#condition-add", "click", () =>
      this.addCondition({ name: "", deadline_seconds: null, pieces: 100 }, true),
    );
    on("#study-form", "submit", (event) => this.create(event));
    on("#more-form", "submit", (event) => this.addParticipants(event));
    on("#copy-all", "click", () =>
      this.copy(this.study.participants.map(linkAddress).join("\n"), "All links are copied."),
    );
    on("#end-study", "click", () => this.end());
    on("#draw-results", "click", () => this.drawResults());
    for (const button of document.querySelectorAll("[data-file]"))
      button.addEventListener("click", () => this.downloadFile(button));
    for (const condition of PAPER_CONDITIONS) this.addCondition(condition);
  }

  request(method, path, body, timeout = 120000) {
    return call(method, `/api/studies${path}`, { body, token: this.token, timeout });
  }

  async enter(id) {
    find("#study").hidden = false;
    this.id = id;
    this.visit = Symbol("visit");
    find("#results").hidden = true;
    await this.refresh();
  }

  leave() {
    this.visit = null;
    clearTimeout(this.timer);
  }

  async refresh() {
    clearTimeout(this.timer);
    const { visit } = this;
    find("#token-entry").hidden = Boolean(this.token);
    find("#study-home").hidden = !this.token || Boolean(this.id);
    find("#one-study").hidden = true;
    if (!this.token) return;
    try {
      if (this.id) await this.showOne();
      else this.showAll(await this.request("GET", ""));
    } catch (error) {
      if (this.visit !== visit) return;
      if (error.status === 401 || error.status === 403) this.forget();
      showMessage(error.message);
    }
  }

  async open(event) {
    event.preventDefault();
    this.token = new FormData(event.target).get("token").trim();
    event.target.reset();
    showMessage("");
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
        createElement(
          "li",
          {},
          createElement("a", { href: `/#study/${study.study}` }, study.name),
          " ",
          createElement("span", { class: "small" }, summary(study)),
        ),
      ),
    );
  }

  addCondition({ name, deadline_seconds: seconds, pieces }, focus = false) {
    const rows = find("#conditions");
    if (rows.children.length >= MAX_CONDITIONS)
      return showMessage(`A study has at most ${MAX_CONDITIONS} conditions.`, "note");
    const row = createElement(
      "tr",
      {},
      createElement(
        "td",
        {},
        createElement("input", {
          "aria-label": "Name of the condition",
          "data-field": "name",
          required: true,
          maxlength: 100,
          value: name,
        }),
      ),
      createElement(
        "td",
        {},
        createElement("input", {
          "aria-label": "Seconds for each piece, empty for no limit",
          "data-field": "deadline_seconds",
          type: "number",
          min: 0.2,
          max: 60,
          step: 0.1,
          placeholder: "no limit",
          value: seconds,
        }),
      ),
      createElement(
        "td",
        {},
        createElement("input", {
          "aria-label": "Number of pieces",
          "data-field": "pieces",
          type: "number",
          min: 1,
          max: 2000,
          required: true,
          value: pieces,
        }),
      ),
      createElement(
        "td",
        {},
        createElement(
          "button",
          {
            type: "button",
            "aria-label": "Remove this condition",
            click: () => rows.children.length > 1 && row.remove(),
          },
          "×",
        ),
      ),
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
      return {
        name: field("name"),
        deadline_seconds: number(field("deadline_seconds")),
        pieces: number(field("pieces")),
      };
    });
    try {
      const body = {
        name: form.get("name"),
        conditions,
        participants: number(form.get("participants")),
        seed: number(form.get("seed")),
      };
      const study = await this.request("POST", "", body);
      location.hash = `#study/${study.study}`;
    } catch (error) {
      showMessage(error.message);
    }
  }

  async showOne() {
    const { visit, id } = this;
    const study = await this.request("GET", `/${encodeURIComponent(id)}`);
    if (this.visit !== visit) return;
    this.study = study;
    find("#one-study").hidden = false;
    find("#one-name").textContent = study.name;
    find("#one-text").textContent = summary(study);
    find("#end-study").hidden = find("#more-form").hidden = study.ended;
    this.showProgress(study);
    this.timer = setTimeout(() => this.refreshProgress(), REFRESH_MILLISECONDS);
  }

  /** Looks at the progress again; a server that is away for a moment is no reason to stop. */
  async refreshProgress() {
    if (!this.visit) return;
    try {
      await this.showOne();
    } catch {
      this.timer = setTimeout(() => this.refreshProgress(), 2 * REFRESH_MILLISECONDS);
    }
  }

  showProgress({ conditions, participants }) {
    const head = createElement(
      "tr",
      {},
      createElement("th", { scope: "col" }, "Participant"),
      ...conditions.map((one) => createElement("th", { scope: "col" }, one.name)),
      createElement("th", { scope: "col" }, "Link"),
    );
    const rows = participants.map((one, index) =>
      createElement(
        "tr",
        {},
        createElement("th", { scope: "row" }, String(index + 1)),
        ...one.conditions.map((part) =>
          createElement("td", { "data-state": part.state }, progressText(part)),
        ),
        createElement(
          "td",
          {},
          createElement("a", { href: one.link, rel: "noreferrer" }, "open"),
          " ",
          createElement(
            "button",
            {
              type: "button",
              "aria-label": `Copy the link of participant ${index + 1}`,
              click: () => this.copy(linkAddress(one), "The link is copied."),
            },
            "copy",
          ),
        ),
      ),
    );
    const table = find("#progress");
    if (table.contains(document.activeElement) && table.rows.length === rows.length + 1) {
      // somebody is at these buttons: change what is told, and leave the buttons where they are
      rows.forEach((row, index) =>
        [...table.tBodies[0].rows[index].cells]
          .slice(1, -1)
          .forEach((cell, k) => cell.replaceWith(row.cells[k + 1].cloneNode(true))),
      );
      return;
    }
    table.replaceChildren(createElement("thead", {}, head), createElement("tbody", {}, ...rows));
  }

  async copy(text, done) {
    try {
      await navigator.clipboard.writeText(text);
      showMessage(done, "good");
    } catch {
      showMessage(
        "The browser did not allow copying; open the link and copy it from the address bar.",
      );
    }
  }

  async addParticipants(event) {
    event.preventDefault();
    try {
      await this.request("POST", `/${encodeURIComponent(this.id)}/participants`, {
        count: Number(new FormData(event.target).get("count")),
      });
      await this.showOne();
    } catch (error) {
      showMessage(error.message);
    }
  }

  end() {
    const dialog = find("#confirm-end");
    find("#confirm-end-text").textContent =
      `End “${this.study.name}”? Participants can then no longer play; what they have ` +
      "decided stays.";
    dialog.returnValue = "no";
    dialog.addEventListener(
      "close",
      async () => {
        if (dialog.returnValue !== "yes") return;
        try {
          await this.request("POST", `/${encodeURIComponent(this.id)}/end`);
          await this.showOne();
        } catch (error) {
          showMessage(error.message);
        }
      },
      { once: true },
    );
    dialog.showModal();
  }

  async downloadFile(button) {
    button.disabled = true;
    try {
      await download(
        `/api/studies/${encodeURIComponent(this.id)}/${button.dataset.file}`,
        button.dataset.file,
        this.token,
      );
    } catch (error) {
      showMessage(error.message);
    }
    button.disabled = false;
  }

  async drawResults() {
    const button = find("#draw-results");
    button.disabled = true;
    button.textContent = "Learning …";
    try {
      await drawStudyResults(
        find("#results"),
        await this.request(
          "GET",
          `/${encodeURIComponent(this.id)}/posteriors`,
          undefined,
          RESULTS_MILLISECONDS,
        ),
      );
      showMessage("");
    } catch (error) {
      showMessage(error.message);
    }
    button.disabled = false;
    button.textContent = "Draw the figure again";
  }
}

const linkAddress = (participant) => new URL(participant.link, location.origin).href;

function summary({ conditions, participants, ended }) {
  const people = Array.isArray(participants) ? participants.length : participants;
  return (
    `${plural(conditions.length, "condition")}, ` +
    `${plural(people, "participant")}, ${ended ? "ended" : "open"}`
  );
}

function progressText({ state, moves, misses }) {
  if (state === "to come") return "to come";
  const missed = misses ? `, ${misses} missed` : "";
  return `${state === "done" ? "done" : "playing"}: ${plural(moves, "piece")}${missed}`;
}
