import { isGuarded } from "./abort-controller.ts";

const listening = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back once when the signal aborts; a signal that is aborted already calls nobody. A signal goes
 * through its listeners one by one whenever another comes or goes, which thousands of episodes that share
 * a run's signal would feel: here it has one, and who comes or goes takes the same time however many there
 * are.
 *
 * @returns takes the callback back.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) return () => {};
  let callbacks = listening.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    listening.set(signal, callbacks);
    signal.addEventListener("abort", callAll, { once: true });
  }
  // One that is given twice is called twice.
  const entry = (): void => callback();
  const waiting = callbacks.add(entry);
  return () => {
    if (!waiting.delete(entry) || waiting.size > 0) return;
    // One of ours goes with whoever made it, and the next to come need not listen to it anew.
    if (isGuarded(signal)) return;
    // Of others, one that somebody listens to may be kept by the system: let go of it.
    signal.removeEventListener("abort", callAll);
    if (listening.get(signal) === waiting) listening.delete(signal);
  };
}

function callAll(this: AbortSignal): void {
  const callbacks = listening.get(this) ?? [];
  listening.delete(this);
  for (const callback of callbacks) {
    try {
      callback();
    } catch (error) {
      // As a signal does it: the others are called all the same.
      process.nextTick(() => {
        throw error;
      });
    }
  }
}
