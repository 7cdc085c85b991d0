/** One problem: what the user wants, and what the right end state is. */
export interface Task<Data = unknown> {
  /** Unique within a run, such as `tau-retail/test/7`. */
  readonly id: string;
  /** The environment's name. */
  readonly environment: string;
  readonly split: string;
  /** 0-based place within the split. */
  readonly index: number;
  /** What the simulated user is told to want. */
  readonly instruction: string;
  /** What only the environment reads: wanted actions, outputs, and so on. */
  readonly data: Data;
}
