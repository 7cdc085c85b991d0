import type { ListedTool } from "./listed-tool.ts";

/** A tool of a server, with the name that the model calls it by. */
export interface NamedTool {
  readonly ownName: string;
  readonly listed: ListedTool;
}

/**
 * Gives each tool the name that the model calls it by: what `names` says, or its own, in which `_` stands
 * for characters that engines do not allow in names. Of several that share a name of the server's, the first
 * keeps it, and the others are left out and reported.
 */
export function nameTools(
  listed: readonly ListedTool[],
  names: ((name: string) => string | undefined) | undefined,
  report: (trouble: string) => void,
): readonly NamedTool[] {
  const seen = new Set<string>();
  const named: NamedTool[] = [];
  for (const tool of listed) {
    const { name } = tool;
    const ownName = names === undefined ? toAllowedName(name) : names(name);
    if (ownName === undefined) continue;
    // The names that an option gives are its own affair: the environment refuses two alike.
    const key = names === undefined ? ownName : name;
    if (seen.has(key)) {
      report(
        `tool ${JSON.stringify(name)} is left out: another one is called ${JSON.stringify(key)} ` +
          "already, expected names of their own",
      );
      continue;
    }
    seen.add(key);
    if (names === undefined && ownName !== name) {
      report(
        `the model calls tool ${JSON.stringify(name)} by the name ${ownName}: engines allow letters, ` +
          "digits, _ and -, at most 64",
      );
    }
    named.push({ ownName, listed: tool });
  }
  return named;
}

function toAllowedName(name: string): string {
  return name.replaceAll(/[^\w-]/gu, "_").slice(0, 64);
}
