// Where a piece can be let fall. The server lists the legal placements; keys and fingers only walk
// along that list, so that nothing else can be asked for. A placement is {rotation, column, cells},
// its column that of its leftmost square.

const extent = (index) => (placement) => {
  const positions = placement.cells.map((cell) => cell[index]);
  return Math.max(...positions) - Math.min(...positions) + 1;
};
export const width = extent(1);
export const height = extent(0);

const nearest = (placements, column) =>
  placements.reduce((best, one) =>
    Math.abs(one.column - column) < Math.abs(best.column - column) ? one : best,
  );

/**
 * Where a piece waits at first: not rotated and in the middle, or as near to that as the board
 * allows.
 */
export function initialPlacement(placements, columns) {
  if (!placements.length) return null;
  const least = Math.min(...placements.map((one) => one.rotation));
  const unrotated = placements.filter((one) => one.rotation === least);
  return nearest(unrotated, Math.floor((columns - width(unrotated[0])) / 2));
}

/** The next legal placement to the left (-1) or right (+1), or the same one at the edge. */
export function shiftedPlacement(placements, current, step) {
  const further = placements.filter(
    (one) => one.rotation === current.rotation && (one.column - current.column) * step > 0,
  );
  return further.length ? nearest(further, current.column) : current;
}

/**
 * The piece rotated once, clockwise (+1) or back (-1), about its middle; rotations without room
 * are passed over.
 */
export function rotatedPlacement(placements, current, step) {
  const rotations = [...new Set(placements.map((one) => one.rotation))].sort((a, b) => a - b);
  const count = rotations.length;
  const next = rotations[(rotations.indexOf(current.rotation) + step + count) % count];
  const candidates = placements.filter((one) => one.rotation === next);
  return nearest(
    candidates,
    current.column + Math.floor((width(current) - width(candidates[0])) / 2),
  );
}
