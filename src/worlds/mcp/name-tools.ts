import type { ListedTool } from "./listed-tool.ts";

/** A tool of a server, with the name by which the model calls it. */
export interface NamedTool {
  readonly ownName: string;
  readonly listed: ListedTool;
}

/**
 * Determines the name by which the model calls each tool: the result of `names`, or the server's
 * name with `_` in place of characters that engines do not allow. If several tools have the same
 * name, the first keeps it, and the others are left out and reported.
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
    // If `names` returns the same name twice, the environment refuses it later.
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
