/** The codes of refused calls. docs/service.md explains them. */
export type ServiceErrorCode = keyof typeof statuses;

const statuses = {
  "bad-request": 400,
  unauthorized: 401,
  forbidden: 403,
  "not-found": 404,
  "bad-method": 405,
  "key-reused": 409,
  "version-not-newer": 409,
  "cursor-gone": 410,
  "too-large": 413,
  "bad-encoding": 415,
  "bad-range": 416,
  "queue-full": 429,
  internal: 500,
  "engine-failed": 502,
  "rollout-failed": 502,
  stopping: 503,
} as const;

/**
 * Thrown for a call that is refused. The caller gets the message, which names the problem and the
 * remedy.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ServiceErrorCode;
  /** For `bad-range`: the number of bytes that there are. */
  readonly size: number | undefined;

  constructor(
    code: ServiceErrorCode,
    message: string,
    { size, ...options }: { cause?: unknown; size?: number } = {},
  ) {
    super(message, options);
    this.code = code;
    this.size = size;
  }

  /** The status of the HTTP reply. */
  get status(): number {
    return statuses[this.code];
  }

  /**
   * The number of seconds after which the caller may repeat the call. `undefined` if a repetition
   * cannot help.
   */
  get retryAfterS(): number | undefined {
    return this.code === "queue-full" || this.code === "stopping" ? 5 : undefined;
  }
}
