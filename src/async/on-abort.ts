import { isGuarded } from "./abort-controller.ts";

const listening = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back once when the signal aborts; never if it has aborted already. A signal scans its listeners whenever
 * one is added or removed, which is slow if thousands of episodes share a run's signal. Here the signal gets one
 * listener, and adding or removing a callback takes constant time.
 *
 * @returns a function that removes the callback.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) return () => {};
  let callbacks = listening.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    listening.set(signal, callbacks);
    signal.addEventListener("abort", callAll, { once: true });
  }
  // Each call needs its own entry, so that a callback which is added twice is called twice.
  const entry = (): void => callback();
  const waiting = callbacks.add(entry);
  return () => {
    if (!waiting.delete(entry) || waiting.size > 0) return;
    // A guarded signal keeps its listener: it is collected with its controller, and later callbacks reuse the
    // listener.
    if (isGuarded(signal)) return;
    // The runtime may keep a foreign signal alive while it has listeners, so the listener is removed.
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
      // As with a signal's own listeners, the other callbacks are still called.
      process.nextTick(() => {
        throw error;
      });
    }
  }
}
