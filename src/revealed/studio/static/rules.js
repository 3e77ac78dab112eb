// What a picture needs to know of the rules: the board as rows of text, the top row first, "." for
// an empty square.

/** The board with a piece on it, before full rows are removed. */
export function withPiece(board, cells, letter) {
  const rows = board.map((row) => [...row]);
  for (const [row, column] of cells) if (rows[row]) rows[row][column] = letter;
  return rows.map((row) => row.join(""));
}

export const fullRows = (board) =>
  board.flatMap((row, index) => (row.includes(".") ? [] : [index]));

/** The board without its full rows; what was above them moves down. */
export function withoutFullRows(board) {
  const kept = board.filter((row) => row.includes("."));
  return [...Array(board.length - kept.length).fill(".".repeat(board[0].length)), ...kept];
}

export const emptyBoard = (rows, columns) => Array(rows).fill(".".repeat(columns));

/** The board in a sentence, for those who do not see it. */
export function describeBoard(board) {
  const heights = [...board[0]].map((_, column) => {
    const top = board.findIndex((row) => row[column] !== ".");
    return top < 0 ? 0 : board.length - top;
  });
  const filled = board.reduce(
    (sum, row) => sum + [...row].filter((square) => square !== ".").length,
    0,
  );
  const holes = heights.reduce((sum, height) => sum + height, 0) - filled;
  if (!filled) return `The board is empty: ${board.length} rows, ${heights.length} columns.`;
  return (
    `Heights of the columns from left to right: ${heights.join(", ")}; highest ` +
    `possible ${board.length}. Holes: ${holes}.`
  );
}
