import type { Help } from "commander";

/** Less room than this beside the names, in columns, and what they are stands below them. */
const leastRoom = 36;

/**
 * How help is laid out: side by side as far as there is room, else one below the other, so that it can be read
 * in a terminal of any width from 40 columns on. For `Command.configureHelp()`.
 */
export const narrowHelp = {
  minWidthToWrap: 24,
  formatItem(term: string, termWidth: number, description: string, helper: Help): string {
    if (description === "") return `  ${term}`;
    const width = helper.helpWidth ?? 80;
    const room = width - termWidth - 4;
    if (room >= leastRoom) {
      const lines = helper.boxWrap(description, room).split("\n");
      const padding = " ".repeat(termWidth + 4);
      return `  ${term.padEnd(termWidth)}  ${lines.join(`\n${padding}`)}`;
    }
    const lines = helper.boxWrap(description, width - 6).split("\n");
    return [`  ${term}`, ...lines.map((line) => `      ${line}`)].join("\n");
  },
} satisfies Partial<Help>;
