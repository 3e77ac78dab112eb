// The games played in this browser, so that they can be found again. Nothing else is kept, and only
// here.

const KEY = "revealed.games";
const MAX_GAMES = 12;

export function recentGames() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY)) ?? [];
    return Array.isArray(kept) ? kept.filter((game) => typeof game?.id === "string") : [];
  } catch {
    return [];
  }
}

export function rememberGame(id) {
  const others = recentGames().filter((game) => game.id !== id);
  const when = recentGames().find((game) => game.id === id)?.when ?? Date.now();
  try {
    localStorage.setItem(KEY, JSON.stringify([{ id, when }, ...others].slice(0, MAX_GAMES)));
  } catch {
    // a browser that keeps nothing: the address of the page still names the game
  }
}
