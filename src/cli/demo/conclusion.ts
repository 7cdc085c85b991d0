import { readFile } from "node:fs/promises";
import path from "node:path";
import { verifyRun } from "../../verify/verify-run.ts";
import { shellWord } from "../../text/shell-word.ts";
import { programName } from "../own-command.ts";

/** Returns the last message of a demonstration: how to view the run. */
export function viewHint(out: string): string {
  return (
    "Look at it in the browser: why each conversation earned what it did, and which tokens are trained:\n\n" +
    `  ${programName} view ${shellWord(out)}\n`
  );
}

/** True if the run in the folder is finished. */
export async function isFinished(out: string): Promise<boolean> {
  const summary = await readFile(path.join(out, "summary.json"), "utf8");
  return (JSON.parse(summary) as { readonly end: string }).end === "finished";
}

/** Verifies a run. Returns the line of the demonstration's summary about it. Sets the exit code to 1 if a rule is violated. */
export async function verdictOn(out: string): Promise<string> {
  const { violations, samples } = await verifyRun(out);
  if (violations.length === 0) {
    return (
      `verified   all ${samples} samples: the trained ids are the ids that were sampled, and each\n` +
      "             request had exactly the ids recorded before it"
    );
  }
  process.exitCode = 1;
  return `BROKEN     ${violations.length} violations, first: ${JSON.stringify(violations[0])}`;
}
