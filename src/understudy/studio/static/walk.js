// Where a piece can be let fall. The server lists the legal placements; keys and fingers only walk along that list, so that
// nothing else can be asked for. A placement is {rotation, column, cells}, its column that of its leftmost square.

const spread = (index) => (placement) => {
  const along = placement.cells.map((cell) => cell[index]);
  return Math.max(...along) - Math.min(...along) + 1;
};
export const width = spread(1);
export const height = spread(0);

const nearest = (placements, column) =>
  placements.reduce((best, one) => (Math.abs(one.column - column) < Math.abs(best.column - column) ? one : best));

/** Where a piece waits at first: not turned and in the middle, or as near to that as the board allows. */
export function spawn(placements, columns) {
  if (!placements.length) return null;
  const least = Math.min(...placements.map((one) => one.rotation));
  const upright = placements.filter((one) => one.rotation === least);
  return nearest(upright, Math.floor((columns - width(upright[0])) / 2));
}

/** The next legal placement to the left (-1) or right (+1), or the same one at the edge. */
export function sideways(placements, from, step) {
  const onward = placements.filter((one) => one.rotation === from.rotation && (one.column - from.column) * step > 0);
  return onward.length ? nearest(onward, from.column) : from;
}

/** The piece turned once, clockwise (+1) or back (-1), about its middle; rotations without room are passed over. */
export function turned(placements, from, step) {
  const rotations = [...new Set(placements.map((one) => one.rotation))].sort((a, b) => a - b);
  const count = rotations.length;
  const next = rotations[(rotations.indexOf(from.rotation) + step + count) % count];
  const there = placements.filter((one) => one.rotation === next);
  return nearest(there, from.column + Math.floor((width(from) - width(there[0])) / 2));
}
