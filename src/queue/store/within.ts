import type { Clock } from "../../async/clock.ts";

/** Waits for work on a store that may never answer. Returns true if the work finished in time. */
export async function within(
  ms: number,
  work: Promise<unknown>,
  clock: Pick<Clock, "after">,
): Promise<boolean> {
  let callOff = (): void => {};
  const late = new Promise<boolean>((resolve) => {
    callOff = clock.after(ms, () => resolve(false));
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    callOff();
  }
}
