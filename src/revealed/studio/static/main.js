// Which view is shown: the path for participants and shared replays, the part after # for all else
// (#play/<game>, #study/<study>).

import { findAll, find, showOnly, showMessage } from "./dom.js";
import { Participant } from "./participant.js";
import { Play } from "./play.js";
import { Replay } from "./replay.js";
import { StudyPage } from "./study.js";
import { GameView } from "./game_view.js";

const sections = findAll("main > section");
const gameView = new GameView();
find(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address keeps naming the game
  find("#main").focus();
});

/** A part of an address decoded, or as it stands where it cannot be. */
function decodePart(part) {
  try {
    return decodeURIComponent(part ?? "");
  } catch {
    return part;
  }
}

const [, folder, key] = location.pathname.split("/");

if (folder === "p") {
  document.body.classList.add("for-participants");
  find("#nav").hidden = true;
  find(".brand").removeAttribute("href");
  for (const id of [
    "#learn",
    "#wants",
    "#understudy",
    "#continuation",
    "#quiz",
    "#result",
    "#score-chance-box",
    "#your-caption",
  ])
    find(id).hidden = true;
  showOnly(find("#participant"), sections);
  new Participant(gameView, decodePart(key)).enter();
} else {
  const play = new Play(gameView);
  const replay = new Replay();
  const studyPage = new StudyPage();

  const route = async () => {
    let [view, id] = location.hash.replace(/^#/, "").split("/");
    if (!view && folder === "replay") [view, id] = ["replay", key];
    if (!["play", "mimic", "replay", "study"].includes(view)) view = "play";
    id = decodePart(id);
    showMessage("");
    document.title =
      `${{ play: "Play", mimic: "Mimic", replay: "Replay", study: "Study" }[view]} ` +
      "· revealed studio";
    for (const link of findAll("#nav a")) {
      if (link.dataset.view === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const playing = view === "play" || view === "mimic";
    if (!playing) play.leave();
    if (view !== "replay") replay.leave();
    if (view !== "study") studyPage.leave();
    for (const section of sections)
      if (!(playing && ["start", "game"].includes(section.id))) section.hidden = true;
    if (playing) {
      await play.enter(view, id);
      linkNavToGame(id);
    } else if (view === "replay") {
      await replay.enter(id);
      if (id) linkNavToGame(id);
    } else await studyPage.enter(id);
  };

  /** The views of one game lead to one another. */
  const linkNavToGame = (id) => {
    for (const link of findAll("#nav a"))
      if (link.dataset.view !== "study") link.href = `/#${link.dataset.view}${id ? `/${id}` : ""}`;
  };

  addEventListener("hashchange", route);
  route();
}
