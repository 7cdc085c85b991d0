/** Thrown for a request that the engine refuses before it is queued. */
export class RequestRefused extends Error {
  readonly status: 400 | 500;
  /**
   * `value`: `{"error": {"message"}}`; `text`: `{"error": "…"}`; `shape`: `{"object": "error", …}`;
   * `crash`: plain text.
   */
  readonly style: "value" | "text" | "shape" | "crash";
  /** True if the request asked for a stream. A refused value is then sent as a frame. */
  isStream = false;

  constructor(style: RequestRefused["style"], message: string) {
    super(message);
    this.status = style === "crash" ? 500 : 400;
    this.style = style;
  }
}
