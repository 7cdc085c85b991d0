/** A place that all who work on a run reach: what is too large for the queue's store lies there. */
export interface SharedPlace {
  /** What it is called in messages. */
  readonly shown: string;
  /** The file is there whole or not at all. */
  write(name: string, bytes: Buffer): Promise<void>;
  /** The file's bytes, at most one more than `most`; nothing where there is no such file. */
  read(name: string, most: number): Promise<Buffer | undefined>;
  /** Does nothing where there is no such file. */
  remove(name: string): Promise<void>;
  /** Where recordings that grow are kept; absent where files cannot grow. */
  readonly recordings?: RecordingPlace;
}

/** Files that grow line by line: some for each job, one for each time that somebody took it up. */
interface RecordingPlace {
  /**
   * Begins a file of one's own, so that whoever was thought dead and is not writes into another one.
   *
   * @returns what earlier ones hold, the latest first, and the number of this one, from 1.
   */
  begin(job: string): Promise<{
    readonly number: number;
    readonly earlier: readonly Buffer[];
    readonly append: (text: string) => Promise<void>;
  }>;
  /** Removes all files of a job. */
  remove(job: string): Promise<void>;
}
