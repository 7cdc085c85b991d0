import path from "node:path";
import { UsageError } from "../errors.ts";
import { isFile } from "./is-file.ts";

/** Files of a run's folder without samples, with a hint for other checks of the file. */
const otherFiles: ReadonlyMap<string, string> = new Map([
  ...[
    "episodes.jsonl",
    "events.jsonl",
    "recording.jsonl",
    "run.json",
    "summary.json",
    "evaluation.json",
    "errors.jsonl",
    "errors.json",
    "results.tau-bench.json",
  ].map((name) => [name, ""] as const),
  ["samples.slime.jsonl", ", or --as slime for this file alone"],
]);

/**
 * Says that a file was checked without its run, and how to check it with the run. For example, a
 * changed reward does not show in the file alone.
 *
 * @param count - The number of rows in the file.
 */
export async function describeLoneCheck(file: string, count: number): Promise<string> {
  const dir = await runFolderOf(file);
  const remedy =
    dir === undefined
      ? "`turnwright verify` on the run's folder checks it against the other files"
      : `\`turnwright verify ${dir}\` checks it against the other files of its run`;
  return `${count === 0 ? "the file has no rows; " : ""}only this file was checked: ${remedy}`;
}

/** Says that an exported file was checked without its run, and how to check it with the run. */
export function describeLoneExport(count: number): string {
  const empty = count === 0 ? "the file has no rows; " : "";
  return `${empty}only this file was checked: --run DIR checks it against its run`;
}

/**
 * Rejects a file of a run's folder that has no samples, because every line would be a violation.
 *
 * @throws UsageError that names the command for this file.
 */
export async function assertFileOfSamples(file: string): Promise<void> {
  const more = otherFiles.get(path.basename(file, ".gz"));
  if (more === undefined) return;
  const dir = await runFolderOf(file);
  if (dir === undefined) return;
  throw new UsageError(
    `Cannot check ${file} alone: it holds no samples, expected the run's folder ${dir}, ` +
      `which is checked file by file${more}`,
  );
}

/** Returns the run's folder that contains a file. */
async function runFolderOf(file: string): Promise<string | undefined> {
  const dir = path.dirname(file);
  return (await isFile(path.join(dir, "episodes.jsonl"))) ? dir : undefined;
}
