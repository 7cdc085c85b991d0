import { once } from "./once.ts";

/** Defines an enumerable member that is computed when it is first read. */
export function defineLazy(target: object, name: string, compute: () => unknown): void {
  Object.defineProperty(target, name, { get: once(compute), enumerable: true, configurable: true });
}
