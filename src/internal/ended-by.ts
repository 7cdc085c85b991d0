/** Whether what was thrown is the end of a wait that the signal ended: its reason, or what Node's own functions throw. */
export function endedBy(signal: AbortSignal, thrown: unknown): boolean {
  if (!signal.aborted) return false;
  return thrown === signal.reason || (thrown instanceof Error && thrown.name === "AbortError");
}
