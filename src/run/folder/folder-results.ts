import { readText } from "../disk/files.ts";
import { storageError } from "../disk/storage-error.ts";
import { writeJsonAtomically } from "../disk/write-atomically.ts";
import { evaluationFiles, isEvaluation } from "./evaluation-files.ts";
import type { LockedFolder } from "./locked-folder.ts";

/** The totals of a run that ended. */
export const summaryFile = "summary.json";

/** The training rows in slime's format. */
export const slimeFile = "samples.slime.jsonl";

/** The files that describe the run at its end. A start that plays more episodes removes them first. */
export class FolderResults {
  readonly #folder: LockedFolder;
  /** False once this start has removed the evaluation of earlier starts. */
  #mayHoldEvaluation = true;

  constructor(folder: LockedFolder) {
    this.#folder = folder;
  }

  /** Writes `summary.json`. */
  async writeSummary(summary: object): Promise<void> {
    const { files } = this.#folder;
    const file = this.#folder.pathOf(summaryFile);
    await this.#folder.whileLocked(async () => await writeJsonAtomically(file, summary, { files }));
  }

  /** Removes the summary, the slime rows and the evaluation of earlier starts. */
  async remove(): Promise<void> {
    await this.removeSummary();
    await this.removeEvaluation();
  }

  /** Removes the summary and the slime rows of earlier starts. */
  async removeSummary(): Promise<void> {
    await this.#folder.whileLocked(async () => await this.#removeAll([summaryFile, slimeFile]));
  }

  /**
   * Removes the evaluation of earlier starts. Files of the same names stay if the main one is no evaluation that this
   * project wrote. Does nothing after the first call.
   */
  async removeEvaluation(): Promise<void> {
    if (!this.#mayHoldEvaluation) return;
    const { evaluation, ...others } = evaluationFiles;
    const file = this.#folder.pathOf(evaluation);
    await this.#folder.whileLocked(async () => {
      let text: string | undefined;
      try {
        text = await readText(this.#folder.files, file);
      } catch (error) {
        throw storageError("read", file, error);
      }
      // The main file goes last: after a crash, the next start still finds it and removes the rest.
      if (isEvaluation(text)) await this.#removeAll([...Object.values(others), evaluation]);
    });
    this.#mayHoldEvaluation = false;
  }

  async #removeAll(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const file = this.#folder.pathOf(name);
      try {
        await this.#folder.files.remove(file);
      } catch (error) {
        throw storageError("write", file, error);
      }
    }
  }
}
