import type { Clock } from "../../async/clock.ts";

/** Waits for work that a store may never answer, for so long at most; whether it came to its end. */
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
