/** What a tool throws to tell the model that its call was a mistake; see `refuse()`. */
export class ToolRefusal extends Error {
  override readonly name = "ToolRefusal";
}

/** Whether a tool said so, by whichever copy of this package its module has. */
export function isRefusal(error: unknown): error is ToolRefusal {
  return error instanceof Error && error.name === "ToolRefusal";
}

/**
 * Ends a tool's call as a mistake of the model's: it is shown `Error: ` and the message, and what the
 * call had changed of the state is taken back. Anything else that a tool throws is an outage, which
 * fails the episode.
 *
 * @throws ToolRefusal, always.
 */
export function refuse(message: string): never {
  throw new ToolRefusal(message);
}
