/** The members of a state and those that a score wants. */
export interface ComparedMembers {
  readonly wanted: readonly string[];
  /** The names of the state's members. */
  readonly state: readonly string[];
}
