/**
 * True if the error ended a wait because of the signal: it is the signal's reason, or the abort error of a Node
 * function.
 */
export function endedBy(signal: AbortSignal, thrown: unknown): boolean {
  if (!signal.aborted) return false;
  if (thrown === signal.reason) return true;
  try {
    return thrown instanceof Error && thrown.name === "AbortError";
  } catch {
    // A foreign object may throw even when it is inspected.
    return false;
  }
}
