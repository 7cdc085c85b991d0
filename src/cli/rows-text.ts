/** Fewest characters that a text beside its name is worth. */
const leastBeside = 24;

/**
 * Rows of a name and a text, for people: the texts stand beside the names, and on a narrow terminal below them.
 * Words are not parted.
 *
 * @param columns - The width of the terminal; if absent, lines are not broken.
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
