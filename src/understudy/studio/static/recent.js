// The games played in this browser, so that they can be found again. Nothing else is kept, and only here.

const KEY = "understudy.games";
const MOST = 12;

export function recentGames() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY)) ?? [];
    return Array.isArray(kept) ? kept.filter((game) => typeof game?.id === "string") : [];
  } catch {
    return [];
  }
}

export function remember(id) {
  const others = recentGames().filter((game) => game.id !== id);
  const when = recentGames().find((game) => game.id === id)?.when ?? Date.now();
  try {
    localStorage.setItem(KEY, JSON.stringify([{ id, when }, ...others].slice(0, MOST)));
  } catch {
    // a browser that keeps nothing: the address of the page still names the game
  }
}
