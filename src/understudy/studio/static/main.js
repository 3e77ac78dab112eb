// Which view is shown: the path for participants and shared replays, the part after # for all else (#play/<game>, #study/<study>).

import { all, find, showOnly, tell } from "./dom.js";
import { Participant } from "./participant.js";
import { Play } from "./play.js";
import { Replay } from "./replay.js";
import { StudyDesk } from "./study.js";
import { Table } from "./table.js";

const sections = all("main > section");
const table = new Table();
find(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address keeps naming the game
  find("#main").focus();
});

/** A part of an address as it was meant, or as it stands where that cannot be told. */
function meant(part) {
  try {
    return decodeURIComponent(part ?? "");
  } catch {
    return part;
  }
}

const [, place, key] = location.pathname.split("/");

if (place === "p") {
  document.body.classList.add("for-guests");
  find("#nav").hidden = true;
  find(".brand").removeAttribute("href");
  for (const id of ["#learn", "#wants", "#beside", "#solo", "#quiz", "#result", "#score-chance-box", "#your-caption"]) find(id).hidden = true;
  showOnly(find("#guest"), sections);
  new Participant(table, meant(key)).enter();
} else {
  const play = new Play(table);
  const replay = new Replay();
  const desk = new StudyDesk();

  const route = async () => {
    let [view, id] = location.hash.replace(/^#/, "").split("/");
    if (!view && place === "replay") [view, id] = ["replay", key];
    if (!["play", "mimic", "replay", "study"].includes(view)) view = "play";
    id = meant(id);
    tell("");
    document.title = `${{ play: "Play", mimic: "Mimic", replay: "Replay", study: "Study" }[view]} · understudy studio`;
    for (const link of all("#nav a")) {
      if (link.dataset.view === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const playing = view === "play" || view === "mimic";
    if (!playing) play.leave();
    if (view !== "replay") replay.leave();
    if (view !== "study") desk.leave();
    for (const section of sections) if (!(playing && ["start", "game"].includes(section.id))) section.hidden = true;
    if (playing) {
      await play.enter(view, id);
      remindNav(id);
    } else if (view === "replay") {
      await replay.enter(id);
      if (id) remindNav(id);
    } else await desk.enter(id);
  };

  /** The views of one game lead to one another. */
  const remindNav = (id) => {
    for (const link of all("#nav a")) if (link.dataset.view !== "study") link.href = `/#${link.dataset.view}${id ? `/${id}` : ""}`;
  };

  addEventListener("hashchange", route);
  route();
}
