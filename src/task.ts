/** One problem of an environment: the user's goal and the wanted end state. */
export interface Task<Data = unknown> {
  /** Unique within a run, such as `tau-retail/test/7`. */
  readonly id: string;
  /** The environment's name. */
  readonly environment: string;
  readonly split: string;
  /** 0-based index in the split. */
  readonly index: number;
  /** The goal of the simulated user. */
  readonly instruction: string;
  /** Data for the environment only: wanted actions, outputs, and so on. */
  readonly data: Data;
}
