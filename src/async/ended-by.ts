/** Whether what was thrown is the end of a wait that the signal ended: its reason, or what Node's own functions throw. */
export function endedBy(signal: AbortSignal, thrown: unknown): boolean {
  if (!signal.aborted) return false;
  if (thrown === signal.reason) return true;
  try {
    return thrown instanceof Error && thrown.name === "AbortError";
  } catch {
    // It may be anyone's, and not even that can be asked of it.
    return false;
  }
}
