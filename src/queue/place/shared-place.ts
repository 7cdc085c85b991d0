/**
 * A storage that all processes of a run can reach, for data that is too large for the queue's
 * store.
 */
export interface SharedPlace {
  /** The place's name in messages. */
  readonly shown: string;
  /** Writes a file atomically: a reader sees either the complete file or no file. */
  write(name: string, bytes: Buffer): Promise<void>;
  /**
   * Returns the file's bytes, at most `most + 1` of them, or `undefined` if it does not exist.
   * @param allocate - Allocates the memory, if the place can choose. Default: Node's own allocation.
   */
  read(
    name: string,
    most: number,
    allocate?: (size: number) => Buffer,
  ): Promise<Buffer | undefined>;
  /** Removes a file, if it exists. */
  remove(name: string): Promise<void>;
  /** Storage for recordings. Absent if files in this place cannot grow. */
  readonly recordings?: RecordingPlace;
  /** Returns the folder of a run's side columns. Absent if files in this place cannot grow. */
  readonly columnsOf?: (run: string) => string;
}

/** Files that grow by lines. Each job can have several: one for each worker that took it. */
interface RecordingPlace {
  /**
   * Starts a new file, so that a worker that was wrongly thought dead writes to a file of its own.
   * @returns the content of earlier files, the latest first, and the number of this file, from 1.
   */
  begin(job: string): Promise<{
    readonly number: number;
    readonly earlier: readonly Buffer[];
    readonly append: (text: string) => Promise<void>;
  }>;
  /** Removes all files of a job. */
  remove(job: string): Promise<void>;
}
