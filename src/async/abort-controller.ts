import { setMaxListeners } from "node:events";
import { passOverThrown } from "./pass-over-floating.ts";

/**
 * A controller whose signal is given to code that is not ours. Node ends the process where a listener of a
 * signal throws; here that is told, and passed over. What somebody makes of the signal by `AbortSignal.any()`
 * is theirs. Nor does Node warn of listeners that stay, as those of code that listens once a call and never stops.
 */
export function createAbortController(): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  signal.addEventListener = addListener;
  signal.removeEventListener = removeListener;
  return controller;
}

/** Whether a signal was made here. */
export function isGuarded(signal: AbortSignal): boolean {
  return signal.addEventListener === addListener;
}

type Listener = Parameters<AbortSignal["addEventListener"]>[1];
type Heard = (this: AbortSignal, event: Event) => unknown;

/** What is called in a listener's place, for as long as somebody has the listener. */
const guards = new WeakMap<object, Heard>();

function addListener(
  this: AbortSignal,
  ...[type, listener, options]: Parameters<AbortSignal["addEventListener"]>
): void {
  // Most signals never have a listener.
  setMaxListeners(0, this);
  EventTarget.prototype.addEventListener.call(this, type, guardOf(listener), options);
}

function removeListener(
  this: AbortSignal,
  ...[type, listener, options]: Parameters<AbortSignal["removeEventListener"]>
): void {
  EventTarget.prototype.removeEventListener.call(this, type, guardOf(listener), options);
}

/** One for each listener: a signal takes the same one once. What is no listener is the signal's to refuse. */
function guardOf(listener: Listener): Listener {
  const isListener = typeof listener === "function" || typeof listener === "object";
  if (!isListener || (listener as unknown) === null) return listener;
  let guard = guards.get(listener);
  if (guard === undefined) {
    guard = function (event) {
      void hear(this, listener, event);
    };
    guards.set(listener, guard);
  }
  return guard;
}

async function hear(signal: AbortSignal, listener: Listener, event: Event): Promise<void> {
  try {
    const isFunction = typeof listener === "function";
    // It may be an async function all the same.
    const heard: unknown = isFunction ? listener.call(signal, event) : listener.handleEvent(event);
    await heard;
  } catch (error) {
    passOverThrown(error);
  }
}
