/** A run's settings and the summary that it wrote. JSON-able. */
export interface AboutRun {
  /** All settings that the run was started with. Absent if a program started it. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** The settings that decide what the run plays. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /** Hashes or names of the facts that decide tokens and rewards. Absent if the run names none. */
  readonly identity?: Readonly<Record<string, string>>;
  /** The content of `summary.json`. Absent until the run ends. */
  readonly summary?: Readonly<Record<string, unknown>>;
}
