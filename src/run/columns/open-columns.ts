import { openColumnFolder, type ColumnFolder } from "./column-folder.ts";

/** The columns of several runs, open for reading. */
export class OpenColumns implements AsyncDisposable {
  readonly #folders = new Map<unknown, ColumnFolder>();

  /**
   * Returns the columns of a run's folder.
   *
   * @param run - A value that is different for each run. Default: the folder, if no other run replaces the run in it.
   */
  of(dir: string, run: unknown = dir): ColumnFolder {
    const folder = this.#folders.get(run) ?? openColumnFolder(dir);
    this.#folders.set(run, folder);
    return folder;
  }

  /** Closes the files. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const folder of this.#folders.values()) await folder[Symbol.asyncDispose]();
  }
}
