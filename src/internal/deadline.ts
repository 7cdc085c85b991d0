/** A wait took longer than it may. */
export class DeadlineExceeded extends Error {
  override readonly name = "DeadlineExceeded";
  /** What was waited for. */
  readonly what: string;
  readonly timeoutMs: number;

  constructor(what: string, timeoutMs: number) {
    super(`${what} took longer than ${timeoutMs} ms`);
    this.what = what;
    this.timeoutMs = timeoutMs;
  }
}

/**
 * Runs `work` with a signal that aborts when the outer signal does or when the time is up, and does
 * not wait for work that ignores its signal.
 *
 * @throws DeadlineExceeded when the time is up first.
 * @throws the outer signal's reason when that is aborted first.
 */
export async function withDeadline<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { what, timeoutMs, signal }: { what: string; timeoutMs: number; signal: AbortSignal },
): Promise<T> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const forward = () => controller.abort(signal.reason);
  signal.addEventListener("abort", forward, { once: true });
  const timer = Number.isFinite(timeoutMs)
    ? setTimeout(() => controller.abort(new DeadlineExceeded(what, timeoutMs)), timeoutMs)
    : undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      controller.signal.addEventListener("abort", () => reject(asError(controller.signal.reason)), {
        once: true,
      });
      work(controller.signal).then(resolve, reject);
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", forward);
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
