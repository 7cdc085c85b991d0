/** What kind of trouble a client is told of; each dialect has its own words for it. */
export type ClientErrorKind =
  /** The request cannot be answered as it is; sending it again does not help. */
  | "invalid"
  /** Prompt and limit of the model do not go together; clients shorten the conversation and go on. */
  | "too-long"
  /** The session takes no more turns. */
  | "finished"
  /** No key, or a wrong one. */
  | "unauthorized"
  | "forbidden"
  | "not-found"
  | "too-large"
  /** The body is compressed in a way that is not read here. */
  | "bad-encoding"
  /** Too much at once: to be tried again. */
  | "overloaded"
  /** What samples is out of reach: to be tried again. */
  | "unavailable"
  /** Our own bug. */
  | "internal";

/** An answer that is no turn. Its message goes to the client: it names what is wrong and what to do. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly kind: ClientErrorKind;
  /** Place in the request's body, such as `messages[2].content`; absent where it is the whole. */
  readonly place: string | undefined;
  /** Seconds after which to try again. */
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

  /** The status of the HTTP reply. SDKs try 408, 409, 429 and 5xx again, and nothing else. */
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
