import path from "node:path";
import { shellWord } from "../../text/shell-word.ts";
import { distributionOf, isPythonFile } from "./python-name.ts";
import type { PythonFailure } from "./python-failure.ts";

/** Returns the reason why an environment cannot be loaded, with the line and the remedy. */
export function describeLoadFailure(
  failure: PythonFailure,
  { environment, executable }: { readonly environment: string; readonly executable: string },
): string {
  const start = `Cannot load environment ${environment}`;
  const { kind, facts, message } = failure;
  const place =
    facts?.file === undefined ? "" : ` (${path.relative("", facts.file)}:${facts.line ?? 1})`;
  if (facts?.missing !== undefined) {
    const distribution = distributionOf(environment, facts.missing);
    const command = distribution === undefined ? "" : ` (pip install ${shellWord(distribution)})`;
    const how = isPythonFile(environment)
      ? 'install it there, name it in a "# /// script" block of the file, or name another interpreter with --python'
      : `install it there${command}, or name another interpreter with --python`;
    return `${start}: Python ${executable} lacks the package ${facts.missing}${place}, ${how}`;
  }
  if (kind === "raised" && facts?.code === "refused")
    return `${start}: ${shortPaths(facts.message)}`;
  if (kind === "raised") return `${start}: ${message}${place}`;
  if (kind === "overdue")
    return `${start}: ${message}${place}, expected an import without endless work`;
  const output = facts?.traceback?.split("\n").slice(-6).join("\n") ?? "";
  return `${start}: the Python process ${executable} failed: ${message}${output === "" ? "" : `; it wrote:\n${output}`}`;
}

/** Returns a text with the paths below the working directory relative to it. */
function shortPaths(text: string): string {
  return text.replaceAll(process.cwd() + path.sep, "");
}
