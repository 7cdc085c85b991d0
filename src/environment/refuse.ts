/** The error that reports a mistake to the model; see `refuse()`. */
export class ToolRefusal extends Error {
  override readonly name = "ToolRefusal";
}

/** True for a refusal, from any copy of this package. */
export function isRefusal(error: unknown): error is ToolRefusal {
  return error instanceof Error && error.name === "ToolRefusal";
}

/**
 * Ends a tool's call as a mistake of the model. The model sees `Error: ` and the message, and the call's changes to
 * the state are undone. Any other error is an outage, which fails the episode.
 * @throws ToolRefusal, always.
 */
export function refuse(message: string): never {
  throw new ToolRefusal(message);
}
