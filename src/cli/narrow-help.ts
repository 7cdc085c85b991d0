import type { Help } from "commander";

/** The minimum number of columns for descriptions next to names. */
const leastRoom = 36;

/**
 * The layout of help, for `Command.configureHelp()`. Descriptions are next to the names if there is
 * room, otherwise below them. Readable from 40 columns on.
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
