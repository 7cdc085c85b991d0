/** The minimum number of columns for a text next to its name. */
const leastBeside = 24;

/**
 * Formats rows of a name and a text. Texts are next to the names, or below them on a narrow
 * terminal. Words are not split.
 *
 * @param columns - The width of the terminal. Absent: lines are not broken.
 */
export function rowsText(
  rows: readonly (readonly [name: string, text: string])[],
  columns = terminalColumns(),
): string {
  const nameWidth = Math.max(0, ...rows.map(([name]) => name.length));
  const beside = columns - nameWidth - 4;
  return rows
    .map(([name, text]) => {
      if (beside >= leastBeside) {
        const indent = " ".repeat(nameWidth + 4);
        const lines = wrap(text, beside).join(`\n${indent}`);
        return `  ${name.padEnd(nameWidth)}  ${lines}\n`;
      }
      return `  ${name}\n${wrap(text, Math.max(1, columns - 4))
        .map((line) => `    ${line}\n`)
        .join("")}`;
    })
    .join("");
}

/** Returns the width of standard output in columns; `Infinity` if unknown. */
export function terminalColumns(): number {
  return process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : Infinity;
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (longer.length <= width || line === "") line = longer;
    else {
      lines.push(line);
      line = word;
    }
  }
  return [...lines, line];
}
