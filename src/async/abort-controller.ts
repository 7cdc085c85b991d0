import { setMaxListeners } from "node:events";
import { reportListenerError } from "./pass-over-floating.ts";

/**
 * Creates a controller for signals that are passed to foreign code. Node ends the process if a listener of a signal
 * throws; here the error is reported and the process continues. Signals that foreign code derives with
 * `AbortSignal.any()` are not protected. Node's warning about many listeners is off, since some code adds one a
 * call and never removes it.
 */
export function createAbortController(): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  signal.addEventListener = addListener;
  signal.removeEventListener = removeListener;
  return controller;
}

/** True if the signal comes from `createAbortController()`. */
export function isGuarded(signal: AbortSignal): boolean {
  return signal.addEventListener === addListener;
}

type Listener = Parameters<AbortSignal["addEventListener"]>[1];
type Heard = (this: AbortSignal, event: Event) => unknown;

/** The wrapper of each listener, kept while the listener is referenced. */
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

/**
 * The wrapper of a listener; the same listener always gets the same one. The signal itself refuses invalid
 * listeners.
 */
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
    // The listener may be async although its type says otherwise.
    const heard: unknown = isFunction ? listener.call(signal, event) : listener.handleEvent(event);
    await heard;
  } catch (error) {
    reportListenerError(error);
  }
}
