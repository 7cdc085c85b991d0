import path from "node:path";
import { UsageError } from "../errors.ts";
import { isFile } from "./is-file.ts";

/** Files of a run's folder that hold no samples, with what else checks them. */
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
 * Says how far the check of a file reaches that is checked without its run: a changed reward, for example, does not
 * show in the file alone.
 *
 * @param count - Rows that were found in it.
 */
export async function describeLoneCheck(file: string, count: number): Promise<string> {
  const dir = await runFolderOf(file);
  const remedy =
    dir === undefined
      ? "`turnwright verify` on the run's folder holds it against the other files"
      : `\`turnwright verify ${dir}\` holds it against the other files of its run`;
  return `${count === 0 ? "the file has no rows; " : ""}only this file was checked: ${remedy}`;
}

/** The same for an exported file that was not held against a run. */
export function describeLoneExport(count: number): string {
  const empty = count === 0 ? "the file has no rows; " : "";
  return `${empty}only this file was checked: --run DIR holds it against the run that it is of`;
}

/**
 * Refuses a file of a run's folder that holds no samples: its lines would all seem wrong.
 *
 * @throws UsageError that names the command which checks it.
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

/** The run's folder that a file lies in. */
async function runFolderOf(file: string): Promise<string | undefined> {
  const dir = path.dirname(file);
  return (await isFile(path.join(dir, "episodes.jsonl"))) ? dir : undefined;
}
