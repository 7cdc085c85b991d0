import type { Resolvers } from "../async/with-resolvers.ts";
import { withResolvers } from "../async/with-resolvers.ts";

/** A promise and the function that resolves it. */
export type Deferred<T = void> = Pick<Resolvers<T>, "promise" | "resolve">;

/** Makes a promise that is resolved from outside. */
export function createDeferred<T = void>(): Deferred<T> {
  return withResolvers<T>();
}
