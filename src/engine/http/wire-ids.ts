/**
 * Returns a function that makes ids for an engine's requests at its servers. No id is the start of
 * another.
 *
 * One request id can be used for several requests, by this engine and by others at the same server.
 * SGLang refuses an id that is in use, and its abort affects all requests with ids that start with
 * the given one. `unique` separates engines and processes.
 */
export function createWireIds(unique: number): (requestId: string) => string {
  let count = 0;
  return (requestId) => `${unique}-${count++}~${requestId}`;
}
