import { withResolvers } from "../async/with-resolvers.ts";

/** A promise and the function that resolves it. */
export interface Deferred<T = void> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

/** Creates a promise that other code resolves. */
export function createDeferred<T = void>(): Deferred<T> {
  return withResolvers<T>();
}
