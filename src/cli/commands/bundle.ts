import type { Command } from "commander";
import { writeFile } from "node:fs/promises";
import { UsageError, describeError } from "../../errors.ts";
import { openRecordedRun } from "../../composition/open-replay.ts";
import { findRecorded } from "../find-rollout.ts";
import { writeOut } from "../write-out.ts";

/** `turnwright bundle`: writes one file for a bug report. */
export function defineBundle(command: Command): void {
  command
    .description(
      "Writes all that it takes to play one episode again into one file: its recorded inputs, its rows, " +
        "its events and what it was played with. Secrets are not in it, as they are not in the run's folder; " +
        "what was said in the conversation is. `turnwright replay FILE` plays it.",
    )
    .option("--out <file>", "where to write it (default: the episode's id, as a file name)")
    .action(async (place: string, episode: string, flags: { readonly out?: string }) => {
      const recorded = await openRecordedRun(place);
      const rolloutId = findRecorded(recorded.rolloutIds, episode, place);
      const file = flags.out ?? `${rolloutId.replaceAll(/[^A-Za-z0-9.-]+/g, "-")}.bundle.json`;
      if (!file.endsWith(".json")) {
        throw new UsageError(`Cannot write ${file}: expected a name that ends in .json`);
      }
      const text = `${JSON.stringify(await recorded.bundle(rolloutId))}\n`;
      try {
        await writeFile(file, text, { flag: "wx" });
      } catch (cause) {
        throw new UsageError(`Cannot write ${file}: ${describeError(cause)}`, { cause });
      }
      await writeOut(`${file}\n`);
    });
}
