/**
 * Makes the ids under which an engine's requests go to its servers. What is asked for under one id, by this
 * engine or by others at the same server, goes there under several: SGLang refuses a request whose id
 * another one has, and an abort reaches every request of that id or, at SGLang, with that beginning. No id is
 * the beginning of another. `unique` keeps apart what several engines and processes ask.
 */
export function createWireIds(unique: number): (requestId: string) => string {
  let count = 0;
  return (requestId) => `${unique}-${count++}~${requestId}`;
}
