import type { DamagedLine } from "../report/read-run.ts";
import { writeError } from "./write-out.ts";

/** Prints to standard error that a line was skipped. */
export function noteDamaged({ file, line, problem }: DamagedLine): void {
  writeError(
    `turnwright: ${file}, line ${line} is left out: ${problem} ` +
      "(`verify` says what else is damaged; the command that played the run plays it again)\n",
  );
}
