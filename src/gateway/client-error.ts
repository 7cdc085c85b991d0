/** The kind of an error that a client receives. Each dialect has its own name for it. */
export type ClientErrorKind =
  /** The request is wrong. A retry fails too. */
  | "invalid"
  /** The prompt exceeds the context. Clients shorten the conversation and continue. */
  | "too-long"
  /** The session takes no more turns. */
  | "finished"
  /** The key is missing or wrong. */
  | "unauthorized"
  | "forbidden"
  | "not-found"
  | "too-large"
  /** The `Content-Encoding` is not supported. */
  | "bad-encoding"
  /** Too many requests. A later retry can succeed. */
  | "overloaded"
  /** The engine cannot be reached. A later retry can succeed. */
  | "unavailable"
  /** A bug of the gateway. */
  | "internal";

/** An error reply. Its message goes to the client, so it names the problem and the remedy. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly kind: ClientErrorKind;
  /** Path in the request's body, such as `messages[2].content`. Absent if the complete body is wrong. */
  readonly place: string | undefined;
  /** Seconds to wait before a retry. */
  readonly retryAfterS: number | undefined;

  constructor(
    kind: ClientErrorKind,
    message: string,
    options: { place?: string; retryAfterS?: number; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.place = options.place;
    this.retryAfterS = options.retryAfterS;
  }

  /** True if the request itself is wrong, so that every repetition fails. */
  get isRefusal(): boolean {
    return this.kind === "invalid" || this.kind === "too-large" || this.kind === "bad-encoding";
  }

  /** The HTTP status. SDKs retry 408, 409, 429 and 5xx only. */
  get status(): number {
    return statuses[this.kind];
  }
}

const statuses: Readonly<Record<ClientErrorKind, number>> = {
  invalid: 400,
  "too-long": 400,
  unauthorized: 401,
  forbidden: 403,
  "not-found": 404,
  finished: 410,
  "too-large": 413,
  "bad-encoding": 415,
  overloaded: 429,
  internal: 500,
  unavailable: 503,
};
